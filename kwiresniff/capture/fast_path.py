"""The common case: one fixed link header, IPv4 without options, TCP, all read by a single precompiled struct.

A ``Front`` is ``(unpack, size, marker, ip, place, mask, word)``: with at least ``size`` captured bytes,
``unpack(buffer, start)`` gives ``(kind, version, total_length, fragment, protocol, flow, seq, ack, words, flags)``. The
packet is the common case when ``kind`` equals ``marker``, ``version`` is 0x45, ``protocol`` 6 and ``fragment & 0x3FFF``
0. ``ip`` is where the IP header starts after ``start``. ``words`` has the TCP header's length in 4-byte words in
its high four bits. Compiled readers see the same ``kind`` in the four big-endian bytes at ``place`` after ``start``:
under ``mask`` they are ``word``.

Addresses and ports lie next to each other in such a packet, so the flow key is one field of the struct.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable

from kwiresniff.base.light_typing import Any, TypeAlias
from kwiresniff.capture.link_layer import ETHERNET, IPV4, LINUX_SLL, LINUX_SLL2, LOOP, NULL, RAW

Front: TypeAlias = tuple[Callable[[bytes, int], tuple[Any, ...]], int, Any, int, int, int, int]

_IPV4_AND_TCP = "BxH2xHxB2x12sLLBB"


def _compile(link: str, marker: Any, ip: int, place: int, mask: int, word: int) -> Front:
    layout = struct.Struct(">" + link + _IPV4_AND_TCP)
    return layout.unpack_from, layout.size, marker, ip, place, mask, word


def _ethertype(link: str, ip: int, place: int) -> Front:
    return _compile(link, IPV4, ip, place, 0xFFFF0000, IPV4 << 16)


def _family(family: int) -> Front:
    return _compile("L", family, 4, 0, 0xFFFFFFFF, family)


_FRONTS: dict[int, Front] = {
    ETHERNET: _ethertype("12xH", 14, 12),
    LINUX_SLL: _ethertype("14xH", 16, 14),
    LINUX_SLL2: _ethertype("H18x", 20, 0),
    LOOP: _family(2),
    **dict.fromkeys(RAW, _compile("0s", b"", 0, 0, 0, 0)),
}
_NULL = {"<": _family(0x02000000), ">": _family(2)}
#: No packet is ever that long, so none is taken for the common case.
NEVER: Front = (struct.Struct("").unpack_from, sys.maxsize, None, 0, 0, 0, 0)


def front(link_type: int, order: str) -> Front:
    """The common case on ``link_type`` (a LINKTYPE_ number); ``order`` (``<`` or ``>``) is the byte order of the file,
    which the null link type follows.
    """
    return _NULL[order] if link_type == NULL else _FRONTS.get(link_type, NEVER)
