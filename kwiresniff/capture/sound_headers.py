"""Tests of bytes for being an IP packet or an Ethernet frame with one, for headers that do not say what follows them.

``room`` is how many bytes of the packet there were on the wire, -1 where that is not known. Where it is, the length in
the IP header has to agree with it; else the checksum of IPv4 has to be right.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from kwiresniff.capture.link_layer import IPV4, IPV6

#: What may follow IP in a frame: a checksum; behind less than the smallest frame, padding up to that.
_FRAME_CHECK_BYTES: Final = 4
_SMALLEST_FRAME_BYTES: Final = 64
#: Protocols of IP that carry what is looked for here, or carry what carries it (IANA).
_TRANSPORTS: Final = frozenset((0, 1, 4, 6, 17, 41, 43, 44, 47, 50, 51, 58, 60, 132))
_TCP: Final = 6
#: How far a packet is looked for behind a header that is not known; headers of mirrors have 4 to 40 bytes.
SEARCHED_BYTES: Final = 64
_IPV4_BEGINS: Final = b"\x08\x00\x45"  # its ethertype, version 4 without options
_IPV6_BEGINS: Final = b"\x86\xdd\x60"
_VLANS: Final = frozenset((0x8100, 0x88A8))
_MAX_VLANS: Final = 3

_u16 = Struct(">H").unpack_from


def is_sound_ip(buffer: bytes, start: int, end: int, room: int = -1) -> bool:
    """Whether an IP packet lies there."""
    if end - start < 20:
        return False
    first = buffer[start]
    if first >> 4 == 4:
        header, total, protocol = (first & 15) * 4, _u16(buffer, start + 2)[0], buffer[start + 9]
        stop = start + header
        if header < 20 or stop > end or protocol not in _TRANSPORTS or 0 < total < header:
            return False
        if room >= 0:
            return _fits(total, room) if total else protocol == _TCP
        return not (buffer[start + 10] or buffer[start + 11]) or _sums_up(buffer, start, stop)
    if first >> 4 == 6 and end - start >= 40:
        length = _u16(buffer, start + 4)[0]
        return buffer[start + 6] in _TRANSPORTS and (room < 0 or not length or _fits(length + 40, room))
    return False


def is_sound_frame(buffer: bytes, start: int, end: int, room: int = -1) -> bool:
    """Whether an Ethernet frame with IP lies there, VLAN tags or not."""
    at = start + 12
    for _ in range(_MAX_VLANS):
        if end - at < 2:
            return False
        kind = _u16(buffer, at)[0]
        if kind in _VLANS:
            at += 4
            continue
        left = room - (at + 2 - start) if room >= 0 else -1
        return kind in (IPV4, IPV6) and is_sound_ip(buffer, at + 2, end, left)
    return False


def find_ip(buffer: bytes, start: int, end: int, room: int = -1) -> tuple[int, int] | None:
    """Ethertype and offset of a sound IP packet behind its ethertype in the first SEARCHED_BYTES, or None."""
    limit = min(end, start + SEARCHED_BYTES)
    at = buffer.find(_IPV4_BEGINS, start, limit)
    while at >= 0:
        at += 2
        left = room - (at - start) if room >= 0 else -1
        if is_sound_ip(buffer, at, end, left) and _sums_up(buffer, at, at + 20):
            return IPV4, at
        at = buffer.find(_IPV4_BEGINS, at, limit)
    at = buffer.find(_IPV6_BEGINS, start, limit)
    while at >= 0:
        at += 2
        if is_sound_ip(buffer, at, end, room - (at - start) if room >= 0 else end - at):
            return IPV6, at
        at = buffer.find(_IPV6_BEGINS, at, limit)
    return None


def _sums_up(buffer: bytes, start: int, stop: int) -> bool:
    """Whether the checksum of an IPv4 header is right (RFC 1071)."""
    return (sum(buffer[start:stop:2]) * 256 + sum(buffer[start + 1 : stop : 2])) % 0xFFFF == 0


def _fits(length: int, room: int) -> bool:
    return length <= room and (room - length <= _FRAME_CHECK_BYTES or room <= _SMALLEST_FRAME_BYTES)
