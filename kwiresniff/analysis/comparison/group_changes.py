"""Which groups have other members, begin more generations, or are farther behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.comparison.latency_changes import ALPHA
from kwiresniff.analysis.comparison.rank_test import count_test
from kwiresniff.analysis.comparison.survey import Found
from kwiresniff.results.comparison import Change, What

#: The smallest ratio of lags that is reported, and the smallest greater lag.
LAG_RATIO: Final = 3.0
LAG_RECORDS: Final = 1_000


def group_changes(before: Found, after: Found) -> tuple[list[Change], int]:
    """The changes, and how many groups were compared: those in both captures."""
    members = _members(before), _members(after)
    generations = _generations(before), _generations(after)
    lags = _lags(before), _lags(after)
    both = sorted(members[0].keys() & members[1].keys())
    found: list[Change] = []
    for group in both:
        counts = members[0][group], members[1][group]
        if counts[0] != counts[1]:
            found.append(_change(group, "clients", *counts, worse="less"))
        begun = generations[0].get(group, 0), generations[1].get(group, 0)
        chance = count_test(*begun, before.seconds, after.seconds)
        if chance < ALPHA / len(both):
            rates = begun[0] * 60 / before.seconds, begun[1] * 60 / after.seconds
            change = _change(group, "generations", *rates, worse="more")
            found.append(change._replace(unit="per_minute", chance=chance, counts=begun))
        found += _lag_changes(group, lags[0], lags[1])
    return found, len(both)


def _change(group: str, measure: str, before: float, after: float, worse: What) -> Change:
    what: What = "more" if after > before else "less"
    return Change("groups", "warning" if what == worse else "info", what, group, measure, before, after, "count")


def _lag_changes(group: str, before: dict[tuple[str, str], int], after: dict[tuple[str, str], int]) -> Iterator[Change]:
    for (name, topic), lag in before.items():
        later = after.get((name, topic))
        if name != group or later is None:
            continue
        low, high = sorted((lag, later))
        if high >= LAG_RECORDS and high >= LAG_RATIO * low:
            yield _change(group, f"lag in {topic}", lag, later, worse="more")


def _members(side: Found) -> dict[str, int]:
    """How many clients speak for each group."""
    found: dict[str, set[tuple[str | None, str]]] = {}
    for client in side.clients:
        for group in client.groups:
            found.setdefault(group, set()).add((client.client_id, client.address))
    return {group: len(clients) for group, clients in found.items()}


def _generations(side: Found) -> dict[str, int]:
    """How many generations of each group began, as far as answers to members show them."""
    found: dict[str, set[int]] = {}
    for event in side.group_events:
        if event.event in ("join", "assigned", "epoch") and event.generation is not None:
            found.setdefault(event.group, set()).add(event.generation)
    return {group: len(numbers) for group, numbers in found.items()}


def _lags(side: Found) -> dict[tuple[str, str], int]:
    return {
        (group.group, topic.name): group.lag for topic in side.topics for group in topic.groups if group.lag is not None
    }
