"""Packets from dumpcap or tcpdump, for users who may not capture themselves but may run a program that can.

Each writes a capture to its standard output, which is read as any other; what it dropped it says at its end.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import IO, cast

from kwiresniff.capture.formats import NotACapture, open_reader
from kwiresniff.capture.fronts import NEVER, Front
from kwiresniff.capture.live.source import WAIT_MS, LiveOptions, Packet
from kwiresniff.capture.pcap import FILE_HEADER_BYTES, MAGICS
from kwiresniff.capture.streams import Stream
from kwiresniff.model import Problem, Segment

#: A program that has been told to end and does not is not waited for any longer.
_END_SECONDS = 2.0
#: Enough of what a program said to find its last words in.
_WORDS_BYTES = 4096

_DROPPED = (
    re.compile(rb"(\d+) packets? dropped by kernel"),
    re.compile(rb"Packets received/dropped on interface '.*': \d+/(\d+) "),
)


def _dumpcap(options: LiveOptions) -> list[str]:
    mebibytes = max(options.buffer_bytes >> 20, 1)
    arguments = [
        "-q",
        "-P",
        "-w",
        "-",
        "-i",
        options.interfaces[0],
        "-B",
        str(mebibytes),
        "-s",
        str(options.snap_bytes),
    ]
    if options.expression:
        arguments += ["-f", options.expression]
    return arguments if options.promiscuous else [*arguments, "-p"]


def _tcpdump(options: LiveOptions) -> list[str]:
    kibibytes = options.buffer_bytes >> 10
    arguments = ["-U", "-w", "-", "-i", options.interfaces[0], "-B", str(kibibytes), "-s", str(options.snap_bytes)]
    arguments.append("--time-stamp-precision=nano")
    if not options.promiscuous:
        arguments.append("-p")
    return [*arguments, options.expression] if options.expression else arguments


#: In this order, because dumpcap is what systems give ordinary users to capture with.
PROGRAMS: dict[str, Callable[[LiveOptions], list[str]]] = {"dumpcap": _dumpcap, "tcpdump": _tcpdump}


class PipeFailed(Exception):
    """The program did not start to capture; the message is its last words."""


class _Output:
    """A pipe as a file, whose reader is asked whether to go on while it waits."""

    def __init__(self, descriptor: int) -> None:
        self.go_on: Callable[[], bool] = lambda: True
        self._descriptor = descriptor
        self._waiting = select.poll()
        self._waiting.register(descriptor, select.POLLIN)

    def read(self, size: int) -> bytes:
        while self.go_on():
            if self._waiting.poll(WAIT_MS):
                return os.read(self._descriptor, size)
        return b""

    def close(self) -> None:
        """The process is closed by whom it belongs to."""


class _Packets:
    """A decoder that leaves packets as they are: each becomes a segment with its link type for a flow."""

    def front(self, link_type: int, order: str, /) -> Front:
        return NEVER

    def segment(
        self, packet: int, timestamp_ns: int, link_type: int, buffer: bytes, start: int, end: int, missing: int, /
    ) -> Segment | None:
        return packet, timestamp_ns, b"", 0, 0, 0, buffer, start, end, missing


class Pipe:
    """One program that captures for us."""

    def __init__(self, program: str, options: LiveOptions) -> None:
        """Raises PipeFailed when it is not there or may not capture either."""
        self.problems: list[Problem] = []
        self._program = program
        self._dropped = 0
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        path = shutil.which(program, path=os.environ.get("PATH", "") + os.pathsep + "/usr/sbin")
        if path is None:
            raise PipeFailed(f"{program} is not installed")
        # In a session of its own, so that a Ctrl-C meant for us does not end it with packets still in the pipe.
        self._process = subprocess.Popen(
            [path, *PROGRAMS[program](options)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._output = _Output(self._process.stdout.fileno())
        self._stream = Stream(program, cast("IO[bytes]", self._output))  # type: ignore[arg-type]
        header = self._stream.peek(FILE_HEADER_BYTES)
        if len(header) < FILE_HEADER_BYTES or header[:4] not in MAGICS:
            self._process.wait()
            raise PipeFailed(self._last_words())
        order = "little" if MAGICS[header[:4]][0] == "<" else "big"
        self.link_type = int.from_bytes(header[20:22] if order == "little" else header[22:24], order)  # type: ignore[arg-type]

    def packets(self, go_on: Callable[[], bool]) -> Iterator[Packet]:
        """Every packet the program captures."""
        asked_to_end = False

        def still() -> bool:
            nonlocal asked_to_end
            asked_to_end = asked_to_end or not go_on()
            return not asked_to_end

        self._output.go_on = still
        damages: list[Problem] = []
        with contextlib.suppress(NotACapture):
            reader = open_reader(self._stream, _Packets(), 0, damages.append)
            for _, timestamp_ns, _, _, _, _, buffer, start, end, missing in reader.segments():
                yield timestamp_ns, buffer, start, end, end - start + missing
        if not asked_to_end:
            self._process.wait()
            self.problems += damages
            words = f"{self._program} ended: {self._last_words()}"
            self.problems.append(Problem("interface_down", words))

    def dropped(self) -> int:
        return self._dropped

    def close(self) -> None:
        """Ends the program and hears what it has to say about drops."""
        process = self._process
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            self._drain()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
        if process.poll() is None:
            process.kill()
            process.wait()
        words = self._said()
        self._dropped = sum(int(match[1]) for pattern in _DROPPED for match in pattern.finditer(words))
        if process.stdout is not None:
            process.stdout.close()
        self._words.close()

    def _drain(self) -> None:
        """Empties the pipe, which the program may be waiting for before it can end."""
        until = time.monotonic() + _END_SECONDS
        self._output.go_on = lambda: time.monotonic() < until
        while self._output.read(1 << 16):
            pass

    def _said(self) -> bytes:
        self._words.seek(0, os.SEEK_END)
        self._words.seek(max(self._words.tell() - _WORDS_BYTES, 0))
        return self._words.read()

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._said().decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1].removeprefix(f"{self._program}: ") if lines else f"{self._program} says nothing"
