"""Stretches of the sequence numbers of one direction of a connection (RFC 9293, section 3.4: they wrap around).

A connection that carries more than 4 GB uses each number several times, and a stretch then stands for all of them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from kwiresniff.base.sequence_numbers import SEQ_MASK

_END = SEQ_MASK + 1


class Stretches:
    """Stretches ``[start, end)``; ``count`` is their number. ``close`` puts them in order before they are asked."""

    def __init__(self) -> None:
        self._starts = array("q")
        self._ends = array("q")

    @property
    def count(self) -> int:
        """The number of stretches."""
        return len(self._starts)

    def add(self, start: int, end: int) -> None:
        """Adds the bytes from ``start`` up to ``end``, none of them where both are the same."""
        start, end = start & SEQ_MASK, end & SEQ_MASK
        if end < start:
            self._put(start, _END)
            start = 0
        if start < end:
            self._put(start, end)

    def _put(self, start: int, end: int) -> None:
        if self._ends and self._ends[-1] == start:
            self._ends[-1] = end
        else:
            self._starts.append(start)
            self._ends.append(end)

    def close(self) -> None:
        """Sorts the stretches and joins those that touch."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted(zip(self._starts, self._ends, strict=True)):
            if merged and start <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(merged[-1][1], end)
            else:
                merged.append((start, end))
        self._starts = array("q", [start for start, _ in merged])
        self._ends = array("q", [end for _, end in merged])

    def touches(self, seq: int, size: int) -> bool:
        """Whether a segment of ``size`` bytes from ``seq`` on has any of the bytes."""
        end = seq + size
        return self._overlaps(seq, min(end, _END)) or (end > _END and self._overlaps(0, end - _END))

    def borders(self, number: int) -> bool:
        """Whether an acknowledgement is of some of the bytes, or of all before them."""
        at = bisect_right(self._starts, number)
        if at and number <= self._ends[at - 1]:
            return True
        return number == 0 and bool(self._ends) and self._ends[-1] == _END

    def _overlaps(self, start: int, end: int) -> bool:
        at = bisect_left(self._ends, start + 1)
        return at < len(self._starts) and self._starts[at] < end
