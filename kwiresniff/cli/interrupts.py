"""Ctrl-C, and signals to end, stop the reading, never the writing of what was read."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kwiresniff.analysis.sinks import WholeEvents


def _endings() -> list[signal.Signals]:
    """Ctrl-C, what systemd and timeout(1) send, and what a terminal sends when its window is closed."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # it is under nohup
        numbers.append(signal.SIGHUP)
    return numbers


class _Interrupts:
    """Raises KeyboardInterrupt at once while reading; while an event is in use, has ``events`` raise it behind that
    event.

    A reading that can ``stop`` is asked to instead, and ends by itself. A second interrupt is not made to wait: the
    first may be stuck in a pipe that nobody empties.
    """

    __slots__ = ("events", "pending", "stop")

    def __init__(self, stop: Callable[[], None] | None, events: WholeEvents | None) -> None:
        self.pending = False
        self.stop = stop
        self.events = events

    def __call__(self, number: int, frame: FrameType | None) -> None:
        events = self.events
        if self.pending or not (self.stop or (events is not None and events.busy)):
            raise KeyboardInterrupt
        self.pending = True
        if self.stop is not None:
            self.stop()
        elif events is not None:
            events.stopped = True


@contextmanager
def _installed(interrupts: _Interrupts) -> Iterator[None]:
    before = [(number, signal.signal(number, interrupts)) for number in _endings()]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def interruptible() -> Iterator[None]:
    """Until it ends, whatever asks this process to end is an interrupt, so that what must go away is removed."""
    with _installed(_Interrupts(None, None)):
        yield


@contextmanager
def ready(stop: Callable[[], None]) -> Iterator[None]:
    """Until ``uninterrupted`` reads: an interrupt calls ``stop`` and is remembered for it, so that it still gives what
    has been captured by then. A second one, or one after that reading, is not made to wait."""
    with _installed(_Interrupts(stop, None)):
        yield


def uninterrupted(read: Callable[[], None], events: WholeEvents, stop: Callable[[], None] | None = None) -> bool:
    """Calls ``read``, whose events pass ``events``; returns False when the user interrupted it.

    ``stop`` makes ``read`` end soon; what it still finds then is used too.
    """
    interrupts, before = _Interrupts(stop, events), signal.getsignal(signal.SIGINT)
    try:
        with _installed(interrupts):
            early = before if isinstance(before, _Interrupts) else _Interrupts(None, None)
            interrupts.pending |= early.pending
            early.pending = True
            read()
    except KeyboardInterrupt:
        return False
    return not interrupts.pending
