"""Out-of-order segments of one direction, queued until the gap in front of them is filled or skipped."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Bytes and segments held before a gap is given up: the usual ceiling of a receive window (``tcp_rmem``).
MAX_QUEUED_BYTES = 4 << 20
MAX_QUEUED_SEGMENTS = 4096

#: A gap before an acknowledgement was filled for the receiver, so the capture lost it, or has it some places further
#: on: several queues at a capture point put packets in another order than the wire. It is given up after so much
#: time or so many packets of the capture. Queues differ by microseconds to a few milliseconds.
GRACE_NS: Final = 50_000_000
GRACE_PACKETS: Final = 256

#: Place, packet, time, data, bytes behind it that are not in the capture, and what the segment acknowledged.
QueuedSegment: TypeAlias = "tuple[int, int, int, bytes, int, int]"


class OutOfOrderQueue:
    """Segments by ``stream_offset``: ``first`` is the place of the first one, ``bytes`` what all hold."""

    STATE: ClassVar[tuple[str, ...]] = ("_acked", "_acked_ns", "_acked_packet", "bytes", "first", "segments")
    __slots__ = STATE

    def __init__(self) -> None:
        self.segments: list[QueuedSegment] = []
        self.first: i64 = 0
        self.bytes: i64 = 0
        self._acked: i64 = -1  # up to there the receiver has everything, known since:
        self._acked_packet: i64 = 0
        self._acked_ns = 0

    def push(self, segment: QueuedSegment) -> None:
        """Queue a segment. Most come behind those that are there; to move others up takes less than to compare."""
        segments = self.segments
        if segments and segment[0] <= segments[-1][0]:
            insort(segments, segment)
        else:
            segments.append(segment)
        self.first = segments[0][0]
        self.bytes += len(segment[3])

    def is_full(self) -> bool:
        """Whether the queue exceeds its limit, so that the gap in front must be skipped."""
        return self.bytes > MAX_QUEUED_BYTES or len(self.segments) > MAX_QUEUED_SEGMENTS

    def is_next(self, place: i64) -> bool:
        """Whether the first segment begins at ``place`` or before it."""
        return self.first <= place

    def pop_first(self) -> QueuedSegment:
        """Remove and return the first segment."""
        segments = self.segments
        segment = segments.pop(0)
        if segments:
            self.first = segments[0][0]
        self.bytes -= len(segment[3])
        return segment

    def drop(self, which: Callable[[bytes], bool]) -> None:
        """Removes the segments whose data ``which`` returns true for; what they held is a gap then."""
        self.segments = [segment for segment in self.segments if not which(segment[3])]
        self.bytes = sum(len(segment[3]) for segment in self.segments)
        self.first = self.segments[0][0] if self.segments else 0

    def confirm(self, place: i64, packet: i64, ns: int) -> None:
        """Notes that the receiver acknowledges, in ``packet`` at ``ns``, everything before ``place``."""
        if self.is_next(place):
            self._acked, self._acked_packet, self._acked_ns = place, packet, ns

    def is_confirmed(self) -> bool:
        """Whether the receiver has acknowledged the gap in front, so that its bytes will not be sent again."""
        return self.is_next(self._acked)

    def is_in_grace(self, packet: i64, ns: int) -> bool:
        """Whether the bytes of an acknowledged gap may still follow a few packets later in the capture."""
        return packet - self._acked_packet <= GRACE_PACKETS and ns - self._acked_ns <= GRACE_NS
