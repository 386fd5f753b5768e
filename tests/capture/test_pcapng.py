"""The pcapng file format: sections, interfaces, clocks, and every kind of block."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from kwiresniff.capture import pcapng_blocks
from kwiresniff.capture.formats import open_reader
from kwiresniff.capture.input_stream import Stream
from kwiresniff.capture.packet_decoder import LayerDecoder
from kwiresniff.capture.sources import segments_of
from kwiresniff.model import Segment
from tests.support import packet_builder
from tests.support.packet_builder import Pcapng
from tests.support.sample import sampled
from tests.support.tshark_view import Seen, by_tshark, by_us, read, seen

FIRST = packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"first")))
SECOND = packet_builder.ethernet(packet_builder.ipv6(packet_builder.tcp(b"second one", words=8)))
RAW = packet_builder.ipv4(packet_builder.tcp(b"no link layer"))
TICKS = 1_700_000_000_123_456
NG = Pcapng()


def payloads(segments: Iterable[Segment]) -> list[bytes]:
    return [seen(segment).payload for segment in segments]


def compare(data: bytes, tmp_path: Path, expected: list[bytes]) -> list[Seen]:
    path = tmp_path / "capture"
    path.write_bytes(data)
    ours = by_us(path)
    assert ours == by_tshark(path)
    assert [one.payload for one in ours] == expected
    return ours


@pytest.mark.parametrize("length", sampled([-1, 0], first=1))
def test_sections_of_different_byte_order_and_length(length: int, tmp_path: Path) -> None:
    """Each section has its own byte order and its own interfaces, numbered from 0 again."""
    little, big = Pcapng("<"), Pcapng(">")
    data = b"".join(
        ng.section(length) + ng.interface(link) + ng.enhanced(packet, ticks=TICKS)
        for ng, link, packet in ((little, 1, FIRST), (big, 101, RAW), (big, 1, SECOND), (little, 1, FIRST))
    )
    compare(data, tmp_path, [b"first", b"no link layer", b"second one", b"first"])


@pytest.mark.parametrize(
    ("resolution", "ticks", "nanoseconds"),
    [
        (None, TICKS, 1_700_000_000_123_456_000),
        (0, 1_700_000_000, 1_700_000_000_000_000_000),
        (3, 1_700_000_000_123, 1_700_000_000_123_000_000),
        (6, TICKS, 1_700_000_000_123_456_000),
        (9, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        (10, 17_000_000_001_234_567_891, 1_700_000_000_123_456_789),
        (0x80, 1_700_000_000, 1_700_000_000_000_000_000),
        (0x80 | 10, 1_700_000_000 * 1024 + 512, 1_700_000_000_500_000_000),
        (0x80 | 32, (1_700_000_000 << 32) + 1, 1_700_000_000_000_000_000),
        (0x80 | 33, (1_700_000_000 << 33) + (1 << 32) + 9, 1_700_000_000_500_000_001),
    ],
)
def test_clock_resolutions_of_either_base_are_exact(resolution: int, ticks: int, nanoseconds: int) -> None:
    """if_tsresol is a power of ten or of two; what is finer than a nanosecond is cut off."""
    options = b"" if resolution is None else NG.resolution(resolution)
    segments, _ = read(NG.section() + NG.interface(options=options) + NG.enhanced(FIRST, ticks=ticks))
    assert segments[0][1] == nanoseconds


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("unit_ns", [1_000_000_000, 1_000_000, 1000, 1])
@pytest.mark.parametrize("offset", [0, 1, -(1 << 63), (1 << 63) - 1])
def test_times_that_no_clock_tells_are_exact_too(order: str, unit_ns: int, offset: int) -> None:
    """Timestamps have 64 bits and offsets too: their product and sum need more, whatever reads them."""
    ng = Pcapng(order)
    edge = (1 << 63) // unit_ns
    ticks = [0, edge - (1 << 32), edge - 1, edge, edge + 1, edge | 0xFFFFFFFF, (1 << 64) - 1]
    options = ng.resolution(9 - len(str(unit_ns)) + 1) + ng.offset(offset)
    segments, _ = read(
        ng.section() + ng.interface(options=options) + b"".join(ng.enhanced(FIRST, ticks=t) for t in ticks)
    )
    assert [segment[1] for segment in segments] == [t * unit_ns + offset * 1_000_000_000 for t in ticks]


def test_interfaces_differ_in_clock_offset_and_link_type(tmp_path: Path) -> None:
    """Packets of three interfaces take turns; each is read by its own description."""
    comment = NG.option(1, b"a comment of odd length")
    data = (
        NG.section()
        + NG.interface(1, options=NG.option(2, b"eth0") + NG.resolution(9) + NG.option(0, b""))
        + NG.interface(101, options=NG.resolution(0x80 | 20))
        + NG.interface(1, options=NG.offset(1_600_000_000) + NG.resolution(6))
    )
    for _ in range(2):
        data += NG.enhanced(FIRST, ticks=TICKS * 1000, interface=0, options=comment)
        data += NG.enhanced(RAW, ticks=1_700_000_000 << 20, interface=1)
        data += NG.enhanced(SECOND, ticks=100_000_000_000_000, interface=2, options=comment + NG.option(0, b""))
    ours = compare(data, tmp_path, [b"first", b"no link layer", b"second one"] * 2)
    assert [one.timestamp_ns for one in ours[:3]] == [
        1_700_000_000_123_456_000,
        1_700_000_000_000_000_000,
        1_700_000_000_000_000_000,
    ]


def test_options_behind_the_end_of_options_do_not_count() -> None:
    """What follows opt_endofopt is no option."""
    interface = NG.interface(options=NG.option(0, b"") + NG.resolution(0))
    segments, _ = read(NG.section() + interface + NG.enhanced(FIRST, ticks=5))
    assert segments[0][1] == 5000


def test_blocks_without_packets_are_skipped(tmp_path: Path) -> None:
    """Name resolution, statistics, journal entries, custom and unknown blocks lie between the packets."""
    skipped = b"".join(NG.block(kind, b"\x01\x02\x03\x04" * n) for kind in (4, 5, 9, 0xBAD, 0x40000BAD) for n in (3, 5))
    data = NG.section() + skipped + NG.interface() + skipped + NG.enhanced(FIRST, ticks=TICKS) + skipped
    segments, captures = read(data + NG.enhanced(SECOND, ticks=TICKS) + skipped)
    assert payloads(segments) == [b"first", b"second one"]
    assert captures.packets == 2 and captures.problems == []


def test_simple_and_obsolete_packet_blocks(tmp_path: Path) -> None:
    """A simple block has neither clock nor length of its own; it takes the time of the packet before it."""
    data = NG.section() + NG.interface() + NG.interface(101)
    data += NG.simple(FIRST)
    data += NG.obsolete(RAW, ticks=TICKS, interface=1)
    data += NG.simple(SECOND)
    segments, captures = read(data)
    assert payloads(segments) == [b"first", b"no link layer", b"second one"]
    assert [segment[1] for segment in segments] == [0, TICKS * 1000, TICKS * 1000]
    assert captures.problems == [] and captures.packets == 3


def test_a_simple_packet_is_bounded_by_the_snap_length() -> None:
    """The block tells only the length on the wire; the padding after the snap length is no data."""
    packet = packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"0123456789")))
    data = NG.section() + NG.interface(snap_length=57) + NG.simple(packet[:57], wire=len(packet))
    (segment,) = read(data)[0]
    assert (seen(segment).payload, segment[9]) == (b"012", 7)


def test_tls_keys_are_remembered() -> None:
    """The key log of a decryption secrets block, for whoever decrypts; secrets of another kind are none."""
    block = NG.block(10, struct.pack("<II", 0x544C534B, 9) + b"CLIENT_RA")
    block += NG.block(10, struct.pack("<II", 0x57474B4C, 4) + b"WGKL")
    data = NG.section() + block + NG.interface() + NG.enhanced(FIRST)
    reader = open_reader(Stream("x", io.BytesIO(data)), LayerDecoder({}), 0, lambda problem: None)
    assert len(list(segments_of(reader))) == 1
    assert reader.take_secrets() == [b"CLIENT_RA"]


def test_a_cut_at_every_byte_gives_all_before_it() -> None:
    """A file cut off in a block gives the packets before, one problem, and where."""
    pieces = [NG.section(), NG.interface(), NG.enhanced(FIRST), NG.block(5, bytes(20)), NG.simple(SECOND)]
    pieces += [Pcapng(">").section(), Pcapng(">").interface(), Pcapng(">").enhanced(FIRST)]
    data = b"".join(pieces)
    ends = [sum(map(len, pieces[: i + 1])) for i in range(len(pieces))]
    packets = [ends[2], ends[4], ends[7]]
    for cut in range(4, len(data)):
        segments, captures = read(data[:cut])
        complete = sum(end <= cut for end in packets)
        assert len(segments) == captures.packets == complete
        if cut in ends:
            assert captures.problems == []
        else:
            (problem,) = captures.problems
            assert (problem.code, problem.offset, problem.packet) == ("capture_cut", cut, complete + 1)


@pytest.mark.parametrize("junk", [b"\0", bytes(64), b"\xff" * 64, b"GET / HTTP/1.1\r\n" * 9])
def test_junk_behind_the_last_block_loses_none_before_it(junk: bytes) -> None:
    """Junk makes one problem, however long it is."""
    segments, captures = read(NG.section() + NG.interface() + NG.enhanced(FIRST) + junk)
    assert payloads(segments) == [b"first"]
    assert len(captures.problems) == 1


@pytest.mark.parametrize("length", [0, 4, 8, 11, 13, 30, 0x01000004, 0xFFFFFFFC, 0xFFFFFFFF])
@pytest.mark.parametrize("kind", [1, 2, 3, 6, 0x0BAD, 0x0A0D0D0A])
def test_a_block_of_impossible_length_ends_the_file_as_damaged(length: int, kind: int) -> None:
    """Nothing loops, waits or allocates for it."""
    good = NG.section() + NG.interface() + NG.enhanced(FIRST)
    bad = struct.pack("<IIII", kind, length, 0x1A2B3C4D, 0) + bytes(40)
    segments, captures = read(good + bad)
    assert payloads(segments) == [b"first"]
    (problem,) = captures.problems
    assert (problem.code, problem.offset, problem.packet) == ("capture_damaged", len(good), 2)


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (NG.enhanced(FIRST, interface=7), "interface 7"),
        (NG.obsolete(FIRST, interface=9), "interface 9"),
        (NG.block(6, struct.pack("<5I", 0, 0, 0, 0x7FFFFFFF, 100) + bytes(40)), "captured length of 2147483647"),
        (NG.block(6, bytes(16)), "packet block of 28"),
        (NG.block(3, b""), "packet block of 12"),
        (NG.block(1, bytes(4)), "interface description of 16"),
        (NG.block(0x0A0D0D0A, bytes(16)), "byte order"),
    ],
)
def test_a_block_that_contradicts_itself_ends_the_file_as_damaged(block: bytes, says: str) -> None:
    """The problem says what is wrong with it."""
    segments, captures = read(NG.section() + NG.interface() + NG.enhanced(FIRST) + block + NG.enhanced(FIRST))
    assert payloads(segments) == [b"first"]
    (problem,) = captures.problems
    assert problem.code == "capture_damaged" and says in problem.message


def test_a_simple_packet_needs_an_interface() -> None:
    """Without a description there is no link type."""
    assert read(NG.section() + NG.simple(FIRST))[1].problems[0].code == "capture_damaged"


def test_key_logs_are_bounded_by_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty ones are not kept, tiny ones count with what an object takes, and those that were taken no more."""
    monkeypatch.setattr(pcapng_blocks, "MAX_SECRETS_BYTES", 1000)
    section = pcapng_blocks.Section(cast(Any, lambda link_type, order: None))
    for _ in range(2):
        for key_log in [b""] * 100 + [b"CLIE"] * 100:
            block = (
                struct.pack("<IIII", pcapng_blocks.SECRETS, 20 + len(key_log), pcapng_blocks.TLS_KEY_LOG, len(key_log))
                + key_log
            )
            section.take(pcapng_blocks.SECRETS, block + bytes(4), 0, len(block) + 4)
        taken = section.take_secrets()
        assert set(taken) == {b"CLIE"} and 64 < len(taken) * 64 <= 1000
    assert section.take_secrets() == []
