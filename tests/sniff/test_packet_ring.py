"""The kernel's ring, filled by hand: blocks as the kernel lays them out, taken without losing or mixing up a packet."""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from kwiresniff.capture.link_layer import ETHERNET
from kwiresniff.capture.live.live_capture import LiveCapture
from kwiresniff.capture.live.packet_ring import BLOCK_BYTES, PacketRing
from kwiresniff.capture.live.source import Batch, LiveOptions, Packet
from kwiresniff.model import Problem

MAC_OFFSET = 82  # where the kernel puts an Ethernet frame behind its own header
SECOND_NS = 1_000_000_000


def block(first: int, count: int) -> bytes:
    """A block that is ours to read, with packets numbered in their first bytes; each is a second after the last."""
    packets = b""
    for number in range(first, first + count):
        data = struct.pack(">I", number) + bytes(number % 7)
        size = (MAC_OFFSET + len(data) + 15) // 16 * 16
        header = struct.pack("=6IHH", size, number, 0, len(data), len(data), 1, MAC_OFFSET, 96)
        packets += header.ljust(MAC_OFFSET, b"\0") + data.ljust(size - MAC_OFFSET, b"\0")
    head = struct.pack("=8xIIII", 1, count, 48, 48 + len(packets)).ljust(48, b"\0")
    return (head + packets).ljust(BLOCK_BYTES, b"\0")


class Filled(PacketRing):
    """A ring with these blocks, and no kernel behind it."""

    def __init__(self, *blocks: bytes) -> None:
        self.problems: list[Problem] = []
        self.waiting = 0
        self.backlog_bytes = 4 * BLOCK_BYTES
        self.link_type = ETHERNET
        self._map = mmap.mmap(-1, BLOCK_BYTES * (len(blocks) + 1))
        self._map.write(b"".join(blocks))

    def dropped(self) -> int:
        return 0

    def close(self) -> None:
        pass

    def _wait(self) -> bool:
        return False  # nothing more will come


def number_of(packet: Packet) -> int:
    _, buffer, start, end, wire = packet
    (number,) = struct.unpack_from(">I", buffer, start)
    assert end - start == wire == 4 + number % 7
    return int(number)


def taken(batches: Iterator[Batch]) -> list[tuple[int, list[int]]]:
    return [(passed_over, [number_of(one) for one in packets]) for passed_over, packets in batches]


def keeping(kept: list[int], room: int = 1_000) -> Callable[[list[Packet]], bool]:
    def keep(packets: list[Packet]) -> bool:
        del packets[max(room - len(kept), 0) :]
        kept.extend(map(number_of, packets))
        return len(kept) < room

    return keep


def always() -> bool:
    return True


def test_every_packet_of_every_block_comes_once_and_in_order() -> None:
    kept: list[int] = []
    found = taken(Filled(block(0, 3), block(3, 1), block(4, 5)).batches(always, keeping(kept), keep_all=False))
    assert found == [(0, [0, 1, 2]), (0, [3]), (0, [4, 5, 6, 7, 8]), (0, [])]
    assert kept == list(range(9))


def test_packets_are_kept_as_soon_as_they_are_there() -> None:
    """Before the first of them is decoded."""
    kept: list[int] = []
    batches = Filled(block(0, 3), block(3, 3)).batches(always, keeping(kept), keep_all=True)
    next(batches)
    assert kept == list(range(6))


def test_what_finds_no_room_is_kept_and_passed_over() -> None:
    kept: list[int] = []
    ring = Filled(block(0, 2), block(2, 3), block(5, 1))
    ring.backlog_bytes = 1
    assert taken(ring.batches(always, keeping(kept), keep_all=True)) == [(0, [0, 1]), (4, [])]
    assert kept == list(range(6))


def test_without_a_file_a_block_stays_with_the_kernel_until_its_turn() -> None:
    kept: list[int] = []
    batches = Filled(block(0, 2), block(2, 3)).batches(always, keeping(kept), keep_all=False)
    next(batches)
    assert kept == [0, 1]
    assert taken(batches) == [(0, [2, 3, 4]), (0, [])]


def test_nothing_comes_after_the_last_packet_that_is_wanted() -> None:
    kept: list[int] = []
    found = taken(Filled(block(0, 2), block(2, 3), block(5, 3)).batches(always, keeping(kept, 4), keep_all=False))
    assert found == [(0, [0, 1]), (0, [2, 3]), (0, [])]


def test_an_end_that_is_asked_for_comes_after_the_packets_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 3 * SECOND_NS)
    found = taken(Filled(block(0, 2), block(2, 4), block(6, 1)).batches(lambda: False, keeping([]), keep_all=False))
    assert found == [(0, [0, 1]), (0, [2, 3]), (0, [])]


def test_packets_passed_over_are_counted_as_dropped_and_the_others_keep_their_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that a number means the same packet in the output and in the file."""
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    ring = Filled(block(0, 2), block(2, 3))
    ring.backlog_bytes = 1
    live = LiveCapture(ring, LiveOptions(("lo",)))
    monkeypatch.setattr(live, "_writers", [Nothing()])
    assert list(live) == []
    assert (live.packets, live.passed_over, live.dropped) == (2, 3, 3)
    (problem,) = live.problems
    assert problem.message == "3 packets were written but not decoded, for lack of time"
    assert problem.details == {"packets": 3, "only_written": 3, "total": 3}


def test_who_does_not_wait_for_the_end_is_told_what_was_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    live = LiveCapture(Filled(block(0, 5), block(5, 2)), LiveOptions(("lo",)))
    monkeypatch.setattr(live, "_writers", [Nothing()])
    segment = (1, 0, b"", 0, 0, 0, b"", 0, 0, 0)
    monkeypatch.setattr("kwiresniff.capture.packet_decoder.LayerDecoder.segment", lambda *packet: segment)
    segments = iter(live)
    assert [next(segments) for _ in range(5)] == [segment] * 5
    live.stop()
    segments.close()  # type: ignore[attr-defined]
    assert (live.packets, live.dropped) == (5, 2)


class Nothing:
    """A file that takes everything."""

    full = False

    def write(self, *packet: object) -> None:
        pass

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass
