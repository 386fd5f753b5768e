"""An interrupt between the start of a capture and its reading, which may be a second apart, loses nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from kwiresniff.cli.interrupts import for_each, ready
from kwiresniff.model import Event, Problem


class Capture:
    """Three problems that are there already, and others without end until it is stopped."""

    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True

    def events(self) -> Iterator[Event]:
        for _ in range(3):
            yield Problem("gap", "there")
        while not self.stopped:
            yield Problem("gap", "later")


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
        assert not for_each(capture.events(), used.append, capture.stop)
    assert len(used) == 3


def test_without_one_the_reading_comes_to_its_end() -> None:
    capture, used = Capture(), list[Event]()

    def use(event: Event) -> None:
        used.append(event)
        capture.stopped = len(used) == 5

    with ready(capture.stop):
        assert for_each(capture.events(), use, capture.stop)
    assert len(used) == 5


def test_what_follows_the_reading_is_interrupted_at_once() -> None:
    capture = Capture()
    with ready(capture.stop), pytest.raises(KeyboardInterrupt):
        capture.stop()
        assert for_each(capture.events(), lambda _: None, capture.stop)
        interrupt()
        time.sleep(1)  # a handler runs between two lines of Python
    with ready(capture.stop), pytest.raises(KeyboardInterrupt):
        interrupt()
        interrupt()
        time.sleep(1)
