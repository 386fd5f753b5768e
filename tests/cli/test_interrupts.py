"""An interrupt between the start of a capture and its reading, which may be a second apart, loses nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from kwiresniff.analysis.sinks import CallingSink, WholeEvents
from kwiresniff.cli.interrupts import ready, uninterrupted
from kwiresniff.model import Event, Problem


class Capture:
    """Three problems that are there already, and others without end until it is stopped."""

    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True

    def read(self, use: Callable[[Event], None], stop: Callable[[], None] | None) -> bool:
        """Whether nobody interrupted it."""
        events = WholeEvents(CallingSink(use, use))

        def give() -> None:
            for _ in range(3):
                events.on_problem(Problem("gap", "there"))
            while not self.stopped:
                events.on_problem(Problem("gap", "later"))

        return uninterrupted(give, events, stop)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def as_python_starts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_before_the_reading_ends_it_after_what_is_there() -> None:
    capture, used = Capture(), list[Event]()
    with ready(capture.stop):
        interrupt()
        assert not capture.read(used.append, capture.stop)
    assert len(used) == 3


def test_without_one_the_reading_comes_to_its_end() -> None:
    capture, used = Capture(), list[Event]()

    def use(event: Event) -> None:
        used.append(event)
        capture.stopped = len(used) == 5

    with ready(capture.stop):
        assert capture.read(use, capture.stop)
    assert len(used) == 5


def test_what_follows_the_reading_is_interrupted_at_once() -> None:
    capture = Capture()
    with ready(capture.stop), pytest.raises(KeyboardInterrupt):
        capture.stop()
        assert capture.read(lambda _: None, capture.stop)
        interrupt()
        time.sleep(1)  # a handler runs between two lines of Python
    with ready(capture.stop), pytest.raises(KeyboardInterrupt):
        interrupt()
        interrupt()
        time.sleep(1)


def test_an_event_in_use_is_used_whole_before_the_interrupt_ends_the_reading() -> None:
    """Without ``stop`` the interrupt waits for the end of the event, and for no other one."""
    capture, used = Capture(), list[str]()

    def use(event: Event) -> None:
        used.append("begun")
        interrupt()
        time.sleep(0.01)  # a handler runs between two lines of Python
        used.append("done")

    assert not capture.read(use, None)
    assert used == ["begun", "done"]
