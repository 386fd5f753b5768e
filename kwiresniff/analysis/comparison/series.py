"""Values in the order of time, in blocks, which show a test the variation within a capture.

Bounded: a series has at most ``MAX_BLOCKS`` blocks. When there are more, each two become one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kwiresniff.analysis.latency import BUCKET_BYTES, Histogram

#: Blocks of a series: more would resemble each other, fewer would be too few for a test.
MAX_BLOCKS: Final = 32
#: A block must have so many values for its slow ones to be compared.
TAIL_VALUES: Final = 10
#: Slices of a rate over time.
MAX_SLICES: Final = 64
#: Different errors of one API that are counted: all that Kafka has.
MAX_ERROR_NAMES: Final = 250
#: A series without its histograms' buckets.
SERIES_BYTES: Final = 4_000


class LatencySeries:
    """Latencies of one kind of exchange, each block a histogram of equally many, the last one of fewer."""

    __slots__ = ("_blocks", "_each", "whole")

    def __init__(self) -> None:
        self.whole = Histogram()
        self._blocks: list[Histogram] = [Histogram()]
        self._each = 1

    def add(self, latency_ns: int) -> None:
        """Adds the next latency."""
        self.whole.add(latency_ns)
        block = self._blocks[-1]
        if block.count >= self._each:
            if len(self._blocks) >= MAX_BLOCKS:
                self._halve()
            block = Histogram()
            self._blocks.append(block)
        block.add(latency_ns)

    def _halve(self) -> None:
        self._each *= 2
        for first, second in zip(self._blocks[::2], self._blocks[1::2], strict=True):
            first.merge(second)
        self._blocks = self._blocks[::2]

    @property
    def has_tails(self) -> bool:
        """Whether blocks have enough values for their slow ones to be compared."""
        return self._each >= TAIL_VALUES

    def blocks(self, fraction: float) -> list[int]:
        """That percentile of each block, in nanoseconds, leaving out a last one that is not half full."""
        full = [block for block in self._blocks if 2 * block.count >= self._each]
        return [block.percentiles((fraction,))[0] for block in full]

    def size_bytes(self) -> int:
        """Its memory without its key."""
        buckets = sum(len(one.buckets) for one in (self.whole, *self._blocks))
        return SERIES_BYTES + BUCKET_BYTES * buckets


class RateSeries:
    """How much came in each second of a capture, by the time since its first exchange."""

    __slots__ = ("_counts", "width_s")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.width_s = 1

    def add(self, second: int, amount: int) -> None:
        """Adds an amount to a second, counted from the beginning."""
        at = second // self.width_s
        while at >= MAX_SLICES:
            self.widen()
            at = second // self.width_s
        self._counts[at] = self._counts.get(at, 0) + amount

    def widen(self) -> None:
        """Makes each two slices one."""
        self.width_s *= 2
        merged: dict[int, int] = {}
        for at, amount in self._counts.items():
            merged[at // 2] = merged.get(at // 2, 0) + amount
        self._counts = merged

    def per_second(self, seconds: int) -> list[float]:
        """The rate in each slice of a capture that took so many whole seconds, without the first and the last slice,
        of which it may have a part only.
        """
        return [self._counts.get(at, 0) / self.width_s for at in range(1, seconds // self.width_s)]

    @property
    def total(self) -> int:
        """Everything that was added."""
        return sum(self._counts.values())


class OutcomeSeries:
    """Requests of one API in the order in which they were answered, in blocks of equally many, with their errors."""

    __slots__ = ("_blocks", "_each", "count", "errors")

    def __init__(self) -> None:
        self.count = 0
        self.errors: dict[str, int] = {}
        self._blocks: list[tuple[int, dict[str, int]]] = []
        self._each = 1

    def add(self, errors: Iterable[str]) -> bool:
        """Adds a request with the names of its errors, each once; False where there are too many different ones."""
        self.count += 1
        if not self._blocks or self._blocks[-1][0] >= self._each:
            if len(self._blocks) >= MAX_BLOCKS:
                self._halve()
            self._blocks.append((0, {}))
        count, of_block = self._blocks[-1]
        all_known = True
        for name in errors:
            if name not in self.errors and len(self.errors) >= MAX_ERROR_NAMES:
                all_known = False
                continue
            self.errors[name] = self.errors.get(name, 0) + 1
            of_block[name] = of_block.get(name, 0) + 1
        self._blocks[-1] = count + 1, of_block
        return all_known

    def _halve(self) -> None:
        self._each *= 2
        merged = []
        for (count, errors), (more, others) in zip(self._blocks[::2], self._blocks[1::2], strict=True):
            for name, number in others.items():
                errors[name] = errors.get(name, 0) + number
            merged.append((count + more, errors))
        self._blocks = merged

    def shares(self, name: str) -> list[float]:
        """The share of requests with that error in each block, leaving out a last one that is not half full."""
        return [errors.get(name, 0) / count for count, errors in self._blocks if 2 * count >= self._each]
