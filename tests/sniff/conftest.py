"""The real command, in a process of its own, on the loopback interface."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO

import pytest

#: A machine with much to do takes its time to start Python and to import scapy.
PATIENCE_SECONDS = 60.0


def _may_capture() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not _may_capture():
        reason = "capturing needs Linux and root"
    elif shutil.which("tcpdump") is None and "CI" not in os.environ:
        reason = "capturing is held against tcpdump, and its filters need the libpcap that comes with it"
    else:
        return
    for item in items:
        if item.get_closest_marker("capturing"):
            item.add_marker(pytest.mark.skip(reason=reason))


class Sniffer:
    """A running ``kwiresniff``, whose lines are collected as they come."""

    def __init__(self, *command: str, stdin: int | None = None) -> None:
        self.out: list[str] = []
        self.err: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=stdin if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        self._threads = [
            threading.Thread(target=self._collect, args=(self.process.stdout, self.out)),
            threading.Thread(target=self._collect, args=(self.process.stderr, self.err)),
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _collect(stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            lines.append(line.rstrip("\n"))

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Until ``condition`` holds; fails the test when it does not in time."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < until and self.process.poll() is None, (self.out, self.err)
            time.sleep(0.02)

    def end(self, number: int | None = None) -> int:
        """Sends a signal, waits and returns the exit code."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE_SECONDS)
        for thread in self._threads:
            thread.join()
        return code

    def interrupt(self) -> int:
        return self.end(signal.SIGINT)


@pytest.fixture
def start() -> Iterator[Callable[..., Sniffer]]:
    """Starts the command; what still runs at the end of the test is killed."""
    running: list[Sniffer] = []

    def run(*arguments: str, prelude: str = "", stdin: int | None = None) -> Sniffer:
        program = (
            ["-c", f"{prelude}\nfrom kwiresniff.cli.main import main; main()"] if prelude else ["-m", "kwiresniff"]
        )
        running.append(Sniffer(*program, *arguments, stdin=stdin))
        return running[-1]

    yield run
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
        one.end()
        for stream in (one.process.stdout, one.process.stderr):
            assert stream is not None
            stream.close()
