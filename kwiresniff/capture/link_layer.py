"""Link layers: what the header of a captured packet carries, and where that starts.

Every layer here, in ``tags``, ``capture_headers`` and ``tunnels`` is a function that takes ``(buffer, start, end)`` and
returns ``(ethertype, offset)`` of what the layer carries, with ethertype ``NOTHING`` for a packet that is too short or
carries nothing we know; it raises NoSegment to have the packet counted under another name. Tags between the link layer
and IP have ethertypes and are layers of their own (``tags``). Ethertypes are the IEEE numbers; link types the numbers
of the tcpdump.org list of LINKTYPE_ values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias

LinkLayer: TypeAlias = Callable[[bytes, int, int], tuple[int, int]]

IPV4 = 0x0800
ARP = 0x0806
IPV6 = 0x86DD
BRIDGED = 0x6558  # an Ethernet frame ("transparent Ethernet bridging")
NOTHING = -1

MPLS = 0x8847
LOWEST_ETHERTYPE = 0x0600  # below it the field is an IEEE 802.3 length and LLC follows
#: Address families of null and loopback: IPv4 is 2, IPv6 10 (Linux), 24 (NetBSD, OpenBSD), 28 (FreeBSD), 30 (macOS).
_FAMILIES = {2: IPV4, 10: IPV6, 24: IPV6, 28: IPV6, 30: IPV6}
_PPP_PROTOCOLS = {0x0021: IPV4, 0x0057: IPV6, 0x0281: MPLS, 0x0283: MPLS}
_PPP_BRIDGED = 0x0031  # RFC 3518: flags and the type of the address, then an Ethernet frame

u16 = struct.Struct(">H").unpack_from


class NoSegment(Exception):
    """A packet that gives no TCP segment; the message is the short name it is counted under."""


def ethernet(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """IEEE 802.3: two addresses and the ethertype."""
    if end - start < 14:
        return NOTHING, end
    return buffer[start + 12] << 8 | buffer[start + 13], start + 14


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
    return u16(buffer, start + 14)[0], start + 16


def linux_cooked_v2(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """LINUX_SLL2, 20 bytes: the protocol first, then interface, ARPHRD type, packet type and address."""
    if end - start < 20:
        return NOTHING, end
    return u16(buffer, start)[0], start + 20


def ppp(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """PPP (RFC 1661), with or without the HDLC-like address and control bytes."""
    if buffer.startswith(b"\xff\x03", start, end):
        start += 2
    if end - start < 2:
        return NOTHING, end
    if buffer[start] & 1:  # the protocol field compressed to one byte
        return _PPP_PROTOCOLS.get(buffer[start], NOTHING), start + 1
    protocol = u16(buffer, start)[0]
    if protocol == _PPP_BRIDGED:
        return BRIDGED, start + 4
    return _PPP_PROTOCOLS.get(protocol, NOTHING), start + 2


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
