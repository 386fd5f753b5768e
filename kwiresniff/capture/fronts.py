"""The common case: one fixed link header, IPv4 without options, TCP, all read by a single precompiled struct.

A ``Front`` is ``(unpack, size, marker, ip)``: with at least ``size`` captured bytes, ``unpack(buffer, start)``
gives ``(kind, version, total_length, fragment, protocol, flow, seq, ack, words, flags)``. The packet is the
common case when ``kind`` equals ``marker``, ``version`` is 0x45, ``protocol`` 6 and ``fragment & 0x3FFF`` 0.
``ip`` is where the IP header starts after ``start``. ``words`` has the TCP header's length in 4-byte words in
its high four bits.

Addresses and ports lie next to each other in such a packet, so the flow key is one field of the struct.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from kwiresniff.capture.link import ETHERNET, IPV4, LINUX_SLL, LINUX_SLL2, LOOP, NULL, RAW

Front: TypeAlias = tuple[Callable[[bytes, int], tuple[Any, ...]], int, Any, int]

_IPV4_AND_TCP = "BxH2xHxB2x12sLLBB"


def _compile(link: str, marker: Any, ip: int) -> Front:
    layout = struct.Struct(">" + link + _IPV4_AND_TCP)
    return layout.unpack_from, layout.size, marker, ip


_FRONTS: dict[int, Front] = {
    ETHERNET: _compile("12xH", IPV4, 14),
    LINUX_SLL: _compile("14xH", IPV4, 16),
    LINUX_SLL2: _compile("H18x", IPV4, 20),
    LOOP: _compile("L", 2, 4),
    **dict.fromkeys(RAW, _compile("0s", b"", 0)),
}
_NULL = {"<": _compile("L", 0x02000000, 4), ">": _compile("L", 2, 4)}
#: No packet is ever that long, so none is taken for the common case.
NEVER: Front = (struct.Struct("").unpack_from, sys.maxsize, None, 0)


def front(link_type: int, order: str) -> Front:
    """The common case on ``link_type``; ``order`` is the file's byte order, which the null link type follows."""
    return _NULL[order] if link_type == NULL else _FRONTS.get(link_type, NEVER)
