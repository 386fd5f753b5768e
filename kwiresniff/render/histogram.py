"""A latency histogram in one short word: a bar character per step of latency.

All rows share one logarithmic scale, so a bar in the same place is the same latency in every row. A step in which
anything fell shows at least the lowest bar: the one slow request is what is looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt


def latency_range(histograms: Sequence[Sequence[tuple[int, int]]]) -> tuple[int, ...]:
    """The upper bounds in ns, in order, that any of the histograms of ``(upper_bound_ns, count)`` uses."""
    return tuple(sorted({bound for buckets in histograms for bound, _ in buckets}))


def sparkline(buckets: Sequence[tuple[int, int]], scale: Sequence[int], width: int, bars: str) -> str:
    """The histogram over the bounds in ``scale``, in at most ``width`` characters, scaled to its highest count.

    ``bars`` runs from blank to full. Heights grow with the square root, so that a hundredth is still seen.
    """
    group = max(ceil(len(scale) / width), 1)
    place = {bound: index // group for index, bound in enumerate(scale)}
    counts = [0] * ceil(len(scale) / group)
    for bound, count in buckets:
        counts[place[bound]] += count
    highest = max(counts, default=0)
    if not highest:
        return ""
    top = len(bars) - 1
    return "".join([bars[ceil(sqrt(count / highest) * top) if count else 0] for count in counts]).rstrip()
