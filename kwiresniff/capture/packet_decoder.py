"""One captured packet to its TCP segment, for every packet that the fast path does not take.

The readers recognise plain IPv4 and TCP themselves (``fast_path``); everything else comes here: tags, tunnels,
IPv6, options, fragments. What is not TCP in the end is counted by a short name in ``other``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from kwiresniff.capture.capture_headers import CAPTURE_HEADERS
from kwiresniff.capture.fast_path import NEVER, Front, front
from kwiresniff.capture.ip_reassembly import Fragments
from kwiresniff.capture.link_layer import ARP, IPV4, IPV6, LINK_LAYERS, LinkLayer, NoSegment, u16
from kwiresniff.capture.tags import TAGS, network_layer
from kwiresniff.capture.tunnels import IP_TUNNELS, udp_tunnel
from kwiresniff.capture.unread import ethertype_name, link_type_name
from kwiresniff.model import Segment

if TYPE_CHECKING:
    from kwiresniff.capture.ip_reassembly import Fragments

#: Packets inside packets. Clouds nest two or three; a hostile capture could nest a thousand.
MAX_NESTING = 8
#: Reasons that packets are counted by; a hostile file can have 65,536 link types.
MAX_REASONS = 64
#: IPv6 extension headers in a row. RFC 8200 names seven kinds, each to occur once or twice.
MAX_EXTENSION_HEADERS = 12

_TCP = 6
_UDP = 17
_FRAGMENT = 44
_AUTHENTICATION = 51
_EXTENSIONS = frozenset((0, 43, 60, 135, 139, 140))  # length byte in units of 8, the first not counted
_PROTOCOL_NAMES = {1: "icmp", 2: "igmp", 17: "udp", 50: "esp", 58: "icmpv6", 89: "ospf", 112: "vrrp", 132: "sctp"}
_OTHER_REASONS = "not_read"

_ipv4 = struct.Struct(">BxHHHxB2x8s").unpack_from
_ipv6 = struct.Struct(">4xHBx32s").unpack_from
_tcp = struct.Struct(">4sLLBB").unpack_from
_ipv4_tcp = struct.Struct(">BxH2xHxB2x12sLLBB").unpack_from
_ipv6_tcp = struct.Struct(">B3xHBx36sLLBB").unpack_from

#: What lies inside an IP datagram: protocol, addresses, buffer, start, end, bytes missing after the end.
_Datagram: TypeAlias = tuple[int, bytes, bytes, int, int, int]


class Choices(NamedTuple):
    """The user's layers by link type, ethertype (with the known ``tags``), UDP port and IP protocol."""

    link_types: Mapping[int, LinkLayer] = {}
    tags: Mapping[int, LinkLayer] = TAGS
    udp_ports: Mapping[int, LinkLayer] = {}
    ip_protocols: Mapping[int, LinkLayer] = {}


#: What is known, and no more.
NO_CHOICES: Final = Choices()


class PacketDecoder(Protocol):
    """The decoder of a file reader's packets, except those of the common case."""

    def front(self, link_type: int, order: str, /) -> Front:
        """See ``LayerDecoder.front``."""

    def skip_empty(self, link_type: int, count: int, /) -> None:
        """See ``LayerDecoder.skip_empty``."""

    def segment(
        self, packet: int, timestamp_ns: int, link_type: int, buffer: bytes, start: int, end: int, missing: int, /
    ) -> Segment | None:
        """See ``LayerDecoder.segment``."""


class LayerDecoder:
    """Decodes the packets of one file layer by layer; ``other`` counts those without a segment, by reason."""

    def __init__(self, other: dict[str, int], choices: Choices = NO_CHOICES) -> None:
        """``choices`` are the user's."""
        self.other = other
        self._choices = choices
        self._fragments: Fragments | None = None  # made for the first one

    def front(self, link_type: int, order: str) -> Front:
        """The common case on ``link_type`` in a file of byte order ``order`` (``<`` or ``>``)."""
        return NEVER if link_type in self._choices.link_types else front(link_type, order)

    def fragments_of_last(self) -> list[int]:
        """The packets of the IP datagram that became whole last."""
        return [] if self._fragments is None else self._fragments.packets

    def skip_empty(self, link_type: int, count: int) -> None:
        """Count packets without a byte as what one of them is."""
        before = dict(self.other)
        self.segment(0, 0, link_type, b"", 0, 0, 0)
        for name, number in self.other.items():
            if number > before.get(name, 0):
                self.other[name] = number + count - 1

    def segment(
        self, packet: int, timestamp_ns: int, link_type: int, buffer: bytes, start: int, end: int, missing: int
    ) -> Segment | None:
        """The TCP segment of a packet cut by ``missing`` bytes; None for one counted in ``other``."""
        try:
            choices = self._choices
            link = choices.link_types.get(link_type) or LINK_LAYERS.get(link_type) or _capture_header(link_type)
            kind, offset = link(buffer, start, end)
            for _ in range(MAX_NESTING):
                if kind not in (IPV4, IPV6):
                    kind, offset = network_layer(kind, buffer, offset, end, choices.tags)
                # Ordinary IP and TCP headers in one step: half the time on tags, tunnels and IPv6.
                if kind == IPV4 and end - offset >= 40:
                    version, length, fragment, protocol, flow, seq, ack, words, flags = _ipv4_tcp(buffer, offset)
                    if version == 0x45 and protocol == _TCP and not fragment & 0x3FFF and words >= 0x50:
                        payload = offset + 20 + (words >> 4) * 4
                        stop = offset + length
                        if payload <= end and payload <= stop:
                            cut = stop - end if stop > end else 0
                            return packet, timestamp_ns, flow, seq, ack, flags, buffer, payload, stop - cut, cut
                elif kind == IPV6 and end - offset >= 60:
                    version, length, protocol, flow, seq, ack, words, flags = _ipv6_tcp(buffer, offset)
                    if version >> 4 == 6 and protocol == _TCP and words >= 0x50:
                        payload = offset + 40 + (words >> 4) * 4
                        stop = offset + 40 + length
                        if payload <= end and payload <= stop:
                            cut = stop - end if stop > end else 0
                            return packet, timestamp_ns, flow, seq, ack, flags, buffer, payload, stop - cut, cut
                if kind == IPV4:
                    datagram = self._ipv4(packet, buffer, offset, end, missing)
                elif kind == IPV6:
                    datagram = self._ipv6(packet, buffer, offset, end, missing)
                else:
                    raise NoSegment("arp" if kind == ARP else ethertype_name(kind))
                if datagram is None:
                    self._count("ip_fragment")
                    return None
                protocol, addresses, buffer, offset, end, missing = datagram
                if protocol == _TCP:
                    return packet, timestamp_ns, *_tcp_segment(addresses, buffer, offset, end, missing)
                kind, offset = _tunnel(protocol, buffer, offset, end, choices)
            raise NoSegment("nested_too_deep")
        except NoSegment as reason:
            name = str(reason)
            self._count(name if name in self.other or len(self.other) < MAX_REASONS else _OTHER_REASONS)
            return None

    def _count(self, name: str) -> None:
        self.other[name] = self.other.get(name, 0) + 1

    def close(self) -> None:
        """Count the fragments whose datagrams never became whole, each packet once."""
        fragments = self._fragments
        if fragments is None:
            return
        fragments.close()
        if fragments.dropped:
            # They were counted as fragments when they came; now it is known that they are lost.
            lost, fragments.dropped = fragments.dropped, 0
            self.other["ip_fragment_lost"] = self.other.get("ip_fragment_lost", 0) + lost
            self.other["ip_fragment"] -= lost
            if not self.other["ip_fragment"]:
                del self.other["ip_fragment"]

    def _first_fragment(self) -> Fragments:
        """Makes what keeps fragments, when the first one has come."""
        self._fragments = Fragments()
        return self._fragments

    def _ipv4(self, packet: int, buffer: bytes, start: int, end: int, missing: int) -> _Datagram | None:
        """RFC 791; None for a fragment that waits. A total length of 0 (segmentation offload) takes all there is."""
        if end - start < 20:
            raise NoSegment("ip_header_cut")
        version, total, identification, fragment, protocol, addresses = _ipv4(buffer, start)
        header = (version & 15) * 4
        if version >> 4 != 4 or header < 20 or 0 < total < header:
            raise NoSegment("ip_header_bad")
        payload = start + header
        if total:
            missing = start + total - end
            if missing < 0:
                missing, end = 0, start + total
        if payload > end:
            raise NoSegment("ip_header_cut")
        if fragment & 0x3FFF:  # more fragments follow, or this is not the first
            if missing:
                raise NoSegment("ip_fragment_cut")
            key = (addresses, protocol, identification)
            fragments = self._fragments or self._first_fragment()
            data = buffer[payload:end]
            whole = fragments.add(key, packet, (fragment & 0x1FFF) * 8, data, not fragment & 0x2000)
            if whole is None:
                return None
            buffer, payload, end, missing = whole, 0, len(whole), 0
        if protocol == _AUTHENTICATION:
            if end - payload < 8:
                raise NoSegment("ip_header_cut")
            protocol, size = buffer[payload], buffer[payload + 1] * 4 + 8
            payload += size
            if payload > end:
                raise NoSegment("ip_header_cut")
        return protocol, addresses, buffer, payload, end, missing

    def _ipv6(self, packet: int, buffer: bytes, start: int, end: int, missing: int) -> _Datagram | None:
        """RFC 8200; None for a fragment that waits. A payload length of 0 (jumbo, offload) takes all there is."""
        if end - start < 40:
            raise NoSegment("ip_header_cut")
        if buffer[start] >> 4 != 6:
            raise NoSegment("ip_header_bad")
        length, protocol, addresses = _ipv6(buffer, start)
        offset = start + 40
        if length:
            missing = max(0, offset + length - end)
            end = min(end, offset + length)
        for _ in range(MAX_EXTENSION_HEADERS):
            if protocol in _EXTENSIONS:
                if end - offset < 8:
                    raise NoSegment("ip_header_cut")
                protocol, size = buffer[offset], buffer[offset + 1] * 8 + 8
            elif protocol == _AUTHENTICATION:
                if end - offset < 8:
                    raise NoSegment("ip_header_cut")
                protocol, size = buffer[offset], buffer[offset + 1] * 4 + 8
            elif protocol == _FRAGMENT:
                if end - offset < 8:
                    raise NoSegment("ip_header_cut")
                protocol, size = buffer[offset], 8
                fragment = u16(buffer, offset + 2)[0]
                if fragment & 0xFFF9:  # neither an offset nor more to come: an "atomic" fragment is whole
                    if missing:
                        raise NoSegment("ip_fragment_cut")
                    key = (addresses, protocol, buffer[offset + 4 : offset + 8])
                    data = buffer[offset + 8 : end]
                    fragments = self._fragments or self._first_fragment()
                    whole = fragments.add(key, packet, fragment & 0xFFF8, data, not fragment & 1)
                    if whole is None:
                        return None
                    buffer, offset, size, end = whole, 0, 0, len(whole)
            else:
                return protocol, addresses, buffer, offset, end, missing
            offset += size
            if offset > end:
                raise NoSegment("ip_header_cut")
        raise NoSegment("ip_header_bad")


def _tcp_segment(
    addresses: bytes, buffer: bytes, start: int, end: int, missing: int
) -> tuple[bytes, int, int, int, bytes, int, int, int]:
    """A segment from its flow on, out of the TCP header at ``start`` (RFC 9293), which the snap length may cut."""
    if end - start < 14:
        raise NoSegment("tcp_header_cut")
    ports, seq, ack, words, flags = _tcp(buffer, start)
    words >>= 4
    payload = start + words * 4
    if payload > end:
        missing -= payload - end
        payload = end
    if words < 5 or missing < 0:
        raise NoSegment("tcp_header_bad")
    return addresses + ports, seq, ack, flags, buffer, payload, end, missing


def _capture_header(link_type: int) -> LinkLayer:
    """The layer of a link type that few captures have; raises NoSegment for one that is not read."""
    layer = CAPTURE_HEADERS.get(link_type)
    if layer is None:
        raise NoSegment(link_type_name(link_type))
    return layer


def _tunnel(protocol: int, buffer: bytes, start: int, end: int, choices: Choices) -> tuple[int, int]:
    """Ethertype and offset inside an IP payload that is not TCP."""
    if protocol == _UDP:
        ports = choices.udp_ports
        if ports and end - start > 8:
            chosen = ports.get(u16(buffer, start + 2)[0]) or ports.get(u16(buffer, start)[0])
            if chosen is not None:
                return chosen(buffer, start + 8, end)
        return udp_tunnel(buffer, start, end, choices.tags)
    tunnel = choices.ip_protocols.get(protocol) or IP_TUNNELS.get(protocol)
    if tunnel is None:
        raise NoSegment(_PROTOCOL_NAMES.get(protocol, "other_ip_protocol"))
    return tunnel(buffer, start, end)
