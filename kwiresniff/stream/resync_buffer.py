"""The bytes of one direction that are searched for the first byte of a frame, and the segments they came in."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Of a segment: its offset in the buffer, its packet and time, and what it acknowledged.
Mark: TypeAlias = "tuple[int, int, int, int]"

#: Bytes kept to look at: a request header has under 300, and a frame is confirmed by its end or successor.
MAX_RESYNC_BYTES: Final = 64 << 10

#: And so many segments. What is known of one takes so much memory beside its bytes.
MAX_RESYNC_SEGMENTS: Final = 4096
MARK_BYTES: Final = 192

#: A buffer longer than the first is searched when it has grown by this fraction, to bound the work.
MIN_SEARCH_BYTES: Final = 1024
SEARCH_GROWTH: Final = 16

#: After this much without a frame only what starts in a segment is looked for, which costs next to nothing.
SEARCH_BUDGET_BYTES: Final = 1 << 20

#: Searches are paid for in steps, of a nanosecond or two each: to look at a byte once is a step or two, to read a frame
#: that may be a message some thousands. A direction begins with so many, enough for a few dozen small segments, and
#: earns so many with each new byte and each segment (its headers are bytes, too); how often frames are lost makes no
#: difference. Hostile bytes therefore cost a few times what others do, and wait when that is used up.
FIRST_STEPS: Final = 256 << 10
STEPS_PER_BYTE: Final = 100
STEPS_PER_SEGMENT: Final = 64 * STEPS_PER_BYTE
#: What a search costs before it has looked at anything, reporting it included.
SEARCH_STEPS: Final = 4096
#: What is under search most of the time, and what has come since somebody looked. Never added to.
NO_PIECES: Final[list[bytes]] = []
NO_MARKS: Final[list[Mark]] = []


class ResyncBuffer:
    """A buffer that grows by segments and is trimmed at its front when it is too long.

    ``data`` are the bytes, put together when somebody looks at them. ``ahead`` counts those of the last segment that
    were on the wire behind them but are not in the capture. ``marks`` has for each segment its offset in ``data``, its
    packet and time, and what it acknowledged.
    ``steps`` are those that searches may still take; a search that has none left finds nothing. ``awaited`` is the
    offset of the first segment that may begin with a frame, of which more has to be there before it is believed; -1 for
    none.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "_data", "_fresh", "_pieces", "_searched", "_size", "ahead", "awaited", "marks", "steps",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self) -> None:
        self._data = b""
        self._pieces = NO_PIECES
        self._size: i64 = 0
        self.marks = NO_MARKS
        self.ahead: i64 = 0
        self.steps: i64 = FIRST_STEPS
        self.awaited: i64 = -1
        self._searched: i64 = 0  # bytes taken since the frames were lost
        self._fresh: i64 = 0  # and since the last search

    def __len__(self) -> int:
        return self._size

    @property
    def data(self) -> bytes:
        """The bytes."""
        self._join()
        return self._data

    def _join(self) -> None:
        if self._pieces:
            self._data = b"".join([self._data, *self._pieces])
            self._pieces = NO_PIECES

    def begin(self) -> None:
        """Empties the buffer and its counts for a new search."""
        self._searched = 0
        self.clear()

    def clear(self) -> None:
        """Drops the bytes; how many there have been is kept."""
        if self.marks:
            self._data = b""
            self._pieces = NO_PIECES
            self._size = 0
            self.marks = NO_MARKS
        self._fresh = 0
        self.awaited = -1

    def excess(self, length: i64) -> i64:
        """The bytes to be dropped before ``length`` more are taken."""
        # Out of budget: only what starts in a segment can be found; a possible start is kept with what follows.
        held = self._size
        over, least = held + length - MAX_RESYNC_BYTES, MAX_RESYNC_BYTES // SEARCH_GROWTH
        if self._searched + length > SEARCH_BUDGET_BYTES:
            over = held if self.awaited < 0 else max(over, self.awaited)
            least = 0
        if len(self.marks) >= MAX_RESYNC_SEGMENTS:
            over = max(over, self.marks[MAX_RESYNC_SEGMENTS // SEARCH_GROWTH][0])
        return max(over, least) if held and over > 0 else 0

    def pass_over(self, length: i64) -> None:
        """Drops the first ``length`` bytes; what is left of a segment keeps its packet and time."""
        marks = [(start - length, packet, ns, ack) for start, _, packet, ns, ack in self.segments(length)]
        data = self.data[length:]
        self.clear()
        if data:
            self.marks, self._data, self._size = marks, data, len(data)

    def trim(self, over: i64) -> int:
        """Drops whole segments at the front until ``over`` bytes are gone; returns how many bytes went."""
        cut = self._size
        for index, (offset, *_) in enumerate(self.marks):
            if offset >= over:
                cut = offset
                self.marks = [(o - cut, p, t, a) for o, p, t, a in self.marks[index:]]
                break
        else:
            self.marks = []
        self._data = self.data[cut:]
        self._size = len(self._data)
        self.awaited = max(self.awaited - cut, -1)
        return cut

    def may_begin(self, offset: i64) -> None:
        """Notes that a frame may begin at the start of a segment; the first such place of a search counts."""
        if self.awaited < 0:
            self.awaited = offset

    def feed(self, packet: i64, ns: int, ack: i64, data: bytes) -> bool:
        """Append a segment; says whether it is time to search."""
        length: i64 = len(data)
        if self.marks:
            self.marks.append((self._size, packet, ns, ack))
            if self._pieces:
                self._pieces.append(data)
            else:
                self._pieces = [data]
        else:
            self.marks = [(0, packet, ns, ack)]
            self._data = data
        self._size += length
        self._searched += length
        self._fresh += length
        size = self._size
        return self._fresh * SEARCH_GROWTH >= size or size <= MIN_SEARCH_BYTES or self.ahead > 0

    def earn(self, length: i64) -> None:
        """Adds steps for a segment of ``length`` bytes that are new."""
        self.steps += STEPS_PER_SEGMENT + length * STEPS_PER_BYTE

    def looked_at(self) -> None:
        """Notes that a search looks at all bytes in the buffer."""
        self._join()
        self._fresh = 0
        self.awaited = -1

    def can_pay(self) -> bool:
        """Whether there are steps left for a search; takes off what every search costs."""
        if self.steps <= 0:
            return False
        self.steps -= SEARCH_STEPS + 4 * self._size  # they are copied, too, when something is found
        return True

    def starts(self) -> list[int]:
        """The offsets in ``data`` at which segments begin."""
        return [mark[0] for mark in self.marks]

    def place(self, offset: i64) -> tuple[int, int]:
        """Packet reference and time (ns) of the segment that the byte at ``offset`` came in."""
        for start, packet, ns, _ in reversed(self.marks):
            if start <= offset:
                return packet, ns
        raise ValueError(offset)

    def segments(self, offset: i64) -> list[tuple[int, int, int, int, int]]:
        """The segments from ``offset`` on, each as ``(start, end, packet, ns, ack)`` with offsets in ``data``."""
        found = []
        end = self._size
        for start, packet, ns, ack in reversed(self.marks):
            if end > offset:
                found.append((max(start, offset), end, packet, ns, ack))
            end = start
        found.reverse()
        return found
