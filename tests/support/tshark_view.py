"""What tshark says about a capture, in the same words as what we say."""

from __future__ import annotations

import io
import ipaddress
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from kwiresniff.capture import CaptureSet, open_captures
from kwiresniff.model import Segment, packet_number


class Seen(NamedTuple):
    """One TCP segment, for comparing."""

    packet: int
    timestamp_ns: int
    source: str
    destination: str
    seq: int
    ack: int
    flags: int
    payload: bytes


_FIELDS = (
    "frame.number", "frame.time_epoch", "frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst",
    "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.payload",
)  # fmt: skip


def by_tshark(path: Path, *options: str) -> list[Seen]:
    """Every TCP segment that tshark finds; skips the test where there is no tshark, except in CI."""
    tshark = shutil.which("tshark")
    if tshark is None:
        if os.environ.get("CI"):
            pytest.fail("tshark is not installed, and here it has to be")
        pytest.skip("tshark is not installed")
    command = [tshark, "-n", "-r", str(path), "-Y", "tcp", "-o", "tcp.desegment_tcp_streams:FALSE"]
    command += ["-T", "fields", "-E", "occurrence=l", *options]
    for name in _FIELDS:
        command += ["-e", name]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [_seen(line.split("\t")) for line in output.splitlines()]


def _seen(fields: list[str]) -> Seen:
    number, time, protocols, src4, dst4, src6, dst6, source_port, port, seq, ack, flags, payload = fields
    seconds, fraction = time.split(".")
    layers = protocols.split(":")
    innermost = next(layer for layer in reversed(layers[: layers.index("tcp")]) if layer in ("ip", "ipv6"))
    source, destination = (src4, dst4) if innermost == "ip" else (src6, dst6)
    return Seen(
        int(number),
        int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0")),
        f"{source} {source_port}",
        f"{destination} {port}",
        int(seq),
        int(ack),
        int(flags, 16) & 0xFF,
        bytes.fromhex(payload),
    )


def seen(segment: Segment) -> Seen:
    packet, timestamp_ns, flow, seq, ack, flags, buffer, start, end, _ = segment
    size = (len(flow) - 4) // 2
    source, destination = (ipaddress.ip_address(flow[i : i + size]) for i in (0, size))
    ports = int.from_bytes(flow[-4:-2]), int.from_bytes(flow[-2:])
    return Seen(
        packet_number(packet),
        timestamp_ns,
        f"{source} {ports[0]}",
        f"{destination} {ports[1]}",
        seq,
        ack,
        flags,
        buffer[start:end],
    )


def by_us(path: Path) -> list[Seen]:
    captures = open_captures([str(path)])
    found = [seen(segment) for segment in captures]
    assert {problem.code for problem in captures.problems} <= {"snap_length"}
    return found


def read(data: bytes) -> tuple[list[Segment], CaptureSet]:
    """All segments of a capture given as bytes, through standard input."""
    captures = open_captures(["-"], stdin=io.BytesIO(data))
    return list(captures), captures
