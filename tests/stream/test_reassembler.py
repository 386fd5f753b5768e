"""Segments in the order of their sequence numbers: each byte once, whatever order they come in."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from kwiresniff.stream.buffer_budget import SEGMENT_BYTES, BufferBudget
from kwiresniff.stream.reassembler import MAX_WINDOW_BYTES, Reassembler

STREAM = bytes(range(256)) * 2


class Reader:
    """Takes what is in order out of a reassembler, as bytes; a byte that is missing is a point."""

    def __init__(self, first_seq: int) -> None:
        self.order = Reassembler(b"flow", BufferBudget())
        self.order.next_seq = first_seq
        self.first_seq = first_seq
        self.read = b""

    def segment(self, start: int, end: int, missing: int = 0) -> None:
        seq = (self.first_seq + start) & 0xFFFFFFFF
        piece = self.order.arrange(1, 1, seq, STREAM, start, end, missing)
        while piece is not None:
            _, _, buffer, at, to, lacking = piece
            self.read += buffer[at:to] + b"." * lacking
            self.order.advance(to - at + lacking)
            piece = self.order.pop()


@pytest.mark.parametrize("first_seq", [0, 0xFFFFFFFF - 100, 0x7FFFFFFF - 100])
def test_the_whole_stream_byte_by_byte_and_cut_anywhere_is_read_as_it_is(first_seq: int) -> None:
    """Bytes come out in order across the wrap of the sequence number, too."""
    for cuts in ([], list(range(1, len(STREAM))), *([cut] for cut in range(1, len(STREAM), 17))):
        reader = Reader(first_seq)
        for start, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
            reader.segment(start, end)
        assert reader.read == STREAM
        assert reader.order.next_seq == (first_seq + len(STREAM)) & 0xFFFFFFFF


@pytest.mark.parametrize("seed", range(20))
def test_segments_in_any_order_repeated_and_overlapping_are_read_once(seed: int) -> None:
    """The first may be the last."""
    rng = random.Random(seed)
    edges = sorted({0, len(STREAM), *(rng.randrange(len(STREAM)) for _ in range(20))})
    pieces = [(max(0, a - rng.randrange(9)), b) for a, b in pairwise(edges)]
    pieces += rng.choices(pieces, k=5)
    rng.shuffle(pieces)
    reader = Reader(5)
    for start, end in pieces:
        reader.segment(start, end)
    assert reader.read == STREAM
    assert reader.order.queue is None


def test_what_waits_is_charged_to_the_budget() -> None:
    """Its bytes, and what an object takes."""
    reader = Reader(0)
    reader.segment(100, 200)
    assert (reader.read, reader.order.budget.held) == (b"", 100 + SEGMENT_BYTES)
    assert reader.order.is_awaited()


def test_a_gap_that_is_skipped_is_told_with_the_segment_behind_it() -> None:
    """Then what waited is in order."""
    reader = Reader(0)
    reader.segment(0, 10)
    reader.segment(15, 20)
    assert reader.order.skip() == (1, 1, 5)
    piece = reader.order.pop()
    assert piece is not None and piece[2][piece[3] : piece[4]] == STREAM[15:20]


def test_bytes_that_are_not_in_the_capture_keep_their_place() -> None:
    """A repetition that has them comes too late."""
    reader = Reader(0)
    reader.segment(0, 10, missing=5)
    reader.segment(0, 20)
    assert reader.read == STREAM[:10] + b"....." + STREAM[15:20]
    assert reader.order.retransmits == 1


def test_a_keep_alive_probe_is_no_repetition() -> None:
    """One byte before the next, without meaning."""
    reader = Reader(0)
    reader.segment(0, 10)
    reader.segment(9, 10)
    assert reader.order.retransmits == 0
    reader.segment(8, 10)
    assert reader.order.retransmits == 1


def test_what_is_far_away_or_behind_the_end_is_of_another_connection() -> None:
    """In both directions of the sequence space."""
    order = Reassembler(b"flow", BufferBudget())
    assert not order.out_of_window(12345)
    order.next_seq = 1000
    for distance, out in ((MAX_WINDOW_BYTES, False), (MAX_WINDOW_BYTES + 1, True)):
        assert order.out_of_window((1000 + distance) & 0xFFFFFFFF) is out
        assert order.out_of_window((1000 - distance) & 0xFFFFFFFF) is out
    assert not order.is_port_reuse(1002)
    order.fin = True
    assert not order.is_port_reuse(1001)
    assert order.is_port_reuse(1002)
