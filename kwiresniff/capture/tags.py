"""Tags: what lies between a link layer and IP, each kind known by an ethertype.

VLAN (IEEE 802.1Q, 802.1ad), MPLS and its pseudowires (RFC 3032, 4448), PPPoE (RFC 2516), LLC (RFC 1042), provider
backbone bridges (IEEE 802.1ah), NSH (RFC 8300), TRILL (RFC 6325), MACsec (IEEE 802.1AE), tags of vendors. The functions
are layers as in ``link_layer``; ``start`` is behind the ethertype of the tag.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kwiresniff.capture.link_layer import (
    ARP,
    BRIDGED,
    IPV4,
    IPV6,
    LOWEST_ETHERTYPE,
    MPLS,
    NOTHING,
    LinkLayer,
    NoSegment,
    ethernet,
    ppp,
    raw_ip,
    u16,
)
from kwiresniff.capture.sound_headers import find_ip, is_sound_frame, is_sound_ip

#: Tags and bridged frames in a row. Provider networks stack four or five; a hostile packet could stack thousands.
MAX_TAGS: Final = 32

PPP: Final = 0x880B
NSH: Final = 0x894F

_SNAP = b"\xaa\xaa\x03\x00\x00\x00"
_SNAP_BRIDGED = b"\xaa\xaa\x03\x00\x80\xc2"  # RFC 2684: a protocol id and two bytes of padding, then an Ethernet frame
_LLC_IPV4 = b"\x06\x06\x03"
_LLC_ROUTED = b"\xfe\xfe\x03"  # ISO protocols: an NLPID follows
_NLPIDS = {0xCC: IPV4, 0x8E: IPV6}
_PSEUDOWIRE_CONTROL = 0
_ASSOCIATED_CHANNEL = 1
#: The next protocols of NSH (RFC 8300), which are those of VXLAN-GPE too.
NEXT_PROTOCOLS = {1: IPV4, 2: IPV6, 3: BRIDGED, 4: NSH, 5: MPLS}


def llc(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """IEEE 802.2: SNAP with an ethertype or a bridged frame, or IP by its own service access point."""
    if end - start >= 8 and buffer.startswith(_SNAP, start):
        return u16(buffer, start + 6)[0], start + 8
    if end - start >= 10 and buffer.startswith(_SNAP_BRIDGED, start):
        return (BRIDGED, start + 10) if buffer[start + 7] in (1, 7) else (NOTHING, end)
    if buffer.startswith(_LLC_IPV4, start, end):
        return IPV4, start + 3
    if end - start >= 4 and buffer.startswith(_LLC_ROUTED, start):
        return _NLPIDS.get(buffer[start + 3], NOTHING), start + 4
    return NOTHING, end


def mpls(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """Labels up to the bottom of the stack, then IP where that is sound (RFC 4928), else a pseudowire's Ethernet with
    or without a control word.
    """
    offset = start
    while end - offset > 4:
        offset += 4
        if not buffer[offset - 2] & 1:
            continue
        first = buffer[offset] >> 4
        if first == _ASSOCIATED_CHANNEL:
            break
        if first == _PSEUDOWIRE_CONTROL:
            if is_sound_frame(buffer, offset, end) and not is_sound_frame(buffer, offset + 4, end):
                return BRIDGED, offset
            return raw_ip(buffer, offset + 4, end) if is_sound_ip(buffer, offset + 4, end) else (BRIDGED, offset + 4)
        if first in (4, 6) and (is_sound_ip(buffer, offset, end) or not is_sound_frame(buffer, offset, end)):
            return raw_ip(buffer, offset, end)
        return BRIDGED, offset
    return NOTHING, end


def nsh(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 8300: a length in 4-byte words of the header with its context, and a number of the next protocol."""
    if end - start < 8 or buffer[start] >> 6 or (words := buffer[start + 1] & 0x3F) < 2:
        return NOTHING, end
    return NEXT_PROTOCOLS.get(buffer[start + 3], NOTHING), start + words * 4


def _cisco_metadata(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """A version, a length in 4-byte options, the options (one is a security group tag), an ethertype."""
    return _behind(2 + buffer[start + 1] * 4, buffer, start, end) if end - start >= 2 else (NOTHING, end)


def _macsec(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """A SecTAG whose bits say whether an 8-byte channel identifier is in it, and whether what follows is encrypted."""
    if end - start < 1:
        return NOTHING, end
    if buffer[start] & 0x0C:
        raise NoSegment("macsec")
    return _behind(14 if buffer[start] & 0x20 else 6, buffer, start, end)


def _trill(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 6325: 6 bytes and options in 4-byte words, then an Ethernet frame."""
    if end - start < 6:
        return NOTHING, end
    return BRIDGED, start + 6 + ((u16(buffer, start)[0] >> 6) & 0x1F) * 4


def _behind(size: int, buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """The ethertype that follows ``size`` bytes of a tag."""
    offset = start + size
    return (u16(buffer, offset)[0], offset + 2) if end - offset >= 2 else (NOTHING, end)


def _sized(size: int) -> LinkLayer:
    """A tag of ``size`` bytes between its own ethertype and the next one."""
    return lambda buffer, start, end: _behind(size, buffer, start, end)


def frame_behind(size: int) -> LinkLayer:
    """A header of ``size`` bytes before an Ethernet frame."""
    return lambda buffer, start, end: (BRIDGED, start + size)


def pppoe(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 2516: version and type, code, session and length, 6 bytes, then PPP."""
    return ppp(buffer, start + 6, end)


vlan: LinkLayer = _sized(2)

#: The layer behind each ethertype that is not a network layer's.
TAGS: dict[int, LinkLayer] = {
    0x8100: vlan, 0x88A8: vlan, 0x9100: vlan, 0x9200: vlan,
    MPLS: mpls, 0x8848: mpls,
    0x8864: pppoe, PPP: ppp,
    BRIDGED: ethernet,
    0x88E7: frame_behind(4),  # 802.1ah: the service instance
    NSH: nsh,
    0x22F3: _trill,
    0x8903: frame_behind(2),  # Cisco FabricPath: forwarding tag and time to live
    0x8909: _cisco_metadata,
    0x8926: _sized(4),  # Cisco VN-Tag
    0x893F: _sized(6),  # 802.1BR E-TAG
    0x892F: _sized(4),  # HSR (IEC 62439-3)
    0xF1C1: _sized(4),  # 802.1CB R-TAG
    0xDADA: _sized(6),  # Marvell EDSA
    0x8874: _sized(4),  # Broadcom's tag of older switches
    0x88E5: _macsec,
}  # fmt: skip


def network_layer(
    kind: int, buffer: bytes, offset: int, end: int, tags: Mapping[int, LinkLayer] = TAGS
) -> tuple[int, int]:
    """Ethertype and offset behind any ``tags``, or of an unknown tag. Raises NoSegment beyond MAX_TAGS."""
    for _ in range(MAX_TAGS):
        tag = llc if 0 <= kind < LOWEST_ETHERTYPE else tags.get(kind)
        if tag is None:
            if kind in (NOTHING, ARP):
                return kind, offset
            return find_ip(buffer, offset, end) or (kind, offset)
        start = offset
        kind, offset = tag(buffer, offset, end)
        if kind == NOTHING and tag is llc:  # or a tag that begins with a small number
            return find_ip(buffer, start, end) or (kind, offset)
        if kind in (IPV4, IPV6):
            return kind, offset
    raise NoSegment("nested_too_deep")
