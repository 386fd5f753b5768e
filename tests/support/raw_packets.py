"""The packets of a capture file, without our readers."""

from __future__ import annotations

import struct
from pathlib import Path

Packet = tuple[int, int, int, bytes]

#: The byte order a classic pcap's magic number is in; micro- and nanosecond forms.
PCAP_ORDER = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}
ENHANCED_PACKET_BLOCK = 6


def count_packets(data: bytes) -> int:
    """Packets of a pcap or little-endian pcapng file, counted by their lengths alone."""
    order = PCAP_ORDER.get(data[:4])
    count = 0
    if order is not None:
        at = 24
        while at < len(data):
            at += 16 + struct.unpack_from(order + "I", data, at + 8)[0]
            count += 1
    else:
        at = 0
        while at < len(data):
            block_type, length = struct.unpack_from("<II", data, at)
            count += block_type == ENHANCED_PACKET_BLOCK
            at += length
    assert at == len(data)
    return count


def packets(path: Path) -> list[Packet]:
    """Seconds, nanoseconds, length on the wire and bytes of each packet of a little-endian pcap file."""
    data, at, found = path.read_bytes(), 24, []
    unit = {b"\xd4\xc3\xb2\xa1": 1000, b"\x4d\x3c\xb2\xa1": 1}[data[:4]]
    while at < len(data):
        seconds, fraction, captured, wire = struct.unpack_from("<IIII", data, at)
        at += 16 + captured
        found.append((seconds, fraction * unit, wire, data[at - captured : at]))
    return found
