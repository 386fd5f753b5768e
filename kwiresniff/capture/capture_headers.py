"""Link types that few captures have: headers that capturing systems add, and networks that are no Ethernet.

PKTAP (macOS), NFLOG (Linux), PPI, 802.11, DSA tags of switches, HDLC, frame relay, ATM, pf's log, IPsec's interface of
OpenBSD, Juniper's headers, and others of the list of tcpdump.org. The functions are layers as in ``link_layer``; tables
in headers name link types as DLT_ values, which differ from LINKTYPE_ values only in raw IP.
"""

from __future__ import annotations

from typing import Final

from kwiresniff.capture.link_layer import (
    BRIDGED,
    IPV4,
    IPV6,
    LINK_LAYERS,
    NOTHING,
    LinkLayer,
    NoSegment,
    ethernet,
    ppp,
    raw_ip,
    u16,
)
from kwiresniff.capture.tags import frame_behind, llc, mpls, pppoe
from kwiresniff.capture.unread import inner_link_type_name, link_type_name
from kwiresniff.capture.wireless import avs, ieee80211, prism, radiotap

PKTAP: Final = 258
#: What Apple's tools write for PKTAP, which others use for what they like.
USER2: Final = 149

_PKTAP_BYTES = 108
_PPI_BYTES = 8
_NFLOG_PAYLOAD = 9
#: Fields of an NFLOG packet; the kernel has two dozen kinds.
MAX_NFLOG_FIELDS: Final = 64
_JUNIPER = b"MGC"
_JUNIPER_NO_LINK_LAYER = 0x02
_JUNIPER_EXTENSIONS = 0x80
#: Record types of ERF (Endace) that hold an Ethernet frame.
_ERF_ETHERNET = frozenset((2, 11, 16, 20, 32, 33))


def _inner(link_type: int, buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """A packet of ``link_type`` behind a header; one header is not behind another."""
    layer = LINK_LAYERS.get(link_type) or _BEHIND_HEADERS.get(link_type)
    if layer is None:
        raise NoSegment(inner_link_type_name(link_type))
    return layer(buffer, start, end) if start < end else (NOTHING, end)


def pktap(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """Apple's header, little-endian: its length, the type of what follows, its link type, and about the process."""
    if not _is_pktap(buffer, start, end):
        return NOTHING, end
    size, _, link_type = (int.from_bytes(buffer[at : at + 4], "little") for at in range(start, start + 12, 4))
    return _inner(link_type, buffer, start + size, end)


def _is_pktap(buffer: bytes, start: int, end: int) -> bool:
    if end - start < 12:
        return False
    size = int.from_bytes(buffer[start : start + 4], "little")
    return _PKTAP_BYTES <= size <= 1024 and buffer.startswith(b"\1\0\0\0", start + 4)


def user2(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """PKTAP, if it is that."""
    if _is_pktap(buffer, start, end):
        return pktap(buffer, start, end)
    raise NoSegment(link_type_name(USER2))


def ppi(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """Version 0, flags, the header's length, the link type, both little-endian; then fields, then the packet."""
    if end - start < _PPI_BYTES or buffer[start]:
        return NOTHING, end
    size = int.from_bytes(buffer[start + 2 : start + 4], "little")
    link_type = int.from_bytes(buffer[start + 4 : start + 8], "little")
    return _inner(link_type, buffer, start + size, end) if size >= _PPI_BYTES else (NOTHING, end)


def nflog(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """Family, version 0, group; then fields of length and type, in the byte order of the machine, one the packet."""
    if end - start < 8 or buffer[start + 1]:
        return NOTHING, end
    for order in ("little", "big"):
        offset = start + 4
        for _ in range(MAX_NFLOG_FIELDS):
            if end - offset < 4:
                break
            size = int.from_bytes(buffer[offset : offset + 2], order)
            kind = int.from_bytes(buffer[offset + 2 : offset + 4], order)
            if size < 4:
                break
            if kind & 0x7FFF == _NFLOG_PAYLOAD:
                return raw_ip(buffer, offset + 4, end)
            offset += (size + 3) & ~3
    return NOTHING, end


def hdlc(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """Cisco's HDLC: address, control, ethertype; PPP where its address stands."""
    if buffer.startswith(b"\xff\x03", start, end):
        return ppp(buffer, start, end)
    return (u16(buffer, start + 2)[0], start + 4) if end - start >= 4 else (NOTHING, end)


def frame_relay(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 2427: an address of 2 to 4 bytes, a control byte, perhaps padding, an NLPID; or Cisco's, an ethertype."""
    offset = start
    while offset < end and not buffer[offset] & 1 and offset - start < 4:
        offset += 1
    offset += 1
    if end - offset < 4:
        return NOTHING, end
    if buffer[offset] != 3:
        return u16(buffer, offset)[0], offset + 2
    offset += 1 if buffer[offset + 1] else 2
    nlpid = buffer[offset]
    if nlpid == 0x80 and end - offset >= 6:  # SNAP: organisation and protocol
        return u16(buffer, offset + 4)[0], offset + 6
    return {0xCC: IPV4, 0x8E: IPV6}.get(nlpid, NOTHING), offset + 1


def _behind(size: int, layer: LinkLayer) -> LinkLayer:
    """``layer`` behind a header of ``size`` bytes."""
    return lambda buffer, start, end: layer(buffer, start + size, end) if end - start > size else (NOTHING, end)


def pf_log(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """A header whose first byte is its length without the padding to 4 bytes, then IP."""
    return raw_ip(buffer, start + ((buffer[start] + 3) & ~3), end) if start < end else (NOTHING, end)


def _juniper(layer: LinkLayer) -> LinkLayer:
    """Juniper's header before ``layer``: a magic number, flags, perhaps extensions; a flag says that there is no link
    layer, but 4 bytes."""

    def juniper(buffer: bytes, start: int, end: int) -> tuple[int, int]:
        if end - start < 6 or not buffer.startswith(_JUNIPER, start):
            return NOTHING, end
        flags, offset = buffer[start + 3], start + 4
        if flags & _JUNIPER_EXTENSIONS:
            offset += 2 + u16(buffer, offset)[0]
        if flags & _JUNIPER_NO_LINK_LAYER:
            return raw_ip(buffer, offset + 4, end)
        return layer(buffer, offset, end)

    return juniper


def erf(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """Endace's record: 16 bytes, extension headers of 8 while their first bit says so, for Ethernet 2 of padding."""
    if end - start < 16:
        return NOTHING, end
    more, kind, offset = buffer[start + 8] & 0x80, buffer[start + 8] & 0x7F, start + 16
    while more and offset < end:
        more = buffer[offset] & 0x80
        offset += 8
    return (BRIDGED, offset + 2) if kind in _ERF_ETHERNET else (NOTHING, end)


def _ethertype_at(place: int, rest: int = 0) -> LinkLayer:
    """A header with the ethertype at ``place`` and ``rest`` bytes more."""

    def layer(buffer: bytes, start: int, end: int) -> tuple[int, int]:
        at = start + place
        return (u16(buffer, at)[0], at + 2 + rest) if end - at >= 2 else (NOTHING, end)

    return layer


_BEHIND_HEADERS: dict[int, LinkLayer] = {
    51: pppoe,
    100: llc,  # ATM (RFC 2684)
    104: hdlc,
    105: ieee80211,
    107: frame_relay,
    119: prism,
    127: radiotap,
    163: avs,
    219: mpls,
}

#: By link type.
CAPTURE_HEADERS: dict[int, LinkLayer] = {
    **_BEHIND_HEADERS,
    10: _behind(13, llc),  # FDDI
    109: _behind(12, raw_ip),  # OpenBSD's enc
    117: pf_log,
    123: _behind(4, llc),  # SunATM
    138: _ethertype_at(16),  # Apple's IP over IEEE 1394
    USER2: user2,
    166: _behind(2, ppp),  # pppd's: a direction in place of the address
    178: _juniper(ethernet),
    179: _juniper(ppp),
    180: _juniper(frame_relay),
    181: _juniper(hdlc),
    192: ppi,
    197: erf,
    204: _behind(1, ppp),
    205: _behind(1, hdlc),
    206: _behind(1, frame_relay),
    226: _behind(24, raw_ip),  # Solaris' ipnet
    239: nflog,
    240: frame_behind(4),  # netANALYZER
    241: frame_behind(12),  # netANALYZER with preamble
    242: _ethertype_at(40, 2),  # IP over InfiniBand
    PKTAP: pktap,
    274: frame_behind(8),  # Ethernet with preamble
    281: _ethertype_at(16),  # DSA, a switch's tag behind the addresses: Broadcom
    282: frame_behind(4),  # DSA: Broadcom, before the frame
    284: _ethertype_at(16),  # DSA: Marvell
    285: _ethertype_at(20),  # DSA: Marvell, with an ethertype of its own
}
