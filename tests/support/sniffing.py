"""The real command, in a process of its own, on the loopback interface, and what it says."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tests.support.paths import CAPTURES
from tests.support.replay import conversations, say

FIRST_LOOK = str(CAPTURES / "first-look.pcap")
#: A machine with much to do takes its time to start Python and to import scapy.
PATIENCE_SECONDS = 60.0


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


def capturing(sniffer: Sniffer) -> None:
    """Waits until packets are captured, and an interrupt ends that in good order."""
    sniffer.wait_for(lambda: any(line.startswith("kwiresniff: listening on ") for line in list(sniffer.err)))
    assert is_listening(sniffer.process.pid)


def is_listening(pid: int) -> bool:
    """Whether a process (or one it started) has a packet socket that takes packets."""
    sockets = Path("/proc/net/packet").read_text().splitlines()[1:]
    inodes = {line.split()[8] for line in sockets if line.split()[5] == "1"}
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has ended, and whoever waits for it will be told
        return False
    return any(_holds(one, inodes) for one in (str(pid), *children))


def _holds(pid: str, inodes: set[str]) -> bool:
    """Whether a process, which may end while we look, has one of these sockets."""
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                target = str(link.readlink())
                if target.startswith("socket:[") and target[8:-1] in inodes and _is_mapped(pid):
                    return True
    except OSError:
        return False
    return False


def _is_mapped(pid: str) -> bool:
    """The ring is the last thing to be set up."""
    return "socket:[" in Path(f"/proc/{pid}/maps").read_text()


def objects(lines: list[str], kind: str = "exchange") -> list[dict[str, Any]]:
    return [one for one in map(json.loads, lines) if one["kind"] == kind]


def content(exchange: dict[str, Any]) -> str:
    """What was said, without when and from which port."""
    kept = {key: exchange[key] for key in ("api", "api_version", "correlation_id", "client_id", "outcome", "errors")}
    for side in ("request", "response"):
        message = exchange[side]
        kept[side] = message and {key: message[key] for key in ("size_bytes", "header_version", "body")}
    return json.dumps(kept, sort_keys=True)


def read(*arguments: str) -> list[str]:
    command = [sys.executable, "-m", "kwiresniff", "read", "-o", "jsonl", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def replay(server: socket.socket, path: str) -> None:
    for conversation in conversations(path):
        say(server, conversation)
