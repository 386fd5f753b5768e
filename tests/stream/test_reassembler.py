"""Segments in the order of their sequence numbers: what a half stream does not show of it (``test_half_stream``)."""

from __future__ import annotations

from kwiresniff.stream.buffer_budget import SEGMENT_BYTES, BufferBudget
from kwiresniff.stream.reassembler import MAX_WINDOW_BYTES, Reassembler

STREAM = bytes(range(256))


class Reader:
    """Takes what is in order out of a reassembler, as bytes; a byte that is missing is a point."""

    def __init__(self) -> None:
        self.order = Reassembler(b"flow", BufferBudget())
        self.order.next_seq = 0
        self.read = b""

    def segment(self, start: int, end: int, missing: int = 0) -> None:
        piece = self.order.arrange(1, 1, start, STREAM, start, end, missing)
        while piece is not None:
            _, _, buffer, at, to, lacking = piece
            self.read += buffer[at:to] + b"." * lacking
            self.order.advance(to - at + lacking)
            piece = self.order.pop()


def test_what_waits_is_charged_to_the_budget() -> None:
    """Its bytes, and what an object takes."""
    reader = Reader()
    reader.segment(100, 200)
    assert (reader.read, reader.order.budget.held) == (b"", 100 + SEGMENT_BYTES)
    assert reader.order.is_awaited()


def test_bytes_that_are_not_in_the_capture_keep_their_place() -> None:
    """A repetition that has them comes too late."""
    reader = Reader()
    reader.segment(0, 10, missing=5)
    reader.segment(0, 20)
    assert reader.read == STREAM[:10] + b"....." + STREAM[15:20]
    assert reader.order.retransmits == 1


def test_a_keep_alive_probe_is_no_repetition() -> None:
    """One byte before the next, without meaning."""
    reader = Reader()
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
