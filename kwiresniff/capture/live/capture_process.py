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
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import IO

from kwiresniff.capture.file_problems import MAX_PACKET_BYTES
from kwiresniff.capture.live.source import WAIT_MS, Batch, LiveOptions, Packet
from kwiresniff.capture.pcap import FILE_HEADER_BYTES, MAGICS
from kwiresniff.model import Problem

#: A program that was asked to end and does not is not waited for any longer.
_END_SECONDS = 2.0
#: Enough of what a program said to find its last words in.
_WORDS_BYTES = 4096

#: More than a pipe holds.
READ_BYTES = 1 << 20

_DROPPED = (
    re.compile(rb"(\d+) packets? dropped by kernel"),
    re.compile(rb"Packets received/dropped on interface '.*': \d+/(\d+) "),
)


def _dumpcap(options: LiveOptions, user: str | None) -> list[str]:
    if user is not None:
        raise CaptureProcessError("it cannot be told to become another user")
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


def _tcpdump(options: LiveOptions, user: str | None) -> list[str]:
    kibibytes = options.buffer_bytes >> 10
    arguments = ["-U", "-w", "-", "-i", options.interfaces[0], "-B", str(kibibytes), "-s", str(options.snap_bytes)]
    arguments.append("--time-stamp-precision=nano")
    if user is not None:
        arguments += ["-Z", user]  # who we will be: only then may we end it
    if not options.promiscuous:
        arguments.append("-p")
    return [*arguments, options.expression] if options.expression else arguments


#: In this order, because dumpcap is what systems give ordinary users to capture with.
PROGRAMS: dict[str, Callable[[LiveOptions, str | None], list[str]]] = {"dumpcap": _dumpcap, "tcpdump": _tcpdump}


class CaptureProcessError(Exception):
    """The program did not start to capture; the message is its last words."""


class CaptureProcess:
    """A dumpcap or tcpdump process that captures for us."""

    def __init__(self, program: str, options: LiveOptions, user: str | None = None) -> None:
        """Raises CaptureProcessError when the program is missing, or may not capture as ``user``."""
        self.problems: list[Problem] = []
        self.waiting = 0
        self._program = program
        self._dropped = 0
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        path = shutil.which(program, path=os.environ.get("PATH", "") + os.pathsep + "/usr/sbin")
        if path is None:
            raise CaptureProcessError(f"{program} is not installed")
        # In a session of its own, so that a Ctrl-C meant for us does not end it with packets still in the pipe.
        self._process = subprocess.Popen(
            [path, *PROGRAMS[program](options, user)],
            stdin=subprocess.DEVNULL,
            bufsize=0,  # nothing of it may be read ahead, or waiting for it would wait in vain
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._descriptor = self._process.stdout.fileno()
        header = self._process.stdout.read(FILE_HEADER_BYTES)
        if len(header) < FILE_HEADER_BYTES or header[:4] not in MAGICS:
            self._process.wait()
            raise CaptureProcessError(self._last_words())
        order, self._unit_ns, _, _ = MAGICS[header[:4]]
        self._record = struct.Struct(f"{order}IIII")
        self.link_type = struct.unpack(f"{order}I", header[20:])[0] & 0xFFFF
        self._waiting = select.poll()
        self._waiting.register(self._descriptor, select.POLLIN)

    def batches(
        self, go_on: Callable[[], bool], keep: Callable[[list[Packet]], bool], *, keep_all: bool
    ) -> Iterator[Batch]:
        """The packets of each piece that the program writes, none at a pause; what we have no time for it drops."""
        rest: bytes | None = b""
        while go_on():
            if not self._waiting.poll(WAIT_MS):
                yield 0, []
                continue
            piece = os.read(self._descriptor, READ_BYTES)
            if not piece:
                self._process.wait()
                words = f"{self._program} ended: {self._last_words()}"
                self.problems.append(Problem("interface_down", words))
                return
            packets, rest = self._packets(rest + piece if rest else piece)
            more = keep(packets)
            yield 0, packets
            if not more:
                return
            if rest is None:
                words = f"{self._program} wrote nonsense instead of a packet"
                self.problems.append(Problem("capture_damaged", words))
                return

    def _packets(self, buffer: bytes) -> tuple[list[Packet], bytes | None]:
        """The whole packets in the buffer and what follows them; None when no packet can follow."""
        packets: list[Packet] = []
        at, size = 0, len(buffer)
        while size - at >= self._record.size:
            seconds, fraction, captured, wire = self._record.unpack_from(buffer, at)
            if captured > MAX_PACKET_BYTES:
                return packets, None
            start = at + self._record.size
            end = start + captured
            if end > size:
                break
            packets.append((seconds * 1_000_000_000 + fraction * self._unit_ns, buffer, start, end, wire))
            at = end
        return packets, buffer[at:]

    def dropped(self) -> int:
        """Packets that the program, or the kernel before it, reported as dropped."""
        return self._dropped

    def close(self) -> None:
        """Ends the program and reads what it reports of drops."""
        process = self._process
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            self._drain()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
        if process.poll() is None:
            process.kill()
            process.wait()
        words = self._printed()
        self._dropped = sum(int(match[1]) for pattern in _DROPPED for match in pattern.finditer(words))
        if process.stdout is not None:
            process.stdout.close()
        self._words.close()

    def _drain(self) -> None:
        """Empties the pipe, which the program may be waiting for before it can end."""
        until = time.monotonic() + _END_SECONDS
        while time.monotonic() < until:
            if self._waiting.poll(WAIT_MS) and not os.read(self._descriptor, READ_BYTES):
                return

    def _printed(self) -> bytes:
        self._words.seek(0, os.SEEK_END)
        self._words.seek(max(self._words.tell() - _WORDS_BYTES, 0))
        return self._words.read()

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._printed().decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1].removeprefix(f"{self._program}: ") if lines else f"{self._program} says nothing"
