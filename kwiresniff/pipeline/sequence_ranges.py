"""Which bytes of one direction of a connection a capture has: ranges of places, counted from the first one seen.

Besides it is remembered when the stream passed some sequence numbers, round ones, which another capture of the same
connection remembers too: the difference of their times is that of their clocks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from kwiresniff.base.sequence_numbers import SEQ_HALF, SEQ_MASK

#: From a place up to, not including, another one; or a start and a length where that is said.
Range: TypeAlias = tuple[int, int]

#: Ranges kept of a direction; beyond them the smallest hole counts as filled, so that memory is bounded.
MAX_PARTS = 64
#: Moments kept of a direction; beyond them every other one goes, so that they are spread over all of it.
MAX_MARKS = 8


class SequenceRanges:
    """The received ranges of a stream, in order, none touching another.

    ``first`` is the sequence number of place 0, -1 before any; ``size`` counts different bytes, holes never. ``marks``
    are times by sequence number.
    """

    __slots__ = ("_grain", "_top", "first", "marks", "parts", "size")

    def __init__(self) -> None:
        self.first = -1
        self.parts: list[Range] = []
        self.size = 0
        self.marks: dict[int, int] = {}
        self._grain = 4
        self._top = 0

    def add(self, seq: int, size: int, ns: int) -> None:
        """Adds a segment of ``size`` bytes from sequence number ``seq`` on, seen at ``ns``; the numbers wrap (RFC 9293,
        section 3.4).
        """
        if self.first < 0:
            self.first = seq
        if not size:
            return
        ahead = (seq - self.first - self._top) & SEQ_MASK
        start = self._top + (ahead if ahead < SEQ_HALF else ahead - (SEQ_MASK + 1))
        end = start + size
        parts = self.parts
        if parts and start == parts[-1][1]:  # nearly always
            parts[-1] = parts[-1][0], end
            self.size += size
        else:
            self._insert(start, end)
        if end > self._top:
            self._mark(self.first + self._top, self.first + end, ns)
            self._top = end

    def _mark(self, before: int, now: int, ns: int) -> None:
        while len(self.marks) + (now >> self._grain) - (before >> self._grain) > MAX_MARKS:
            self._grain += 1
            self.marks = {seq: at for seq, at in self.marks.items() if not seq & ((1 << self._grain) - 1)}
        for number in range((before >> self._grain) + 1, (now >> self._grain) + 1):
            self.marks[(number << self._grain) & SEQ_MASK] = ns

    def _insert(self, start: int, end: int) -> None:
        parts = self.parts
        low = high = bisect_left(parts, start, key=lambda part: part[1])
        known = 0
        while high < len(parts) and parts[high][0] <= end:
            known += parts[high][1] - parts[high][0]
            start, end = min(start, parts[high][0]), max(end, parts[high][1])
            high += 1
        parts[low:high] = [(start, end)]
        self.size += end - start - known
        if len(parts) > MAX_PARTS:
            at = min(range(1, len(parts)), key=lambda index: parts[index][0] - parts[index - 1][1])
            parts[at - 1 : at + 1] = [(parts[at - 1][0], parts[at][1])]


def lacking(has: Iterable[Range], wanted: Iterable[Range]) -> Iterator[Range]:
    """The parts of the wanted ranges that are in none of the others; both in order."""
    there = list(has)
    for start, end in wanted:
        for have_start, have_end in there:
            if have_end <= start or have_start >= end:
                continue
            if have_start > start:
                yield start, have_start
            start = have_end
        if start < end:
            yield start, end
