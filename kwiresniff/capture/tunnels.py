"""Tunnels over IP and UDP: where the inner packet starts.

VXLAN (RFC 7348) with its group policy and generic protocol (drafts smith-vxlan-group-policy, ietf-nvo3-vxlan-gpe),
Geneve (RFC 8926), GTP-U (3GPP TS 29.281), TZSP, GUE (draft ietf-intarea-gue) and IP alone in UDP, MPLS and GRE in UDP
(RFC 7510, 8086), L2TP (RFC 2661, 3931), LISP (RFC 9300), CAPWAP (RFC 5415), GRE (RFC 2784, 2890, 2637) with ERSPAN,
WCCP and EoIP, EtherIP (RFC 3378). The functions are layers as in ``link_layer``; ``start`` is where the tunnel's own
header begins.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from kwiresniff.capture.capture_headers import CAPTURE_HEADERS
from kwiresniff.capture.link_layer import (
    ARP,
    BRIDGED,
    IPV4,
    IPV6,
    NOTHING,
    LinkLayer,
    NoSegment,
    only_ipv4,
    only_ipv6,
    ppp,
    raw_ip,
    u16,
)
from kwiresniff.capture.sound_headers import find_ip, is_sound_frame, is_sound_ip
from kwiresniff.capture.tags import NEXT_PROTOCOLS, TAGS, frame_behind, mpls, network_layer
from kwiresniff.capture.unread import may_be_name
from kwiresniff.capture.wireless import ieee80211

_GRE_CHECKSUM = 0x8000
_GRE_ROUTING = 0x4000
_GRE_KEY = 0x2000
_GRE_SEQUENCE = 0x1000
_GRE_ACKNOWLEDGEMENT = 0x0080
_ERSPAN_2 = 0x88BE  # also type I, which has no header of its own and is known by the missing sequence number
_ERSPAN_3 = 0x22EB
_WCCP = 0x883E
_EOIP = 0x20016400  # flags and type of MikroTik's Ethernet over IP: GRE version 1 by its flags alone

_VXLAN_VALID = 0x08
_VXLAN_NEXT_PROTOCOL = 0x04
_VXLAN_MANAGEMENT = 0x01

#: Extension headers of GTP-U in a row; TS 29.281 names six kinds.
MAX_GTP_EXTENSIONS: Final = 16
#: Tagged fields of TZSP; eleven kinds are known.
MAX_TZSP_FIELDS: Final = 64

_u16x2 = struct.Struct(">HH").unpack_from


def vxlan(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 7348: a header of 8 bytes, then Ethernet, or the next protocol of the generic protocol extension."""
    if end - start < 8 or not buffer[start] & _VXLAN_VALID:
        return NOTHING, end
    if buffer[start] & _VXLAN_NEXT_PROTOCOL and buffer[start + 3] in NEXT_PROTOCOLS:
        return (NOTHING, end) if buffer[start] & _VXLAN_MANAGEMENT else (NEXT_PROTOCOLS[buffer[start + 3]], start + 8)
    return BRIDGED, start + 8


def geneve(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 8926: version and option length (in 4-byte words), flags, protocol type, identifier, options."""
    if end - start < 8 or buffer[start] >> 6:
        return NOTHING, end
    offset = start + 8 + (buffer[start] & 0x3F) * 4
    kind = _u16x2(buffer, start)[1]
    return (kind, offset) if offset < end else (NOTHING, end)


def gtp_u(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """TS 29.281, a G-PDU: flags, type, length, tunnel; with any of three flags 4 bytes more, and extension headers."""
    if end - start < 8 or buffer[start] & 0xF0 != 0x30 or buffer[start + 1] != 0xFF:
        return NOTHING, end
    offset = start + 8
    if buffer[start] & 7:
        following = buffer[start + 11] if end - start >= 12 and buffer[start] & 4 else 0
        offset += 4
        for _ in range(MAX_GTP_EXTENSIONS):
            if not following:
                break
            size = buffer[offset] * 4 if offset < end else 0
            if not size or offset + size > end:
                return NOTHING, end
            offset += size
            following = buffer[offset - 1]
        if following:
            return NOTHING, end
    return raw_ip(buffer, offset, end) if is_sound_ip(buffer, offset, end, end - offset) else (BRIDGED, offset)


def tzsp(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """TaZmen Sniffer Protocol: version, type (0 and 1 have a packet), encapsulation, fields, the packet."""
    if end - start < 4 or buffer[start] != 1 or buffer[start + 1] > 1:
        return NOTHING, end
    offset = start + 4
    for _ in range(MAX_TZSP_FIELDS):
        if offset >= end:
            break
        field = buffer[offset]
        if field == 1:  # the end of the fields
            return _tzsp_packet(u16(buffer, start + 2)[0], buffer, offset + 1, end)
        if field == 0:  # padding
            offset += 1
        else:
            offset += 2 + buffer[offset + 1] if offset + 1 < end else 2
    return NOTHING, end


def _tzsp_packet(encapsulation: int, buffer: bytes, start: int, end: int) -> tuple[int, int]:
    # Ethernet, and 802.11 without anything, behind a Prism and behind an AVS header.
    link_type = {0x01: 1, 0x12: 105, 0x77: 119, 0x7F: 163}.get(encapsulation)
    if link_type is None:
        return NOTHING, end
    return (BRIDGED, start) if link_type == 1 else CAPTURE_HEADERS[link_type](buffer, start, end)


def gue(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """GUE: variant 1 is IP itself, as in foo over UDP; variant 0 has a header with a protocol of IP."""
    if start < end and buffer[start] >> 6 == 1:
        return raw_ip(buffer, start, end)
    if end - start < 4 or buffer[start] & 0xE0:  # another variant, or a control message
        return NOTHING, end
    inner = IP_TUNNELS.get(buffer[start + 1])
    offset = start + 4 + (buffer[start] & 0x1F) * 4
    return inner(buffer, offset, end) if inner is not None and offset < end else (NOTHING, end)


def l2tp(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """L2TP over UDP: version 2 (RFC 2661) carries PPP, version 3 (RFC 3931) Ethernet; control messages nothing."""
    if end - start < 8 or buffer[start] & 0x80:
        return NOTHING, end
    flags = u16(buffer, start)[0]
    version = flags & 15
    if version == 3:
        return l2tp_v3(buffer, start + 4, end)
    if version != 2:
        return NOTHING, end
    offset = start + 6 + (2 if flags & 0x4000 else 0) + (4 if flags & 0x0800 else 0)
    if flags & 0x0200:
        offset += 2 + (u16(buffer, offset)[0] if end - offset >= 2 else 0)
    return ppp(buffer, offset, end)


def l2tp_v3(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """The session, a cookie of 0, 4 or 8 bytes and perhaps 4 more, which both ends know: the Ethernet frame says."""
    for offset in (start + 4, start + 8, start + 12, start + 16):
        if is_sound_frame(buffer, offset, end):
            return BRIDGED, offset
    return NOTHING, end


def lisp(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 9300: 8 bytes, then IP."""
    return raw_ip(buffer, start + 8, end)


def capwap(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 5415, data: the header's length in 4-byte words, 802.3 or what the wireless binding says."""
    if end - start < 8 or buffer[start]:  # DTLS, or another version
        return NOTHING, end
    words = u16(buffer, start + 1)[0]
    flags = buffer[start + 3]
    offset = start + (words >> 11) * 4
    if flags & 0x80:  # a fragment
        return NOTHING, end
    if not buffer[start + 2] & 1:
        return BRIDGED, offset
    return ieee80211(buffer, offset, end)


def gre(buffer: bytes, start: int, end: int) -> tuple[int, int]:
    """RFC 2784 and 2890, version 0, with optional checksum, key and sequence number. Version 1 is PPTP's (RFC 2637)."""
    if end - start < 4:
        return NOTHING, end
    flags, kind = _u16x2(buffer, start)
    if flags << 16 | kind == _EOIP:
        return BRIDGED, start + 8
    if flags & 6 or flags & _GRE_ROUTING:
        return NOTHING, end
    offset = start + 4
    for flag in (_GRE_CHECKSUM, _GRE_KEY, _GRE_SEQUENCE):
        if flags & flag:
            offset += 4
    if flags & 1 and flags & _GRE_ACKNOWLEDGEMENT:
        offset += 4
    if kind == _ERSPAN_2:
        kind = BRIDGED
        if flags & _GRE_SEQUENCE:
            offset += 8
    elif kind == _ERSPAN_3:
        kind = BRIDGED
        # The last bit of the 12-byte header announces 8 more bytes specific to the platform.
        offset += 20 if offset + 12 <= end and buffer[offset + 11] & 1 else 12
    elif kind == _WCCP:
        return raw_ip(buffer, offset if is_sound_ip(buffer, offset, end) else offset + 4, end)  # version 1, or 2
    return (kind, offset) if offset < end else (NOTHING, end)


#: By the protocol number of IP.
IP_TUNNELS: dict[int, LinkLayer] = {
    4: only_ipv4, 41: only_ipv6, 47: gre, 97: frame_behind(2), 115: l2tp_v3, 137: mpls,
}  # fmt: skip

#: UDP destination ports of the tunnels; 8472 is VXLAN's of Linux before 4789 was assigned, and flannel's.
UDP_TUNNELS: dict[int, LinkLayer] = {4789: vxlan, 8472: vxlan, 6081: geneve}

#: Ports of tunnels whose headers say so little that the length of the packet in them has to be right.
_CHECKED_PORTS: dict[int, LinkLayer] = {
    1701: l2tp, 4341: lisp, 4754: gre, 5247: capwap, 5555: gue, 6080: gue, 6635: mpls, 37008: tzsp,
}  # fmt: skip


_BY_HEADER: dict[str, LinkLayer] = {"vxlan": vxlan, "geneve": geneve, "gtp": gtp_u}


def udp_tunnel(buffer: bytes, start: int, end: int, tags: Mapping[int, LinkLayer] = TAGS) -> tuple[int, int]:
    """The content of a UDP datagram by a tunnel's port, else by a sound tunnel header whose innermost packet ends where
    the datagram does. Raises NoSegment.
    """
    if end - start <= 8:
        raise NoSegment("udp")
    port = u16(buffer, start + 2)[0]
    by_port = UDP_TUNNELS.get(port)
    if by_port is not None:
        return by_port(buffer, start + 8, end)
    start += 8
    name = _by_header(buffer, start, end)
    length = u16(buffer, start - 4)[0]
    stop = start - 8 + length if length else end
    kind = NOTHING
    for tunnel in (_CHECKED_PORTS.get(port), _BY_HEADER.get(name)):
        if tunnel is None:
            continue
        try:
            kind, offset = tunnel(buffer, start, min(stop, end))
            kind, offset = network_layer(kind, buffer, offset, min(stop, end), tags)
        except NoSegment:
            continue
        if kind in (IPV4, IPV6) and is_sound_ip(buffer, offset, end, stop - offset):
            return kind, offset
    found = find_ip(buffer, start, end, stop - start)
    if found is not None:
        return found
    if name and kind in (IPV4, IPV6, ARP):
        raise NoSegment("arp" if kind == ARP else may_be_name(port, name))
    raise NoSegment(_encrypted(port, buffer, start, end))


def _by_header(buffer: bytes, start: int, end: int) -> str:
    """The name of the tunnel whose header is at ``start``, with nothing in what is reserved; empty for none."""
    if end - start < 28:  # a header, and the smallest packet
        return ""
    first, second, third = buffer[start], buffer[start + 1], u16(buffer, start + 2)[0]
    if first & 0xF0 == 0x30 and second == 0xFF and third == u16(buffer, start - 4)[0] - 16:
        return "gtp"
    if first & 0x7B == 0x08 and not buffer[start + 7]:
        generic = first & 0x84 == 4 and not second and third in NEXT_PROTOCOLS
        policy = first == 0x88 and not second & 0xB7
        if generic or policy or (first == 8 and not (second or third)):
            return "vxlan"
    if not (first >> 6 or second & 0x3F or buffer[start + 7]) and (third in (BRIDGED, IPV4, IPV6) or third in TAGS):
        return "geneve"
    return ""


#: Sizes of WireGuard's handshake messages, by their type; data, type 4, is at least as long as its own.
_WIREGUARD_BYTES = {1: 148, 2: 92, 3: 64}
_WIREGUARD_DATA = 4
_WIREGUARD_DATA_BYTES = 32
_IPSEC_PORT = 4500


def _encrypted(port: int, buffer: bytes, start: int, end: int) -> str:
    """The name that a UDP payload is counted under: that of an encrypted tunnel, or ``udp``."""
    size = end - start
    if port == _IPSEC_PORT and size > 8 and any(buffer[start : start + 4]):
        return "esp"
    if size >= 4 and not any(buffer[start + 1 : start + 4]):
        kind = buffer[start]
        if _WIREGUARD_BYTES.get(kind) == size or (
            kind == _WIREGUARD_DATA and size >= _WIREGUARD_DATA_BYTES and not size & 15
        ):
            return "wireguard"
    return "udp"
