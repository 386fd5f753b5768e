"""Latency distributions in bounded memory, with a known error.

Buckets as in HDR histograms: of each value the ``KEPT_BITS`` leading bits count, so a bucket is at most a 64th of its
values wide. A percentile is answered with the middle of the bucket it falls in and is therefore within 1 % of a value
that was measured. Histograms merge by adding counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from kwiresniff.results.stats import LatencySummary

if TYPE_CHECKING:
    from mypy_extensions import i64

#: 7 bits make 64 buckets in each power of two: half a bucket is at most 0.8 % of the value.
KEPT_BITS: Final = 7
#: Three days. Nothing waits that long on a TCP connection; what claims to counts as the longest. With it a histogram
#: has 127 buckets at its low end and 64 in each of 41 powers of two, some 200 kB, and usually a hundredth of that.
MAX_NS: Final = 259_200_000_000_000

#: The keys of all buckets, ascending, made once: a dict finds a number sooner that is the same object. Up to 127 it is
#: the value itself, above that how many bits the value takes, and the leading ones of them.
_KEYS: Final[list[Any]] = list(range(1 << KEPT_BITS))
for _bits in range(KEPT_BITS + 1, MAX_NS.bit_length() + 1):
    _KEYS.extend(range(_bits << KEPT_BITS | 1 << KEPT_BITS - 1, _bits + 1 << KEPT_BITS))

#: The memory of a bucket: its entry in the dict, and the count.
BUCKET_BYTES: Final = 100

#: Upper bounds of the buckets for drawing: 1 us to 500 s in steps of 1, 2, 5; the last one
#: also holds what is longer.
DRAWN_BOUNDS_NS: Final[list[int]] = [step * 10**power for power in range(3, 12) for step in (1, 2, 5)]


class Histogram:
    """Counts of latencies in nanoseconds; a negative one (packets out of order in the capture) counts as 0."""

    __slots__ = ("buckets", "count", "max_ns", "min_ns", "sum_ns", "zeros")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.count = 0
        self.zeros = 0
        self.sum_ns = 0
        self.min_ns = MAX_NS
        self.max_ns = 0

    def add(self, latency_ns: int) -> None:
        """Adds one measured value. It is in its bucket before it is counted, because an interrupt
        may come in between.
        """
        if latency_ns <= 0:
            self.zeros += 1
            self.min_ns = 0
            self.count += 1
            return
        self.sum_ns += latency_ns
        if latency_ns < self.min_ns:
            self.min_ns = latency_ns
        if latency_ns > self.max_ns:
            self.max_ns = latency_ns
        # Shifts cost 0.13 us where a logarithm costs 0.3.
        if latency_ns > MAX_NS:
            latency_ns = MAX_NS
        place: i64 = latency_ns
        dropped: i64 = latency_ns.bit_length() - KEPT_BITS
        if dropped > 0:
            place = (dropped << KEPT_BITS - 1) + (place >> dropped)
        bucket = _KEYS[place]
        buckets = self.buckets
        buckets[bucket] = buckets.get(bucket, 0) + 1
        self.count += 1

    def merge(self, other: Histogram) -> None:
        """Adds another histogram's counts, as if all its values had been added here."""
        if self.buckets:
            for bucket, count in other.buckets.items():
                self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        else:
            self.buckets = other.buckets.copy()
        self.count += other.count
        self.zeros += other.zeros
        self.sum_ns += other.sum_ns
        if other.count:
            self.min_ns = min(self.min_ns, other.min_ns)
            self.max_ns = max(self.max_ns, other.max_ns)

    def with_added(self, other: Histogram) -> Histogram:
        """A histogram of both together; neither is changed. It is this one itself where the other adds nothing."""
        if not other.count:
            return self
        both = self.copy()
        both.merge(other)
        return both

    def copy(self) -> Histogram:
        """A copy of the counts."""
        copy = Histogram()
        copy.buckets = self.buckets.copy()
        copy.count, copy.zeros, copy.sum_ns = self.count, self.zeros, self.sum_ns
        copy.min_ns, copy.max_ns = self.min_ns, self.max_ns
        return copy

    def percentiles(self, fractions: Iterable[float]) -> list[int]:
        """The values below or at which the given fractions (ascending, 0 to 1) of all values lie: nearest rank."""
        if not self.count:
            raise ValueError("no values, no percentiles")
        steps = iter(sorted(self.buckets.items()))
        below, value_ns = self.zeros, 0
        result = []
        for fraction in fractions:
            rank = max(ceil(fraction * self.count), 1)
            while below < rank:
                bucket, count = next(steps)
                below += count
                value_ns = min(max(_middle(bucket), self.min_ns), self.max_ns)
            result.append(value_ns if rank < self.count else self.max_ns)
        return result

    def summary(self) -> LatencySummary | None:
        """The distribution in numbers, or None when nothing was added."""
        if not self.count:
            return None
        p50, p90, p95, p99 = self.percentiles((0.5, 0.9, 0.95, 0.99))
        mean_ns = self.sum_ns // self.count
        return LatencySummary(self.count, self.min_ns, mean_ns, p50, p90, p95, p99, self.max_ns, self._drawn())

    def _drawn(self) -> tuple[tuple[int, int], ...]:
        last = len(DRAWN_BOUNDS_NS) - 1
        at, count = 0, self.zeros
        drawn: list[tuple[int, int]] = []
        for bucket, of_bucket in sorted(self.buckets.items()):
            value_ns = _middle(bucket)
            while value_ns > DRAWN_BOUNDS_NS[at] and at < last:
                if drawn or count:
                    drawn.append((DRAWN_BOUNDS_NS[at], count))
                at, count = at + 1, 0
            count += of_bucket
        drawn.append((DRAWN_BOUNDS_NS[at], count))
        return tuple(drawn)


def _middle(bucket: int) -> int:
    """The value in the middle of a bucket."""
    bits = bucket >> KEPT_BITS
    if not bits:
        return bucket
    shift = bits - KEPT_BITS
    return ((bucket & (1 << KEPT_BITS) - 1) << shift) + (1 << shift >> 1)
