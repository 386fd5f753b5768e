"""Ctrl-C stops the reading, never the writing of what was read."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kwiresniff.model import Event


class _Interrupts:
    """Raises KeyboardInterrupt at once while reading; while writing, remembers it until the object is complete.

    A second one is not made to wait: the first may be stuck in a pipe that nobody empties.
    """

    __slots__ = ("pending", "writing")

    def __init__(self) -> None:
        self.writing = False
        self.pending = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.writing and not self.pending:
            self.pending = True
            return
        raise KeyboardInterrupt


@contextmanager
def _installed(interrupts: _Interrupts) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, interrupts)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def for_each(events: Iterable[Event], use: Callable[[Event], None]) -> bool:
    """Gives every event to ``use``, whole or not at all; returns False when the user interrupted it."""
    interrupts = _Interrupts()
    try:
        with _installed(interrupts):
            for event in events:
                interrupts.writing = True
                use(event)
                interrupts.writing = False
                if interrupts.pending:
                    return False
    except KeyboardInterrupt:
        return False
    return True
