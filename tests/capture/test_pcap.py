"""The pcap file format, whole, cut at every byte, and with junk behind it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.capture.packet_decoder import LayerDecoder
from kwiresniff.model import Segment
from tests.support import packet_builder
from tests.support.sample import sampled
from tests.support.tshark_view import by_tshark, by_us, read, seen

PACKETS = [
    packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"first", seq=1))),
    packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"second", seq=6, words=8))),
    packet_builder.ethernet(b"not IP at all, but long enough to look at it", 0x88CC),
    packet_builder.ethernet(packet_builder.ipv6(packet_builder.tcp(b"third", seq=12))),
]


def payloads(segments: Iterable[Segment]) -> list[bytes]:
    return [seen(segment).payload for segment in segments]


#: Byte order, magic number and the nanoseconds that one of its units is.
FORMS = [("<", 0xA1B2C3D4, 1000), (">", 0xA1B2C3D4, 1000), ("<", 0xA1B23C4D, 1), (">", 0xA1B23C4D, 1)]


@pytest.mark.parametrize("form", sampled(FORMS, 3, 1), ids=str)
def test_both_resolutions_in_both_byte_orders(form: tuple[str, int, int], tmp_path: Path) -> None:
    """The magic number tells both; the times are exact integers."""
    order, magic, unit_ns = form
    path = tmp_path / "capture"
    path.write_bytes(packet_builder.pcap(PACKETS, order=order, magic=magic))
    ours = by_us(path)
    assert ours == by_tshark(path)
    assert [one.timestamp_ns - 1_700_000_000_000_000_000 for one in ours] == [0, unit_ns, 3 * unit_ns]
    assert [one.packet for one in ours] == [1, 2, 4]


@pytest.mark.parametrize("order", sampled([">", "<"], first=1))
def test_the_modified_format_has_longer_record_headers(order: str, tmp_path: Path) -> None:
    """Kuznetzov's patched libpcap adds interface, protocol and packet type to each record."""
    data = packet_builder.pcap_header(order=order, magic=0xA1B2CD34)
    for packet in PACKETS:
        sizes = len(packet), len(packet)
        data += struct.pack(order + "IIIIIHBx", 1_700_000_000, 7, *sizes, 3, 0x0800, 4) + packet
    path = tmp_path / "capture"
    path.write_bytes(data)
    assert by_us(path) == by_tshark(path)
    assert len(by_us(path)) == 3


@pytest.mark.parametrize(("magic", "same_units"), [(0x1C0001AC, 0xA1B23C4D), (0x1C0001AB, 0xA1B2C3D4)])
def test_ixia_writes_the_size_of_the_file_into_its_header(magic: int, same_units: int, tmp_path: Path) -> None:
    """Its hardware counts nanoseconds, its software microseconds: the packets are those of a usual file that does so,
    which every tshark reads alike.
    """
    data = packet_builder.pcap(PACKETS, magic=magic)
    path, usual = tmp_path / "capture", tmp_path / "usual"
    path.write_bytes(data[:24] + struct.pack("<I", len(data) - 24) + data[24:])
    usual.write_bytes(packet_builder.pcap(PACKETS, magic=same_units))
    assert by_us(path) == by_tshark(usual)
    assert len(by_us(path)) == 3


@pytest.mark.parametrize("snap_length", [0, 1, 64, 65535, 262144, 0x7FFFFFFF, 0xFFFFFFFF])
def test_the_snap_length_of_the_header_is_not_believed(snap_length: int) -> None:
    """Writers put anything there, and packets longer than it."""
    segments, captures = read(packet_builder.pcap(PACKETS, snap_length=snap_length))
    assert payloads(segments) == [b"first", b"second", b"third"]
    assert captures.problems == []


def test_the_link_type_may_carry_the_length_of_the_checksum() -> None:
    """The high bits of the field tell how many checksum bytes follow each frame."""
    data = bytearray(packet_builder.pcap([packet + b"\xde\xad\xbe\xef" for packet in PACKETS]))
    data[23] = 0x44  # bytes 20 to 23, little-endian: FCS length present, 4 bytes
    assert payloads(read(bytes(data))[0]) == [b"first", b"second", b"third"]


def test_what_the_snap_length_cut_is_counted_as_missing() -> None:
    """Payload, TCP options and whole TCP headers can be cut; only the last loses the segment."""
    packet = packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"0123456789", words=8)))
    for captured, payload, missing in ((76, b"0123456789", 0), (70, b"0123", 6), (66, b"", 10), (60, b"", 10)):
        segments, _ = read(packet_builder.pcap([packet[:captured]], wire=len(packet)))
        assert (payloads(segments), segments[0][9]) == ([payload], missing)
    segments, captures = read(packet_builder.pcap([packet[:47]], wire=len(packet)))
    assert segments == [] and captures.other_packets == {"tcp_header_cut": 1}


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_what_the_snap_length_cut_takes_the_short_way_of_whole_packets(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No packet of Ethernet, IPv4 and TCP is read layer by layer while its headers are there."""
    packet = packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"0123456789")))
    written = packet_builder.Pcapng()
    blocks = [written.section(), written.interface(), *(written.enhanced(packet[:end]) for end in (64, 60, 54))]
    whole = b"".join(blocks)
    if form == "pcap":
        whole = packet_builder.pcap([packet[:end] for end in (64, 60, 54)], wire=len(packet))
    monkeypatch.setattr(LayerDecoder, "segment", lambda *_: pytest.fail("read layer by layer"))
    segments, _ = read(whole)
    assert [(seen(one).payload, one[9]) for one in segments] == [(b"0123456789", 0), (b"012345", 4), (b"", 10)]


def test_a_cut_at_every_byte_gives_all_before_it() -> None:
    """A file cut off in a record gives the packets before, one problem, and where."""
    data = packet_builder.pcap(PACKETS)
    ends = [24]
    for packet in PACKETS:
        ends.append(ends[-1] + 16 + len(packet))
    whole, _ = read(data)
    for cut in range(4, len(data)):
        segments, captures = read(data[:cut])
        complete = sum(end <= cut for end in ends[1:])
        assert [s[0] for s in segments] == [s[0] for s in whole if s[0] <= complete]
        assert captures.packets == complete
        if cut in ends:
            assert captures.problems == []
        else:
            (problem,) = captures.problems
            assert (problem.code, problem.offset, problem.packet) == ("capture_cut", cut, complete + 1)
            assert "standard input is cut off" in problem.message


@pytest.mark.parametrize("junk", [b"\0", b"\xff" * 15, b"\xff" * 64, bytes(64), b"GET / HTTP/1.1\r\n" * 9])
def test_junk_behind_the_last_packet_loses_none_before_it(junk: bytes) -> None:
    """Zeros read as empty packets, everything else as one problem; the packets before are all there."""
    segments, captures = read(packet_builder.pcap(PACKETS) + junk)
    assert payloads(segments) == [b"first", b"second", b"third"]
    assert len(captures.problems) == (0 if len(junk) == 64 and not any(junk) else 1)


@pytest.mark.parametrize("captured", [1024 * 1024 + 1, 0x7FFFFFFF, 0xFFFFFFFF])
def test_an_absurd_packet_length_ends_the_file_as_damaged(captured: int) -> None:
    """Nobody waits or allocates for a packet of 4 GB."""
    data = packet_builder.pcap(PACKETS[:1]) + struct.pack("<IIII", 0, 0, captured, captured) + bytes(5000)
    segments, captures = read(data)
    assert payloads(segments) == [b"first"]
    (problem,) = captures.problems
    assert (problem.code, problem.offset, problem.packet) == ("capture_damaged", 24 + 16 + len(PACKETS[0]), 2)
    assert str(captured) in problem.message


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_capture_behind_a_capture_is_told_as_such(order: str) -> None:
    """``cat a.pcap b.pcap``: the second header would read as an empty packet of the year 2055."""
    file = packet_builder.pcap(PACKETS, order=order)
    segments, captures = read(file + file)
    assert payloads(segments) == [b"first", b"second", b"third"]
    (problem,) = captures.problems
    assert (problem.code, problem.offset, problem.packet) == ("capture_damaged", len(file), len(PACKETS) + 1)
    assert "another pcap file stands behind it" in problem.message


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("time", [0, 0x01A2C3D4])
def test_packets_without_a_byte_are_counted_by_the_thousand(
    order: str, time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gigabyte of zeros is 63 million of them, and a compressed megabyte; one that is no packet stands between."""
    looked_at: list[int] = []
    segment = LayerDecoder.segment

    def counted(self: LayerDecoder, packet: int, *others: Any) -> Segment | None:
        looked_at.append(packet)
        return segment(self, packet, *others)

    monkeypatch.setattr(LayerDecoder, "segment", counted)
    first, last = (packet_builder.pcap([packet], order=order)[24:] for packet in PACKETS[:2])
    none = struct.pack(order + "IIII", time, 0, 0, 0)
    cut = struct.pack(order + "IIII", time, 0, 0, 60)
    data = packet_builder.pcap_header(order=order) + first + none * 100_000 + cut + none * 50_000 + last
    segments, captures = read(data)
    assert [one[0] for one in segments] == [1, 150_003]
    assert payloads(segments) == [b"first", b"second"]
    assert (captures.packets, captures.other_packets) == (150_003, {"not_ip": 150_001})
    assert captures.problems == []
    assert len(looked_at) < 100


def test_packets_that_straddle_reads_are_whole() -> None:
    """More than one buffer of packets of awkward sizes, from a pipe that gives little at a time."""

    class CaptureProcess:
        def __init__(self, data: bytes) -> None:
            self.data, self.at, self.turn = data, 0, 0

        def isatty(self) -> bool:
            return False

        def read(self, size: int) -> bytes:
            self.turn += 1
            piece = self.data[self.at : self.at + min(size, self.turn * 37 % 4001 + 1)]
            self.at += len(piece)
            return piece

    sizes = [i * 37 % 1400 for i in range(2000)]
    packets = [
        packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(bytes([i % 256]) * size)))
        for i, size in enumerate(sizes)
    ]
    captures = open_captures(["-"], stdin=cast(BinaryIO, CaptureProcess(packet_builder.pcap(packets))))
    assert payloads(captures) == [bytes([i % 256]) * size for i, size in enumerate(sizes)]
    assert captures.packets == 2000 and captures.problems == []
