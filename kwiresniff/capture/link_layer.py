"""Link layers: where the network layer starts in a captured packet.

Every function here takes ``(buffer, start, end)`` and returns ``(ethertype, offset)`` of what the link layer
carries, with ethertype ``NOTHING`` for a packet that is too short or carries nothing we know. Ethertypes are
the IEEE numbers; link types the numbers of the tcpdump.org list of LINKTYPE_ values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from kwiresniff.base.light_typing import TypeAlias

LinkLayer: TypeAlias = Callable[[bytes, int, int], tuple[int, int]]

IPV4 = 0x0800
ARP = 0x0806
IPV6 = 0x86DD
BRIDGED = 0x6558  # an Ethernet frame ("transparent Ethernet bridging")
NOTHING = -1

_VLAN_TYPES = frozenset((0x8100, 0x88A8, 0x9100, 0x9200))
_MPLS_TYPES = frozenset((0x8847, 0x8848))
_PPPOE_SESSION = 0x8864
_LOWEST_ETHERTYPE = 0x0600  # below it the field is an IEEE 802.3 length and LLC follows
_SNAP = b"\xaa\xaa\x03\x00\x00\x00"
#: Address families of the null and loopback link types: IPv4 is 2 everywhere; IPv6 differs by system
#: (Linux 10, NetBSD and OpenBSD 24, FreeBSD 28, macOS 30).
_FAMILIES = {2: IPV4, 10: IPV6, 24: IPV6, 28: IPV6, 30: IPV6}
_PPP_PROTOCOLS = {0x0021: IPV4, 0x0057: IPV6}

_u16 = struct.Struct(">H").unpack_from


def ethernet(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """IEEE 802.3: two addresses and the ethertype."""
    if end - start < 14:
        return NOTHING, end
    kind = buffer[start + 12] << 8 | buffer[start + 13]
    if kind in (IPV4, IPV6):
        return kind, start + 14
    return _ethertype(buffer, start + 12, end)


def _ethertype(buffer: bytes, offset: int, end: int) -> tuple[int, int]:
    """The ethertype at ``offset``, past any VLAN tags, MPLS labels, PPPoE and LLC headers."""
    kind = _u16(buffer, offset)[0]
    offset += 2
    while kind in _VLAN_TYPES:
        if end - offset < 4:
            return NOTHING, end
        kind = _u16(buffer, offset + 2)[0]
        offset += 4
    if kind in _MPLS_TYPES:
        return _mpls(buffer, offset, end)
    if kind == _PPPOE_SESSION:
        return ppp(buffer, offset + 6, end)
    if kind < _LOWEST_ETHERTYPE:
        if end - offset >= 8 and buffer.startswith(_SNAP, offset):
            return _u16(buffer, offset + 6)[0], offset + 8
        return NOTHING, end
    return kind, offset


def _mpls(buffer: bytes, offset: int, end: int) -> tuple[int, int]:
    """Skip labels to the one with the bottom-of-stack bit; what follows is known by its version (RFC 4928)."""
    while end - offset > 4:
        offset += 4
        if buffer[offset - 2] & 1:
            return raw_ip(buffer, offset, end)
    return NOTHING, end


def raw_ip(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """No link layer at all: the first four bits are the IP version."""
    if start < end:
        version = buffer[start] >> 4
        if version == 4:
            return IPV4, start
        if version == 6:
            return IPV6, start
    return NOTHING, end


def null(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """BSD loopback: a 4-byte address family in the byte order of the machine that captured, whichever that is."""
    if end - start < 4:
        return NOTHING, end
    family = buffer[start : start + 4]
    number = family[0] if family[1:] == b"\0\0\0" else family[3] if family[:3] == b"\0\0\0" else 0
    return _FAMILIES.get(number, NOTHING), start + 4


def linux_cooked(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """LINUX_SLL, 16 bytes: packet type, ARPHRD type, address length, 8 bytes of address, protocol."""
    if end - start < 16:
        return NOTHING, end
    return _ethertype(buffer, start + 14, end)


def linux_cooked_v2(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """LINUX_SLL2, 20 bytes: the protocol first, then interface, ARPHRD type, packet type and address."""
    if end - start < 20:
        return NOTHING, end
    kind = _u16(buffer, start)[0]
    if kind in _VLAN_TYPES:
        return (_u16(buffer, start + 22)[0], start + 24) if end - start >= 24 else (NOTHING, end)
    return kind, start + 20


def ppp(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """PPP (RFC 1661), with or without the HDLC-like address and control bytes."""
    if buffer.startswith(b"\xff\x03", start, end):
        start += 2
    if end - start < 2:
        return NOTHING, end
    if buffer[start] & 1:  # the protocol field compressed to one byte
        return _PPP_PROTOCOLS.get(buffer[start], NOTHING), start + 1
    return _PPP_PROTOCOLS.get(_u16(buffer, start)[0], NOTHING), start + 2


def only_ipv4(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """No link layer at all, and the link type says IPv4."""
    return IPV4, start


def only_ipv6(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """No link layer at all, and the link type says IPv6."""
    return IPV6, start


NULL = 0
ETHERNET = 1
RAW = frozenset((12, 14, 101))  # LINKTYPE_RAW is 101; 12 and 14 are what some systems write for it
LOOP = 108
LINUX_SLL = 113
LINUX_SLL2 = 276

LINK_LAYERS: dict[int, LinkLayer] = {
    NULL: null,
    ETHERNET: ethernet,
    9: ppp,
    50: ppp,  # PPP in HDLC-like framing
    LOOP: null,
    LINUX_SLL: linux_cooked,
    228: only_ipv4,
    229: only_ipv6,
    LINUX_SLL2: linux_cooked_v2,
    **dict.fromkeys(RAW, raw_ip),
}
