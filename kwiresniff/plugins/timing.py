"""How long functions of plugins may take, and their end when they take longer.

A timer of the system interrupts the function (``SIGALRM``), which works for code in Python in the main thread. Code in
C is interrupted where it asks for signals; elsewhere it is only seen afterwards that it took too long. What may hang
for good belongs into a process of its own (``kwiresniff.plugins.isolated``).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
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


def _on_alarm(number: int, frame: Any) -> None:
    if _armed:
        raise TookTooLong
