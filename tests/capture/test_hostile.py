"""One invariant: any bytes at all give segments, counts and problems, or one CaptureError; never anything else."""

from __future__ import annotations

import random
import struct
import tracemalloc

import pytest

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


@pytest.mark.parametrize("link_type", [0, 1, 9, 12, 108, 113, 228, 229, 276, 147])
def test_random_packets_never_raise(link_type: int) -> None:
    """Noise behind every link type, seasoned with the numbers that lead somewhere."""
    random_ = random.Random(link_type)
    spice = [b"\x08\0\x45\0", b"\x86\xdd\x60\0", b"\x81\0", b"\x88\x47", b"\x88\x64", b"\x45\0\0\0", b"\x60\0\0\0"]
    packets = []
    for _ in range(1500):
        packet = bytearray(random_.randbytes(random_.randint(0, 120)))
        for _ in range(random_.randint(0, 3)):
            at = random_.randrange(len(packet) + 1)
            piece = random_.choice(spice)
            packet[at : at + len(piece)] = piece
        packets.append(bytes(packet))
    sound(packet_builder.pcap(packets, link_type=link_type))


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
