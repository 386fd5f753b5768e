"""How long functions of plugins may take, and their end when they take longer.

A timer of the system interrupts the function (``SIGALRM``), which works for code in Python in the main thread. Code in
C is interrupted where it asks for signals; elsewhere it is only seen afterwards that it took too long. What may hang
for good belongs into a process of its own (``kwiresniff.plugins.isolated``).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: For one call. A value takes microseconds; a schema that is parsed when it is first met, or a busy machine, tenths.
CALL_MS = 500
#: For the first call of a function, which may import its libraries.
FIRST_CALL_MS = 10_000
#: After so many calls that took too long a function is switched off.
MAX_SLOW_CALLS = 10
#: A function that takes so long for a call on average, and so long in all, is named.
SLOW_MS = 10
NAMED_MS = 10_000

_armed = False
_waited = 0.0


class TookTooLong(BaseException):
    """Raised inside a function that takes too long. No ``Exception``, because plugins catch those."""


def limited(seconds: float, function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns. Raises TookTooLong in it when it takes longer than so many ``seconds``, where this
    thread can be interrupted and nobody else uses the signal.
    """
    global _armed  # noqa: PLW0603  there is one timer in a process
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    if signal.getsignal(signal.SIGALRM) is not _on_alarm:
        if signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
            return function(*arguments)
        signal.signal(signal.SIGALRM, _on_alarm)
    try:
        try:
            _armed = True
            signal.setitimer(signal.ITIMER_REAL, seconds, seconds)  # again and again, for who catches everything
            return function(*arguments)
        finally:
            _armed = False
    finally:  # also when the signal came in the line above
        _armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def waiting() -> Iterator[None]:
    """Time in here does not count for the function that is called: for plugins that wait for a server or another
    process, with a timeout of their own.
    """
    global _armed, _waited  # noqa: PLW0603  as above
    was_armed, begun = _armed, time.monotonic()
    is_main = threading.current_thread() is threading.main_thread()
    if was_armed and is_main:
        _armed = False
        left, again = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        _waited += time.monotonic() - begun
        if was_armed and is_main:
            _armed = True
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), again)


def waited() -> float:
    """Seconds in ``waiting`` so far."""
    return _waited


def _on_alarm(number: int, frame: Any) -> None:
    if _armed:
        raise TookTooLong
