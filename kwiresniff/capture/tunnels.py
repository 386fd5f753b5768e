"""Tunnels that captures from clouds and Kubernetes carry: where the inner packet starts.

Every function takes ``(buffer, start, end)`` of the tunnel's own header and returns ``(ethertype, offset)`` as
the link layers do, ``NOTHING`` when the header is cut or is not that tunnel's.
"""

from __future__ import annotations

import struct

from kwiresniff.capture.link_layer import BRIDGED, NOTHING, LinkLayer

_GRE_CHECKSUM = 0x8000
_GRE_ROUTING = 0x4000
_GRE_KEY = 0x2000
_GRE_SEQUENCE = 0x1000
_ERSPAN_2 = 0x88BE  # also type I, which has no header of its own and is known by the missing sequence number
_ERSPAN_3 = 0x22EB

_u16x2 = struct.Struct(">HH").unpack_from


def vxlan(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 7348: 8 bytes, the bit that says the network identifier is valid always set; then Ethernet."""
    if end - start < 8 or not buffer[start] & 0x08:
        return NOTHING, end
    return BRIDGED, start + 8


def geneve(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 8926: version and option length (in 4-byte words), flags, protocol type, identifier, options."""
    if end - start < 8 or buffer[start] >> 6:
        return NOTHING, end
    offset = start + 8 + (buffer[start] & 0x3F) * 4
    kind = _u16x2(buffer, start)[1]
    return (kind, offset) if offset < end else (NOTHING, end)


def gre(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 2784 and 2890, version 0: checksum, key and sequence number are 4 bytes each where present."""
    if end - start < 4:
        return NOTHING, end
    flags, kind = _u16x2(buffer, start)
    if flags & 7 or flags & _GRE_ROUTING:
        return NOTHING, end
    offset = start + 4
    for flag in (_GRE_CHECKSUM, _GRE_KEY, _GRE_SEQUENCE):
        if flags & flag:
            offset += 4
    if kind == _ERSPAN_2:
        kind = BRIDGED
        if flags & _GRE_SEQUENCE:
            offset += 8
    elif kind == _ERSPAN_3:
        kind = BRIDGED
        # The last bit of the 12-byte header announces 8 more bytes specific to the platform.
        offset += 20 if offset + 12 <= end and buffer[offset + 11] & 1 else 12
    return (kind, offset) if offset < end else (NOTHING, end)


#: UDP destination ports of the tunnels; 8472 is what Linux used for VXLAN before 4789 was assigned, and flannel
#: still does.
UDP_TUNNELS: dict[int, LinkLayer] = {4789: vxlan, 8472: vxlan, 6081: geneve}
