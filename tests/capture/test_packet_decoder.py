"""Packets that are odd, cut or hostile: what gives a segment all the same, and under what the rest is counted."""

from __future__ import annotations

import struct

import pytest

from tests.support import packet_builder
from tests.support.tshark_view import read, seen


def one(packet: bytes, wire: int | None = None, link_type: int = 1) -> tuple[bytes, int] | str:
    """(payload, missing) of the packet's segment, or the name it is counted under."""
    segments, captures = read(packet_builder.pcap([packet], wire=wire, link_type=link_type))
    cut = [segment[9] for segment in segments if segment[9]]
    assert [problem.code for problem in captures.problems] == ["snap_length"] * len(cut) and captures.packets == 1
    if segments:
        assert captures.other_packets == {}
        return seen(segments[0]).payload, segments[0][9]
    ((name, count),) = captures.other_packets.items()
    assert count == 1
    return name


def test_ethernet_padding_is_trimmed_by_the_ip_length() -> None:
    """A short frame is padded to 60 bytes; the padding is no payload, in either IP version."""
    assert one(packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"ab"))) + bytes(20)) == (b"ab", 0)
    assert one(packet_builder.ethernet(packet_builder.ipv6(packet_builder.tcp(b"ab"))) + bytes(20)) == (b"ab", 0)
    assert one(packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp())) + bytes(6)) == (b"", 0)


def test_a_total_length_of_zero_means_as_much_as_was_captured() -> None:
    """Segmentation offload shows super-packets to the capture whose length nobody has filled in yet."""
    payload = bytes(range(250)) * 300
    assert one(packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(payload), total=0))) == (payload, 0)
    assert one(packet_builder.ethernet(packet_builder.ipv6(packet_builder.tcp(payload), length=0))) == (payload, 0)
    packet = packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"0123456789"), total=0))
    assert one(packet[:-4], wire=len(packet)) == (b"012345", 4)


@pytest.mark.parametrize("words", [0, 1, 4])
def test_a_tcp_header_shorter_than_itself_is_bad(words: int) -> None:
    """A data offset below 5 words leaves no room for the header."""
    header = bytearray(packet_builder.tcp(b"x" * 40))
    header[12] = words << 4
    assert one(packet_builder.ethernet(packet_builder.ipv4(bytes(header)))) == "tcp_header_bad"
    assert one(packet_builder.ethernet(packet_builder.ipv6(bytes(header)))) == "tcp_header_bad"


def test_a_tcp_header_longer_than_its_datagram_is_bad() -> None:
    """A data offset behind the end of the datagram is nonsense, not a snap length."""
    header = bytearray(packet_builder.tcp(b"x" * 8))
    header[12] = 15 << 4
    assert one(packet_builder.ethernet(packet_builder.ipv4(bytes(header)))) == "tcp_header_bad"
    assert one(packet_builder.ethernet(packet_builder.ipv4(bytes(header))) + bytes(60)) == "tcp_header_bad"


@pytest.mark.parametrize(
    ("packet", "name"),
    [
        (packet_builder.ethernet(b"\x4f" + packet_builder.ipv4(packet_builder.tcp())[1:]), "ip_header_bad"),
        (packet_builder.ethernet(b"\x44" + packet_builder.ipv4(packet_builder.tcp())[1:]), "ip_header_bad"),
        (packet_builder.ethernet(b"\x65" + packet_builder.ipv4(packet_builder.tcp())[1:], 0x0800), "ip_header_bad"),
        (packet_builder.ethernet(b"\x40" + packet_builder.ipv6(packet_builder.tcp())[1:], 0x86DD), "ip_header_bad"),
        (packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(), total=19)), "ip_header_bad"),
        (packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp())[:19]), "ip_header_cut"),
        (packet_builder.ethernet(packet_builder.ipv6(packet_builder.tcp())[:39]), "ip_header_cut"),
        (packet_builder.ethernet(packet_builder.ipv6(b"\x06\xff" + bytes(30), following=0)), "ip_header_cut"),
        (packet_builder.ethernet(packet_builder.ipv6(b"\x00\x00" + bytes(6), following=0) + bytes(9)), "ip_header_cut"),
        (packet_builder.ethernet(packet_builder.ipv4(b"x" * 30, protocol=17)), "udp"),
        (packet_builder.ethernet(packet_builder.ipv4(b"x", protocol=17)), "udp"),
        (packet_builder.ethernet(packet_builder.ipv4(b"x" * 30, protocol=1)), "icmp"),
        (packet_builder.ethernet(packet_builder.ipv6(b"x" * 30, following=58)), "icmpv6"),
        (packet_builder.ethernet(packet_builder.ipv6(b"", following=59)), "other_ip_protocol"),
        (packet_builder.ethernet(packet_builder.ipv4(b"x" * 30, protocol=200)), "other_ip_protocol"),
        (packet_builder.ethernet(bytes(28), 0x0806), "arp"),
        (packet_builder.ethernet(bytes(50), 0x88CC), "not_ip"),
        (packet_builder.ethernet(bytes(50), 0x0030), "not_ip"),
        (packet_builder.ethernet(b"\0\5", 0x8100), "not_ip"),
        (packet_builder.ethernet(b"\0\0\0\0", 0x8847), "not_ip"),
        (bytes(13), "not_ip"),
        (b"", "not_ip"),
    ],
)
def test_what_is_no_segment_is_counted_by_reason(packet: bytes, name: str) -> None:
    """No packet disappears without a count."""
    assert one(packet) == name


@pytest.mark.parametrize("link_type", [0, 9, 12, 14, 101, 108, 113, 228, 229, 276])
def test_an_empty_packet_is_counted_on_every_link_type(link_type: int) -> None:
    """Zero captured bytes are legal."""
    assert one(b"", link_type=link_type) in {"not_ip", "ip_header_cut"}


def test_an_unsupported_link_type_is_counted_under_its_number() -> None:
    """Bluetooth, USB: counted, and not taken for anything else."""
    assert one(bytes(100), link_type=189) == "link_type_189"


def test_tunnels_nest_only_so_deep() -> None:
    """A packet of a hundred packets costs eight steps."""
    nested = packet_builder.ipv4(packet_builder.tcp(b"deep"))
    for depth in range(1, 100):
        nested = packet_builder.ipv4(nested, protocol=4)
        assert one(packet_builder.ethernet(nested)) == ((b"deep", 0) if depth < 8 else "nested_too_deep")


def test_extension_headers_end() -> None:
    """A row of headers as long as the packet is not followed to its end."""
    assert one(packet_builder.ethernet(packet_builder.ipv6(bytes(8) * 5000, following=0))) == "ip_header_bad"


@pytest.mark.parametrize(
    "tunnel",
    [
        packet_builder.ipv4(b"", protocol=47),
        packet_builder.ipv4(b"\0\0\x08", protocol=47),
        packet_builder.ipv4(b"\xb0\x00\x08\x00" + bytes(12), protocol=47),
        packet_builder.ipv4(b"\x40\x00\x08\x00" + bytes(50), protocol=47),
        packet_builder.ipv4(b"\x30\x01\x88\x0b" + bytes(50), protocol=47),
        packet_builder.ipv4(b"\x10\x00\x22\xeb" + bytes(15), protocol=47),
        packet_builder.ipv4(struct.pack(">HHHH", 9, 4789, 15, 0) + b"\x08" + bytes(6), protocol=17),
        packet_builder.ipv4(struct.pack(">HHHH", 9, 4789, 58, 0) + bytes(50), protocol=17),
        packet_builder.ipv4(struct.pack(">HHHH", 9, 6081, 12, 0) + bytes(4), protocol=17),
        packet_builder.ipv4(struct.pack(">HHHH", 9, 6081, 58, 0) + b"\x3f\0\x65\x58" + bytes(46), protocol=17),
        packet_builder.ipv4(struct.pack(">HHHH", 9, 6081, 58, 0) + b"\x40\0\x65\x58" + bytes(46), protocol=17),
    ],
)
def test_a_tunnel_header_that_does_not_hold_is_not_followed(tunnel: bytes) -> None:
    """Cut headers, unknown versions, lengths beyond the packet."""
    assert one(packet_builder.ethernet(tunnel)) == "not_ip"


def test_every_cut_of_a_packet_gives_its_segment_or_a_count() -> None:
    """The snap length can fall anywhere, in any layer."""
    inner = packet_builder.ethernet(
        packet_builder.ipv6(b"\x06\0" + bytes(6) + packet_builder.tcp(b"payload", words=7), following=0)
    )
    udp = struct.pack(">HHHH", 9, 4789, 16 + len(inner), 0) + b"\x08" + bytes(7) + inner
    packet = packet_builder.ethernet(b"\0\5\x08\0" + packet_builder.ipv4(udp, protocol=17, options=bytes(8)), 0x8100)
    assert one(packet) == (b"payload", 0)
    for cut in range(len(packet)):
        found = one(packet[:cut], wire=len(packet))
        if isinstance(found, tuple):
            payload, missing = found
            assert payload == b"payload"[: len(payload)] and len(payload) + missing == 7
        else:
            assert cut < len(packet) - 7 - 8
