"""Ctrl-C, and signals to end, stop the reading, never the writing of what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator

    from kwiresniff.analysis.intake import Intake
    from kwiresniff.model import Event
else:
    import _signal as signal  # ``signal`` makes enumerations of its numbers first, a tenth of a short run


def _endings() -> list[signal.Signals]:
    """Ctrl-C, what systemd and timeout(1) send, and what a terminal sends when its window is closed."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # it is under nohup
        numbers.append(signal.SIGHUP)
    return numbers


class _Interrupts:
    """Raises KeyboardInterrupt at once while reading; while writing, remembers it until the object is complete.

    A reading that can ``stop`` is asked to instead, and ends by itself. A second interrupt is not made to wait: the
    first may be stuck in a pipe that nobody empties.
    """

    __slots__ = ("intake", "pending", "stop", "writing")

    def __init__(self, stop: Callable[[], None] | None, intake: Intake | None) -> None:
        self.writing = False
        self.pending = False
        self.stop = stop
        self.intake = intake

    def __call__(self, number: int, frame: FrameType | None) -> None:
        busy = self.intake is not None and self.intake.busy
        if self.pending or not (self.writing or self.stop or busy):
            raise KeyboardInterrupt
        self.pending = True
        if busy and self.intake is not None:
            self.intake.stopped = True
        if self.stop is not None:
            self.stop()


@contextmanager
def _installed(interrupts: _Interrupts) -> Iterator[None]:
    before = [(number, signal.signal(number, interrupts)) for number in _endings()]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def ready(stop: Callable[[], None]) -> Iterator[None]:
    """Until ``for_each`` reads: an interrupt calls ``stop`` and is remembered for it, so that it still gives what has
    been captured by then. A second one, or one after that reading, is not made to wait."""
    with _installed(_Interrupts(stop, None)):
        yield


def for_each(
    events: Iterable[Event],
    use: Callable[[Event], None],
    stop: Callable[[], None] | None = None,
    intake: Intake | None = None,
) -> bool:
    """Gives every event to ``use``, whole or not at all; returns False when the user interrupted it.

    ``stop`` makes ``events`` end soon; what they still give then is used too. ``intake`` takes exchanges meanwhile.
    """
    interrupts, before = _Interrupts(stop, intake), signal.getsignal(signal.SIGINT)
    try:
        with _installed(interrupts):
            early = before if isinstance(before, _Interrupts) else _Interrupts(None, None)
            interrupts.pending |= early.pending
            early.pending = True
            for event in events:
                interrupts.writing = True
                use(event)
                interrupts.writing = False
                if interrupts.pending and stop is None:
                    return False
    except KeyboardInterrupt:
        return False
    return not interrupts.pending
