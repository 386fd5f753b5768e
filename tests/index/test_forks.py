"""Work in processes that are forked by one without threads."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from kwiresniff.errors import KwiresniffError
from kwiresniff.index.background import Failed, Send
from kwiresniff.index.forks import Forks
from tests.support.sniffing import PATIENCE_SECONDS


def say(send: Send, *words: str) -> None:
    """Sends each word, and who does it."""
    for word in words:
        send((word, os.getpid(), os.isatty(0)))


def fail(send: Send) -> None:
    raise KwiresniffError("there is nothing; bring something")


def go_on(send: Send) -> None:
    """Sends its number, and does not end."""
    send(os.getpid())
    time.sleep(10 * PATIENCE_SECONDS)


@pytest.fixture
def forks() -> Iterator[Forks]:
    """What forks, until the end of the test."""
    with closing(Forks()) as made:
        yield made


def test_work_is_done_elsewhere_and_sends_what_it_finds(forks: Forks) -> None:
    """In the order in which it is sent, and then nothing more."""
    working = forks.start(f"{__name__}:say", "a", "b" * 1_000_000)
    found: list[Any] = [working.receive(), working.receive()]
    assert [len(word) for word, _, _ in found] == [1, 1_000_000]
    assert not any(number == os.getpid() or is_terminal for _, number, is_terminal in found)
    with pytest.raises(EOFError):
        working.receive()


def test_work_that_fails_says_why(forks: Forks) -> None:
    """As its last message."""
    working = forks.start(f"{__name__}:fail")
    told = working.receive()
    assert isinstance(told, Failed) and told.reason == "there is nothing; bring something"
    with pytest.raises(EOFError):
        working.receive()


def test_work_that_is_stopped_sends_no_more(forks: Forks) -> None:
    """Others go on."""
    stopped, other = forks.start(f"{__name__}:go_on"), forks.start(f"{__name__}:go_on")
    assert stopped.receive() != other.receive()
    stopped.stop()
    with pytest.raises(EOFError):
        stopped.receive()
    other.stop()
    with pytest.raises(EOFError):
        other.receive()


def test_the_processes_end_with_the_one_that_asked_for_them() -> None:
    """Nobody else would end them."""
    forks = Forks()
    working = forks.start(f"{__name__}:go_on")
    number = working.receive()
    assert isinstance(number, int)
    forks.close()
    with pytest.raises(EOFError):
        working.receive()
    end = time.monotonic() + PATIENCE_SECONDS
    with suppress(ProcessLookupError):
        while time.monotonic() < end:
            os.kill(number, 0)
            time.sleep(0.02)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
