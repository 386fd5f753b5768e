"""How long functions of plugins may take, and their end when they take longer.

Two timers of the system interrupt the function: one of the processor time that it uses (``SIGPROF``), and one of the
time that passes (``SIGALRM``), for who waits, as for an answer of a schema registry. That works for code in Python in
the main thread. Code in C is interrupted where it asks for signals; elsewhere it is only seen afterwards that it took
too long. What may hang for good belongs into a process of its own (``kwiresniff.plugins.isolated``).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any, Final

#: Processor time of one call. A value takes microseconds, a schema that is parsed when it is first met milliseconds.
CALL_MS = 500
#: Of the first call of a function, which may import its libraries.
FIRST_CALL_MS = 5_000
#: Of any call, by the clock.
WAIT_MS = 10_000
#: After so many calls that took too long a function is switched off.
MAX_SLOW_CALLS = 10
#: A function that takes so long for a call on average, and so long in all, is named; by the clock.
SLOW_MS = 10
NAMED_MS = 10_000

_TIMERS: Final = ((signal.SIGPROF, signal.ITIMER_PROF), (signal.SIGALRM, signal.ITIMER_REAL))
_armed = False


class TookTooLong(BaseException):
    """Raised inside a function that takes too long. No ``Exception``, because plugins catch those."""


def limited(ms: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns. Raises TookTooLong in it when it uses more than so many milliseconds of processor time
    or ``WAIT_MS`` by the clock, where this thread can be interrupted and nobody else uses these signals.
    """
    global _armed  # noqa: PLW0603  there is one timer of a kind in a process
    if not _usable():
        return function(*arguments)
    try:
        try:
            _armed = True
            _set(ms, WAIT_MS)
            return function(*arguments)
        finally:
            _armed = False
    finally:  # also when the signal came in the line above
        _armed = False
        _set(0, 0)


def _set(*times_ms: int) -> None:
    """Starts both timers, or stops them. They come again and again, for who catches everything."""
    for (_, timer), ms in zip(_TIMERS, times_ms, strict=True):
        signal.setitimer(timer, ms / 1000, ms / 1000)


def _usable() -> bool:
    """Whether signals come to this thread and are ours, or can be made ours."""
    if threading.current_thread() is not threading.main_thread():
        return False
    for number, _ in _TIMERS:
        handler = signal.getsignal(number)
        if handler is not _on_signal:
            if handler is not signal.SIG_DFL:
                return False
            signal.signal(number, _on_signal)
    return True


def _on_signal(number: int, frame: Any) -> None:
    if _armed:
        raise TookTooLong
