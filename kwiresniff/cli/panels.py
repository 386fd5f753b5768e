"""The tables of the live view, and what each of them counted lately."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from kwiresniff.analysis.latency import Histogram
from kwiresniff.analysis.stats import Counts, StatsTable
from kwiresniff.analysis.stats_keys import Key, key_parts
from kwiresniff.analysis.stats_row import Row
from kwiresniff.cli.event_source import EventSource
from kwiresniff.model import Exchange
from kwiresniff.render.live_screen import LivePanel, LiveRow

#: How often the screen is drawn: faster than numbers can be read gains nothing.
REFRESH_SECONDS = 1.0
#: Rates and latencies are over this many refreshes.
SAMPLES = 5

#: What rows are sorted by, the greatest first.
ORDERS = ("rate", "count", "errors", "latency")


class Panel:
    """One table, the part of it that is shown, and its recent counts."""

    def __init__(self, by: Sequence[str], source: EventSource) -> None:
        self.table = StatsTable(by, source.topic_name)
        self.ranked: list[Key] = []
        self.shown: list[Key] = []
        self.first = 0
        self._samples: deque[tuple[float, dict[Key, Counts]]] = deque(maxlen=SAMPLES + 1)
        # Of the rows shown, what was known at each of the last refreshes.
        self._latencies: dict[Key, deque[tuple[Histogram, Histogram]]] = {}

    def add(self, exchange: Exchange) -> None:
        """Counts one exchange."""
        self.table.add(exchange)

    def draw(self, now: float, size: int, order: str, selected: Key | None) -> LivePanel:
        """``size`` rows at the most, the first of them numbered ``first``."""
        counts = self.table.counts()
        self._samples.append((now, counts))
        since, before = self._samples[0]
        seconds = max(now - since, REFRESH_SECONDS) if len(self._samples) > 1 else 0.0
        self.first = max(min(self.first, len(self.table) - size), 0)
        # A page more than is shown, to scroll into.
        ranked = self.table.top(self.first + 2 * size, _orders(before)[order])
        found = ranked[self.first : self.first + size]
        self.ranked = [key for key, _ in ranked]
        self.shown = [key for key, _ in found]
        rows = [self._row(key, row, before.get(key, (0, 0)), seconds) for key, row in found]
        self._latencies = {key: self._latencies[key] for key in self.shown}
        at = self.shown.index(selected) if selected in self.shown else -1
        return LivePanel(", ".join(self.table.by), rows, len(self.table), self.first, at)

    def scroll_to(self, key: Key, step: int) -> Key:
        """The row ``step`` further than ``key``, or as far as is known, which is then shown."""
        place = min(max(self.ranked.index(key) + step, 0), len(self.ranked) - 1)
        self.first = min(self.first, place) if step < 0 else max(self.first, place - len(self.shown) + 1)
        return self.ranked[place]

    def _row(self, key: Key, row: Row, before: Counts, seconds: float) -> LiveRow:
        latency, broker = row.waits.latency, row.waits.broker
        waits = not latency.count and bool(row.waits.waiting)
        if waits:
            latency = max(row.waits.waiting.values(), key=lambda one: one.count)
        samples = self._latencies.setdefault(key, deque(maxlen=SAMPLES + 1))
        recent = latency.since(samples[0][0]) if samples else latency
        recent_broker = broker.since(samples[0][1]) if samples else broker
        samples.append((latency.copy(), broker.copy()))
        old = not recent.count
        shown_broker = broker if old else recent_broker
        return LiveRow(
            key=key_parts(key),
            per_second=(row.count - before[0]) / seconds if seconds else 0.0,
            bytes_per_second=(row.request_bytes + row.response_bytes - before[1]) / seconds if seconds else 0.0,
            count=row.count,
            errors=row.errors,
            unanswered=row.unanswered,
            latency=(latency if old else recent).summary(),
            old=old,
            waits=waits,
            broker_p99_ns=shown_broker.percentiles((0.99,))[0] if shown_broker.count else None,
        )


def _orders(before: dict[Key, Counts]) -> dict[str, Callable[[Key, Row], float]]:
    def mean(key: Key, row: Row) -> float:
        latency = row.waits.latency
        return latency.sum_ns / latency.count if latency.count else -1.0

    return {
        "rate": lambda key, row: row.count - before.get(key, (0, 0))[0],
        "count": lambda key, row: row.count,
        "errors": lambda key, row: row.errors,
        "latency": mean,
    }
