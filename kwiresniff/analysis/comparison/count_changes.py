"""Which errors are new, gone, more or less frequent, and whether there is more or less traffic."""

from __future__ import annotations

from statistics import fmean
from typing import Final

from kwiresniff.analysis.comparison.latency_changes import ALPHA, MIN_BLOCKS
from kwiresniff.analysis.comparison.rank_test import rank_test
from kwiresniff.analysis.comparison.series import RateSeries
from kwiresniff.analysis.comparison.survey import UNANSWERED, Found
from kwiresniff.results.comparison import Change, What

#: The smallest ratio of error frequencies, and of rates, that is reported.
MIN_RATIO: Final = 1.5
#: Shorter captures say little about rates.
MIN_SECONDS: Final = 20


def error_changes(before: Found, after: Found) -> tuple[list[Change], list[Change], int]:
    """The changes, the doubtful changes, and how many pairs of API and error were compared."""
    pairs = [
        (api, name)
        for api in before.outcomes
        if api in after.outcomes
        for name in {**before.outcomes[api].errors, **after.outcomes[api].errors}
    ]
    found: list[Change] = []
    doubtful: list[Change] = []
    for api, name in pairs:
        sides = before.outcomes[api], after.outcomes[api]
        shares = [side.errors.get(name, 0) / side.count for side in sides]
        low, high = sorted(shares)
        if low and high / low < MIN_RATIO:
            continue
        blocks = [side.shares(name) for side in sides]
        chance = rank_test(*blocks)
        what: What = (
            "new" if not shares[0] else "gone" if not shares[1] else "more" if shares[1] > shares[0] else "less"
        )
        retriable = name in before.retriable | after.retriable
        worse = "warning" if retriable and name != UNANSWERED else "error"
        change = Change(
            section="errors",
            severity=worse if shares[1] > shares[0] else "info",
            what=what,
            subject=api,
            measure=name,
            before=shares[0],
            after=shares[1],
            unit="share",
            chance=chance,
            counts=(sides[0].count, sides[1].count),
        )
        if min(map(len, blocks)) >= MIN_BLOCKS and chance < ALPHA / len(pairs):
            found.append(change)
        elif not low:
            doubtful.append(change)
    for api in [api for api in after.outcomes if api not in before.outcomes]:
        side = after.outcomes[api]
        doubtful += [
            Change("errors", "info", "new", api, name, None, count / side.count, "share", counts=(0, side.count))
            for name, count in side.errors.items()
        ]
    return found, doubtful, len(pairs)


def rate_changes(before: Found, after: Found) -> tuple[list[Change], int]:
    """The changes, and how many rates were compared."""
    if min(before.seconds, after.seconds) < MIN_SECONDS:
        return [], 0
    found = []
    for name, earlier in before.rates.items():
        later = after.rates[name]
        _to_one_width(earlier, later)
        slices = earlier.per_second(int(before.seconds)), later.per_second(int(after.seconds))
        if min(map(len, slices)) < MIN_BLOCKS:
            continue
        rates = fmean(slices[0]), fmean(slices[1])
        low, high = sorted(rates)
        chance = rank_test(*slices)
        if chance >= ALPHA / len(before.rates) or (low and high / low < MIN_RATIO):
            continue
        less = rates[1] < rates[0]
        found.append(
            Change(
                section="throughput",
                severity="warning" if less and low * 2 <= high else "info",
                what="less" if less else "more",
                subject="all traffic",
                measure=name,
                before=rates[0],
                after=rates[1],
                unit="per_second" if name == "requests" else "bytes_per_second",
                chance=chance,
                counts=(earlier.total, later.total),
            )
        )
    return found, len(before.rates)


def _to_one_width(earlier: RateSeries, later: RateSeries) -> None:
    """Gives both slices of the same width, that of the longer capture."""
    while earlier.width_s < later.width_s:
        earlier.widen()
    while later.width_s < earlier.width_s:
        later.widen()
