"""How many packets a capture file has, without our readers."""

from __future__ import annotations

import struct

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
