"""Which exchanges got slower or faster, by API, and of these with which clients and brokers.

A difference counts where all of this holds: like captures differ so much by chance in one of a hundred comparisons at
most, whatever the number of kinds that are compared; it is large enough to matter; it is there between any third of
the one and any third of the other; and it is larger than those between the thirds of either, because brokers and
clients are slow for a while after their start, and what changes within a capture is no change between two.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from kwiresniff.analysis.comparison.rank_test import rank_test
from kwiresniff.analysis.comparison.series import LatencySeries
from kwiresniff.analysis.comparison.survey import Kind
from kwiresniff.analysis.latency import Histogram
from kwiresniff.results.comparison import Change, What

#: The share of comparisons of like captures that report a change (family-wise error rate).
ALPHA: Final = 0.01
#: Fewer blocks than this cannot show that a difference is no chance.
MIN_BLOCKS: Final = 8
#: Of fewer values a difference is not even doubtful.
MIN_DOUBTED: Final = 4
#: A change by a smaller ratio, or by less time, is not reported.
MIN_RATIO: Final = 1.2
MIN_NS: Final = 50_000
#: From this ratio on it is severe.
SEVERE_RATIO: Final = 2.0

#: The measures that are compared of each kind: name and percentile.
MEASURES: Final = (("median latency", 0.5), ("p90 latency", 0.9))


class _Difference(NamedTuple):
    measure: str
    before_ns: int
    after_ns: int
    chance: float
    lasts: bool

    @property
    def ratio(self) -> float:
        """How many times greater the greater one is."""
        less, more = sorted((max(self.before_ns, 1), max(self.after_ns, 1)))
        return more / less

    @property
    def is_large(self) -> bool:
        return is_large(*sorted((self.before_ns, self.after_ns)))


def latency_changes(
    before: dict[Kind, LatencySeries], after: dict[Kind, LatencySeries]
) -> tuple[list[Change], list[Change], int]:
    """The changes, the doubtful changes, and how many kinds were compared."""
    both = [kind for kind in before if kind in after]
    enough = {kind for kind in both if min(_blocks(before[kind]), _blocks(after[kind])) >= MIN_BLOCKS}
    limit = ALPHA / (len(MEASURES) * max(len(enough), 1))
    differences = {kind: _differences(before[kind], after[kind]) for kind in both}
    changed: dict[Kind, Change] = {}
    doubtful: list[Change] = []
    for kind in both:
        for one in differences[kind]:
            if not one.is_large:
                continue
            change = _change(kind, one, before[kind], after[kind])
            if kind in enough and one.chance < limit and one.lasts:
                changed[kind] = change
                break
            few = min(before[kind].whole.count, after[kind].whole.count)
            may_be = (kind not in enough and few >= MIN_DOUBTED) or (kind in enough and one.chance < limit)
            if one.ratio >= SEVERE_RATIO and may_be and (not kind.dimension or kind in enough):
                doubtful.append(change)
                break
    return _by_api(enough, changed, differences), doubtful, len(enough)


def _blocks(series: LatencySeries) -> int:
    return len(series.blocks(0.5))


def _differences(before: LatencySeries, after: LatencySeries) -> list[_Difference]:
    """The difference of each measure; of slow ones only where blocks have enough of them."""
    found = []
    for measure, fraction in MEASURES:
        if fraction > 0.5 and not (before.has_tails and after.has_tails):
            continue
        blocks = before.blocks(fraction), after.blocks(fraction)
        at = [series.whole.percentiles((fraction,))[0] for series in (before, after)]
        chance = rank_test(*blocks, independent=_are_far_apart(*blocks))
        found.append(_Difference(measure, at[0], at[1], chance, _lasts(*blocks)))
    return found


def _lasts(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether each third of one is by a large difference above each third of the other, and no side differs as much
    within itself.
    """
    earlier, later = _thirds(before), _thirds(after)
    if not is_large(max(earlier), min(later)) and not is_large(max(later), min(earlier)):
        return False
    less, more = sorted((median(before), median(after)))
    return all(more * min(side) > less * max(side) for side in (earlier, later))


def _are_far_apart(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether the nearest thirds of both differ by a greater ratio than any two thirds of one: what changes within a
    side does not come as far as the other.
    """
    earlier, later = _thirds(before), _thirds(after)
    lower, upper = (earlier, later) if max(earlier) < min(later) else (later, earlier)
    gap = min(upper) / max(*lower, 1)
    return all(gap > max(side) / max(min(side), 1) for side in (earlier, later))


def _thirds(blocks: Sequence[int]) -> list[float]:
    """The median of each third; of fewer than three all."""
    each = max(len(blocks) // 3, 1)
    return [median(blocks[at : at + each]) for at in (0, (len(blocks) - each) // 2, len(blocks) - each)]


def is_large(less_ns: float, more_ns: float) -> bool:
    """Whether a time is so much longer that it is worth telling."""
    return more_ns >= less_ns * MIN_RATIO and more_ns - less_ns >= MIN_NS


def _change(kind: Kind, one: _Difference, before: LatencySeries, after: LatencySeries) -> Change:
    what: What = "slower" if one.after_ns > one.before_ns else "faster"
    severity = "info" if what == "faster" else "error" if one.ratio >= SEVERE_RATIO else "warning"
    return Change(
        section="latency",
        severity=severity,
        what=what,
        subject=str(kind),
        measure=one.measure,
        before=one.before_ns,
        after=one.after_ns,
        unit="ns",
        chance=one.chance,
        greater=greater_share(before.whole, after.whole),
        counts=(before.whole.count, after.whole.count),
    )


def _by_api(enough: set[Kind], changed: dict[Kind, Change], differences: dict[Kind, list[_Difference]]) -> list[Change]:
    """A change of an API with those of its parts; parts by themselves where the API as a whole has not changed."""
    found: list[Change] = []
    for api in dict.fromkeys(kind.api for kind in changed):
        compared = [kind for kind in differences if kind.api == api and kind in enough and kind.dimension]
        several = [kind for kind in compared if sum(one.dimension == kind.dimension for one in compared) > 1]
        parts = [kind for kind in several if kind in changed]
        whole = changed.get(Kind(api))
        if whole is None:
            found += [changed[kind] for kind in compared if kind in changed]
            continue
        same = tuple(str(kind) for kind in several if kind not in changed)
        if compared and not any(one.is_large for kind in compared for one in differences[kind]):
            note = "each client and each broker that is in both takes as long as before: the mixture is another"
            found.append(whole._replace(severity="info", what="changed", note=note))
            continue
        found.append(whole._replace(parts=tuple(changed[kind] for kind in parts), same=same))
    return found


def greater_share(before: Histogram, after: Histogram) -> float:
    """The share of all pairs, one value of each, in which the later one is greater; equal ones count half."""
    if not before.count or not after.count:
        return 0.5
    below = greater = 0.0
    counts: dict[int, Sequence[int]] = {-1: (before.zeros, after.zeros)}
    for bucket in {*before.buckets, *after.buckets}:
        counts[bucket] = before.buckets.get(bucket, 0), after.buckets.get(bucket, 0)
    for _, (earlier, later) in sorted(counts.items()):
        greater += later * (below + earlier / 2)
        below += earlier
    return greater / (before.count * after.count)
