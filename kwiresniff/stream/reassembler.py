"""The segments of one direction in the order of their sequence numbers, each byte once.

Nothing is called from here: what is in order is returned, and a gap is a fact that the caller asks for. Sequence
numbers are 32-bit and wrap (RFC 9293, section 3.4); all comparisons are by forward distance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from kwiresniff.base.sequence_numbers import SEQ_HALF, SEQ_MASK
from kwiresniff.stream.buffer_budget import SEGMENT_BYTES, BufferBudget
from kwiresniff.stream.out_of_order import OutOfOrderQueue

if TYPE_CHECKING:
    from mypy_extensions import i64

#: A segment this far from the expected one is another connection's; no TCP window is as large.
MAX_WINDOW_BYTES: Final = 0x10000000

#: Packet, its time, buffer, start, end, and bytes behind the end that were on the wire and are not in the capture.
Piece: TypeAlias = "tuple[int, int, bytes, int, int, int]"


class Reassembler:
    """The sequence numbers of one direction, and its out-of-order segments: ``queue`` is None while there are none.

    ``next_seq`` and ``syn_seq`` are -1 until they are known; ``ack`` is what the segment acknowledges that is being
    handed on, -1 where that is not known, ``acked`` the furthest that one has acknowledged. ``stream_offset`` is the
    place of ``next_seq`` in the order of the queue, which does not wrap. It means something only while anything waits,
    so what is read on a short way is not counted. ``largest`` is the largest number of bytes in one segment.
    ``captured_twice`` counts those of the ``retransmits`` that came too soon to be any, ``came_soon`` those that came
    before a timeout of the sender could have sent them again or when they had been acknowledged, ``soon_bytes`` their
    payload that was there before. ``copies`` counts those that nobody sent again because of a loss: they followed
    themselves at once, with nothing of their direction in between, so that the network or the capture made two of one;
    or they are the late ones themselves after another had filled their place, ``filled``, which is none of the
    ``recovered`` then, if it was (``filled_late``). ``late_seq`` is ``next_seq`` when a segment last came again later
    than that, -1 if none did. ``recovered`` counts segments that came so long after what follows them that they had
    been lost before the capture point. ``resent`` is the last segment that was sent again: its sequence number, its
    bytes, how often, in which packet and when first.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "ack", "acked", "budget", "bytes", "came_soon", "captured_twice", "closed", "copies", "filled", "filled_late",
        "fin", "flow", "largest", "last_ns", "late_seq", "next_seq", "packets", "queue", "recovered", "resent",
        "retransmits", "soon_bytes", "stream_offset", "syn_seq",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self, flow: bytes, budget: BufferBudget) -> None:
        self.queue: OutOfOrderQueue | None = None
        self.flow = flow
        self.budget = budget
        self.next_seq: i64 = -1
        self.syn_seq: i64 = -1
        self.stream_offset: i64 = 0
        self.ack: i64 = -1
        self.acked: i64 = -1
        self.packets: i64 = 0
        self.bytes: i64 = 0
        self.largest: i64 = 0
        self.retransmits: i64 = 0
        self.captured_twice: i64 = 0
        self.came_soon: i64 = 0
        self.copies: i64 = 0
        self.filled: i64 = -1
        self.filled_late = False
        self.soon_bytes: i64 = 0
        self.late_seq: i64 = -1
        self.recovered: i64 = 0
        self.resent: tuple[int, int, int, int, int] = (-1, 0, 0, 0, 0)
        self.last_ns = 0
        self.fin = False
        self.closed = False

    def distance(self, seq: i64) -> i64:
        """Signed distance in bytes from the next expected byte to ``seq``; negative is behind."""
        delta = (seq - self.next_seq) & SEQ_MASK
        return delta - SEQ_MASK - 1 if delta >= SEQ_HALF else delta

    def acknowledge(self, ack: i64) -> None:
        """Takes in what a segment acknowledges; a copy that comes late takes nothing back."""
        self.ack = ack
        if self.acked < 0 or (ack - self.acked) & SEQ_MASK < SEQ_HALF:
            self.acked = ack

    def has_acknowledged(self, seq: i64) -> bool:
        """Whether a segment has acknowledged everything before ``seq`` of the other direction."""
        return self.acked >= 0 and (self.acked - seq) & SEQ_MASK < SEQ_HALF

    def out_of_window(self, seq: i64) -> bool:
        """Whether ``seq`` is too far away to belong to what was seen of this direction."""
        return self.next_seq >= 0 and not -MAX_WINDOW_BYTES <= self.distance(seq) <= MAX_WINDOW_BYTES

    def is_port_reuse(self, seq: i64) -> bool:
        """Whether data at ``seq`` belongs to another connection on the same ports: far away, or behind the end."""
        return self.out_of_window(seq) or (
            self.fin and self.queue is None and self.next_seq >= 0 and self.distance(seq) > 1
        )

    def advance(self, length: i64) -> None:
        """Moves the expected sequence number by ``length`` bytes that were delivered or skipped."""
        self.next_seq = (self.next_seq + length) & SEQ_MASK
        self.stream_offset += length

    def arrange(
        self, packet: i64, ns: int, seq: i64, buffer: bytes, start: i64, end: i64, missing: i64
    ) -> Piece | None:
        """The part of a segment that is in order now, or None; one without data is the end of the stream."""
        if self.next_seq < 0:
            self.next_seq = seq
        behind = -self.distance(seq)
        if behind > 0:
            length = end - start + missing
            if length <= 1 and behind == 1:
                return None  # keep-alive probe: one byte before the window, RFC 9293 section 3.8.4
            self.retransmits += 1
            if seq == self.filled:
                self.filled = -1
                self.copies += 1
                self.recovered -= self.filled_late
            self.soon_bytes += min(end - start, behind)
            again, size, times, first_packet, first_ns = self.resent
            self.resent = (
                (seq, min(size, length), times + 1, first_packet, first_ns)
                if again == seq
                else (seq, length, 1, packet, ns)
            )
            if length <= behind:
                return None
            start += behind
            if start > end:
                missing -= start - end
                start = end
        elif behind < 0:
            data = buffer[start:end]
            if self.queue is None:
                self.queue = OutOfOrderQueue()
            self.queue.push((self.stream_offset - behind, packet, ns, data, missing, self.ack))
            self.budget.held += len(data) + SEGMENT_BYTES
            return None
        return packet, ns, buffer, start, end, missing

    def has_next(self) -> bool:
        """Whether a queued segment is in order now."""
        return self.queue is not None and self.queue.is_next(self.stream_offset)

    def pop(self) -> Piece | None:
        """Removes and returns a queued segment that is in order now, or None; sets ``ack`` to what it acknowledges."""
        while (queue := self.queue) is not None and queue.is_next(self.stream_offset):
            offset, packet, ns, data, missing, self.ack = queue.pop_first()
            if not queue.segments:
                self.queue = None
            start: i64 = self.stream_offset - offset
            end: i64 = len(data)
            if start > 0:
                self.soon_bytes += min(start, end)
            if start >= end + missing:
                self.retransmits += start > 0  # an end of stream that waited in its place is nothing sent twice
                continue
            if start > end:
                missing -= start - end
                start = end
            return packet, ns, data, start, end, missing
        return None

    def skip(self) -> tuple[int, int, int]:
        """Skips the gap before the first queued segment; returns its ``(packet, ns)`` and the bytes skipped."""
        assert self.queue is not None
        first = self.queue.segments[0]
        packet, ns = first[1], first[2]
        missing = first[0] - self.stream_offset
        self.advance(missing)
        return packet, ns, missing

    def is_awaited(self) -> bool:
        """Whether bytes are missing that the receiver has not acknowledged, so that they will be sent again."""
        return self.queue is not None and not self.queue.is_confirmed()
