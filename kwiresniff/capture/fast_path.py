"""The common case: one fixed link header, IPv4 without options, TCP.

A ``Front`` is ``(size, ip, place, mask, word)``: a packet with at least ``size`` captured bytes whose four big-endian
bytes at ``place`` are ``word`` under ``mask`` has an IPv4 header at ``ip``. It is the common case where that header has
20 bytes and is of TCP and of no fragment: addresses and ports lie next to each other, so the flow key is one slice.
"""

from __future__ import annotations

import sys
from typing import TypeAlias

from kwiresniff.capture.link_layer import ETHERNET, IPV4, LINUX_SLL, LINUX_SLL2, LOOP, NULL, RAW

Front: TypeAlias = tuple[int, int, int, int, int]

#: Of IPv4 without options, and of TCP up to its flags.
_IPV4_AND_TCP_BYTES = 34


def _ethertype(ip: int, place: int) -> Front:
    return ip + _IPV4_AND_TCP_BYTES, ip, place, 0xFFFF0000, IPV4 << 16


def _family(family: int) -> Front:
    return 4 + _IPV4_AND_TCP_BYTES, 4, 0, 0xFFFFFFFF, family


_FRONTS: dict[int, Front] = {
    ETHERNET: _ethertype(14, 12),
    LINUX_SLL: _ethertype(16, 14),
    LINUX_SLL2: _ethertype(20, 0),
    LOOP: _family(2),
    **dict.fromkeys(RAW, (_IPV4_AND_TCP_BYTES, 0, 0, 0, 0)),
}
_NULL = {"<": _family(0x02000000), ">": _family(2)}
#: No packet is ever that long, so none is taken for the common case.
NEVER: Front = (sys.maxsize, 0, 0, 0, 0)


def front(link_type: int, order: str) -> Front:
    """The common case on a LINKTYPE_ number; ``order`` (``<`` or ``>``) is the byte order of the file."""
    return _NULL[order] if link_type == NULL else _FRONTS.get(link_type, NEVER)
