"""One invariant: any bytes at all give segments, counts and problems, or one CaptureError; never anything else."""

from __future__ import annotations

import random
import struct
import tracemalloc

import pytest

from kwiresniff.capture.capture_headers import CAPTURE_HEADERS, MAX_NFLOG_FIELDS
from kwiresniff.capture.link_layer import LINK_LAYERS
from kwiresniff.capture.packet_decoder import MAX_REASONS
from kwiresniff.capture.sound_headers import SEARCHED_BYTES
from kwiresniff.capture.tags import MAX_TAGS
from kwiresniff.capture.tunnels import MAX_GTP_EXTENSIONS, MAX_TZSP_FIELDS
from kwiresniff.errors import CaptureError
from tests.support import packet_builder
from tests.support.tshark_view import read

NG = packet_builder.Pcapng()
INNER = packet_builder.ethernet(
    packet_builder.ipv6(b"\x06\0" + bytes(6) + packet_builder.tcp(b"payload", words=7), following=0)
)
VXLAN = struct.pack(">HHHH", 9, 4789, 16 + len(INNER), 0) + b"\x08" + bytes(7) + INNER
PACKETS = [
    packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"plain"))),
    packet_builder.ethernet(packet_builder.ipv6(packet_builder.tcp(b"six"))),
    packet_builder.ethernet(b"\0\5\x08\0" + packet_builder.ipv4(VXLAN, protocol=17), 0x8100),
    packet_builder.ethernet(packet_builder.ipv4(bytes(64), fragment=0x2000)),
    packet_builder.ethernet(packet_builder.ipv4(bytes(9), fragment=8)),
    packet_builder.ethernet(packet_builder.ipv4(b"\x10\0\x65\x58" + bytes(4) + INNER, protocol=47)),
]


def sound(data: bytes) -> None:
    """Read it and check what every segment promises."""
    try:
        segments, captures = read(data)
    except CaptureError as error:
        assert "\n" not in str(error)
        return
    for packet, timestamp_ns, flow, seq, ack, flags, buffer, start, end, missing in segments:
        assert 0 < packet <= captures.packets and timestamp_ns.__class__ is int
        assert len(flow) in (12, 36)
        assert 0 <= seq < 1 << 32 and 0 <= ack < 1 << 32 and 0 <= flags < 256
        assert 0 <= start <= end <= len(buffer) and missing >= 0
    assert all(count > 0 for count in captures.other_packets.values())
    counted = sum(captures.other_packets.values())
    assert len(segments) + counted == captures.packets
    assert len([problem for problem in captures.problems if problem.code != "snap_length"]) <= 1


def mutate(random_: random.Random, whole: bytes) -> bytes:
    data = bytearray(whole)
    for _ in range(random_.randint(1, 8)):
        at = random_.randrange(len(data))
        choice = random_.random()
        if choice < 0.6:
            data[at] = random_.choice((0, 1, 0x7F, 0x80, 0xFF, random_.randrange(256)))
        elif choice < 0.8:
            del data[at : at + random_.randint(1, 40)]
        else:
            data[at:at] = random_.randbytes(random_.randint(1, 40))
        if not data:
            break
    return bytes(data)


@pytest.mark.parametrize("seed", range(8))
def test_mutated_captures_never_raise(seed: int) -> None:
    """Flipped, deleted and inserted bytes anywhere in either format."""
    random_ = random.Random(seed)
    ng = NG.section() + NG.interface(options=NG.resolution(9)) + NG.interface(101)
    ng += b"".join(NG.enhanced(packet, ticks=i) for i, packet in enumerate(PACKETS)) + NG.simple(PACKETS[0])
    ng += NG.obsolete(packet_builder.ipv4(packet_builder.tcp(b"raw")), interface=1)
    seeds = [ng, *(packet_builder.pcap(PACKETS, link_type=link) for link in (1, 0, 9, 101, 113, 276))]
    for _ in range(250):
        sound(mutate(random_, random_.choice(seeds)))


@pytest.mark.parametrize("link_type", [*sorted({**LINK_LAYERS, **CAPTURE_HEADERS}), 147])
def test_random_packets_never_raise(link_type: int) -> None:
    """Noise behind every link type, seasoned with the numbers that lead somewhere."""
    random_ = random.Random(link_type)
    spice = [b"\x08\0\x45\0", b"\x86\xdd\x60\0", b"\x81\0", b"\x88\x47", b"\x88\x64", b"\x45\0\0\0", b"\x60\0\0\0"]
    spice += [b"\x89\x4f\x0f\xc6\x01\x03", b"\x88\xe7", b"\x89\x09\x01", b"\x22\xf3", b"\x88\xe5\x20", b"\x65\x58"]
    packets = []
    for _ in range(1500):
        packet = bytearray(random_.randbytes(random_.randint(0, 120)))
        for _ in range(random_.randint(0, 3)):
            at = random_.randrange(len(packet) + 1)
            piece = random_.choice(spice)
            packet[at : at + len(piece)] = piece
        packets.append(bytes(packet))
    sound(packet_builder.pcap(packets, link_type=link_type))


def datagram(payload: bytes, port: int) -> bytes:
    """A UDP datagram in Ethernet."""
    header = struct.pack(">HHHH", 55555, port, 8 + len(payload), 0)
    return packet_builder.ethernet(packet_builder.ipv4(header + payload, protocol=17))


TCP = packet_builder.ipv4(packet_builder.tcp(b"payload"))
FRAME = packet_builder.ethernet(TCP)
WRAPPED = [
    (1, datagram(b"\x08" + bytes(7) + FRAME, 4799)),
    (1, datagram(b"\x0c\0\0\x04" + bytes(4) + b"\x0f\xc2\x02\x03\0\0\1\0" + FRAME, 4790)),
    (1, datagram(b"\x01\0\x65\x58" + bytes(8) + FRAME, 6082)),
    (1, datagram(struct.pack(">BBHI", 0x34, 255, len(TCP) + 8, 1) + b"\0\0\0\x85\1\0\0\0" + TCP, 2152)),
    (1, datagram(b"\1\0\0\1\x28\4aaaa\1" + FRAME, 37008)),
    (1, datagram(b"\x01\x04\0\0aaaa" + TCP, 6080)),
    (1, datagram(b"\x4a\x02\0\x2a\0\1\0\1\0\1\0\2\0\0\xff\3\0\x21" + TCP, 1701)),
    (1, datagram(b"\0\x18\x02\0" + bytes(8) + FRAME, 5247)),
    (1, packet_builder.ethernet(bytes.fromhex("0002014000000000") + FRAME, 0x8847)),
    (1, packet_builder.ethernet(bytes.fromhex("00010800" + "02" * 12) + FRAME[12:], 0x8926)),
    (1, packet_builder.ethernet(packet_builder.ipv4(b"\0\0\0\7" + FRAME, protocol=115))),
    (1, packet_builder.ethernet(packet_builder.ipv4(b"\4\4\0\0" + bytes(20) + TCP, protocol=51))),
    (258, struct.pack("<III", 108, 1, 1) + bytes(96) + FRAME),
    (192, struct.pack("<BBHI", 0, 0, 8, 105) + b"\x88\1" + bytes(24) + b"\xaa\xaa\3\0\0\0\x08\0" + TCP),
    (239, b"\2\0\0\5" + struct.pack("<HH6s2x", 10, 10, b"kafka") + struct.pack("<HH", len(TCP) + 4, 9) + TCP),
    (178, b"MGC\x80\0\2\1\1" + FRAME),
    (197, bytes(8) + b"\x82" + bytes(7) + bytes(8) + b"\0\0" + FRAME),
]


@pytest.mark.parametrize(("link_type", "packet"), WRAPPED)
def test_every_header_may_be_cut_and_damaged(link_type: int, packet: bytes) -> None:
    """Cut at every byte, and every byte replaced, in files where other packets follow."""
    damaged = [packet[:size] for size in range(len(packet))]
    for at in range(len(packet)):
        damaged += [packet[:at] + bytes([value]) + packet[at + 1 :] for value in (0, 1, 0x45, 0x7F, 0x80, 0xFF)]
    sound(packet_builder.pcap(damaged, link_type=link_type))
    sound(packet_builder.pcap(damaged, link_type=link_type, wire=2000))


def other_packets(packets: list[bytes], link_type: int = 1) -> dict[str, int]:
    """What packets are counted as."""
    return read(packet_builder.pcap(packets, link_type=link_type))[1].other_packets


def test_tags_in_a_row_are_followed_so_far_and_no_further() -> None:
    """A packet of VLAN tags alone costs a fixed number of steps."""
    for count, found in ((MAX_TAGS, {}), (MAX_TAGS + 1, {"nested_too_deep": 1}), (16_000, {"nested_too_deep": 1})):
        assert other_packets([FRAME[:12] + b"\x81\0\0\5" * count + FRAME[12:]]) == found


def test_extension_headers_of_gtp_u_end() -> None:
    """More of them than there are kinds are no G-PDU."""
    for count, found in ((MAX_GTP_EXTENSIONS, {}), (MAX_GTP_EXTENSIONS + 1, {"udp": 1})):
        headers = b"\0\0\0" + b"\x85\1\0\0" * count + b"\0"
        gtp = struct.pack(">BBHI", 0x34, 255, len(headers) + len(TCP), 1)
        assert other_packets([datagram(gtp + headers + TCP, 2152)]) == found


def test_fields_of_tzsp_end() -> None:
    """Padding alone is not followed to the end of the packet."""
    for count, found in ((MAX_TZSP_FIELDS - 1, {}), (MAX_TZSP_FIELDS, {"udp": 1})):
        assert other_packets([datagram(b"\1\0\0\1" + bytes(count) + b"\1" + FRAME, 37008)]) == found


def test_fields_of_nflog_end() -> None:
    """Empty fields alone are not followed to the end of the packet."""
    payload = struct.pack("<HH", len(TCP) + 4, 9) + TCP
    for count, found in ((MAX_NFLOG_FIELDS - 1, {}), (MAX_NFLOG_FIELDS, {"not_ip": 1})):
        assert other_packets([b"\2\0\0\5" + struct.pack("<HH", 4, 1) * count + payload], 239) == found


def test_ip_behind_a_header_that_is_not_known_is_looked_for_so_far() -> None:
    """In UDP, as mirrors have it; sFlow, which samples packets, has longer headers."""
    frame = FRAME[:24] + checksum(FRAME[14:34]) + FRAME[26:]
    for size in range(SEARCHED_BYTES + 40):
        found = {} if size + 12 + len(b"\x08\0\x45") <= SEARCHED_BYTES else {"udp": 1}
        assert other_packets([datagram(b"\xee" * size + frame, 6343)]) == found
    assert other_packets([datagram(b"\xee" * 8 + FRAME, 6343)]) == {"udp": 1}  # its checksum is 0


def checksum(header: bytes) -> bytes:
    """The checksum of an IPv4 header that has none yet (RFC 1071)."""
    total = int(sum(struct.unpack(">10H", header)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (~total & 0xFFFF).to_bytes(2)


def test_reasons_are_bounded() -> None:
    """A hostile capture has a thousand ethertypes; the names of some are kept, and every packet is counted."""
    counted = other_packets([packet_builder.ethernet(bytes(50), kind) for kind in range(0xA000, 0xA400)])
    assert len(counted) == MAX_REASONS + 1
    assert counted["not_read"] == 0x400 - MAX_REASONS and sum(counted.values()) == 0x400


def test_a_header_behind_a_header_does_not_lead_to_another_one() -> None:
    """PPI may name PPI, and PKTAP itself."""
    assert other_packets([struct.pack("<BBHI", 0, 0, 8, 192) * 5000], 192) == {"inner_link_type_192": 1}
    assert other_packets([struct.pack("<III", 108, 1, 258).ljust(108, b"\0") * 50], 258) == {"inner_link_type_258": 1}


def test_what_is_no_tunnel_is_not_taken_for_one() -> None:
    """DNS, QUIC, NTP, RTP, syslog, and noise, to the ports of tunnels and to others."""
    random_ = random.Random(7)
    dns = struct.pack(">HHHHHH", 0x0800, 0, 1, 0, 0, 0) + b"\5kafka\7example\3org\0\0\1\0\1"
    answer = (
        struct.pack(">HHHHHH", 0x0800, 0x8180, 1, 1, 0, 0)
        + b"\5kafka\0\0\1\0\1\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4"
        + bytes(4)
    )
    quic = b"\xc3\0\0\0\1\x08" + random_.randbytes(1194)
    texts = [
        dns,
        answer,
        quic,
        b"\x45" + random_.randbytes(1199),
        bytes([0x23]) + bytes(47),
        b"<34>1 2026-01-01 host app",
    ]
    texts += [first.to_bytes() + random_.randbytes(random_.randint(0, 200)) for first in range(256)]
    ports = (53, 443, 1701, 2152, 4341, 4754, 4799, 5247, 5555, 6080, 6635, 37008)
    counted = other_packets([datagram(text, port) for text in texts for port in ports])
    assert counted == {"udp": len(texts) * len(ports)}


@pytest.mark.slow
def test_a_flood_of_fragments_costs_bounded_memory() -> None:
    """Sixty thousand datagrams that never become whole."""
    packets = [
        packet_builder.ethernet(packet_builder.ipv4(bytes(1400), identification=i % 65536, fragment=0x2000 | (i % 7)))
        for i in range(20_000)
    ]
    data = packet_builder.pcap(packets)
    del packets
    tracemalloc.start()
    try:
        segments, captures = read(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert segments == []
    assert captures.other_packets == {"ip_fragment_lost": 20_000}
    assert peak < 12_000_000


def test_a_flood_of_tiny_fragments_of_one_datagram_is_quick() -> None:
    """Eight bytes each, in the worst order, as many as a datagram can have."""
    packets = [
        packet_builder.ethernet(packet_builder.ipv4(bytes(8), fragment=(0x2000 if offset < 8000 else 0) | offset))
        for offset in range(8000, -1, -1)
    ]
    _, captures = read(packet_builder.pcap(packets))
    assert captures.packets == 8001
    assert captures.other_packets == {"ip_fragment": 8000, "tcp_header_bad": 1}
