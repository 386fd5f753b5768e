"""A recording whose packets have other headers in front of them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from tests.support import packet_builder
from tests.support.paths import CAPTURES
from tests.support.raw_packets import packets

RECORDING = CAPTURES / "java-produce.pcap"
COUNT = 40
#: Behind the packet in a datagram, so that nobody can know the tunnel by its content.
TRAILER = bytes(50)
FRAMES = packets(RECORDING)[:COUNT]


def capture(path: Path, wrap: Callable[[bytes], bytes], link_type: int = 1) -> str:
    """The first packets of the recording, each as ``wrap`` makes it of an Ethernet frame."""
    pieces = [packet_builder.pcap_header(magic=0xA1B23C4D, link_type=link_type)]
    for seconds, nanoseconds, wire, frame in FRAMES:
        data = wrap(frame)
        pieces.append(struct.pack("<IIII", seconds, nanoseconds, len(data), wire + len(data) - len(frame)) + data)
    path.write_bytes(b"".join(pieces))
    return str(path)


def udp(payload: bytes, port: int, length: int | None = None) -> bytes:
    """The payload in a UDP datagram to ``port``, in Ethernet."""
    header = struct.pack(">HHHH", 55555, port, 8 + len(payload) if length is None else length, 0)
    return packet_builder.ethernet(packet_builder.ipv4(header + payload, protocol=17))
