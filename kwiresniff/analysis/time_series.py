"""Counts over time, in slices whose width grows with the time that a capture spans.

Bounded: never more than ``MAX_SLICES``. When a capture outgrows them, each two become one.
"""

from __future__ import annotations

from kwiresniff.analysis.stats_row import Row
from kwiresniff.model import Exchange
from kwiresniff.results.report import SeriesPoint

#: Slices kept: about as many as a page has room to draw.
MAX_SLICES = 240
#: The width of a slice to begin with.
FIRST_WIDTH_NS = 1_000_000


class TimeSeries:
    """Counts exchanges by the time of their request (of the response where that was all that was seen)."""

    def __init__(self) -> None:
        self._origin_ns = 0
        self._width_ns = FIRST_WIDTH_NS
        self._slices: dict[int, Row] = {}

    def add(self, exchange: Exchange) -> None:
        """Count an exchange in its slice."""
        message = exchange.request or exchange.response
        if message is not None:
            self._slice(message.first_ns).add(exchange)

    def _slice(self, ns: int) -> Row:
        if not self._slices:
            self._origin_ns = ns
        # A clock that ran backwards must not stretch the axis: what is before the beginning counts as the beginning.
        at = max(ns - self._origin_ns, 0) // self._width_ns
        while at >= MAX_SLICES:
            self._widen()
            at = (ns - self._origin_ns) // self._width_ns
        found = self._slices.get(at)
        if found is None:
            found = self._slices[at] = Row()
        return found

    def _widen(self) -> None:
        slices: dict[int, Row] = {}
        for at, one in self._slices.items():
            kept = slices.get(at // 2)
            if kept is None:
                slices[at // 2] = one
            else:
                kept.merge(one)
        self._slices = slices
        self._width_ns *= 2

    def points(self) -> list[SeriesPoint]:
        """Every slice from the first to the last, empty ones included."""
        if not self._slices:
            return []
        empty = Row()
        return [self._point(at, self._slices.get(at, empty)) for at in range(max(self._slices) + 1)]

    def _point(self, at: int, one: Row) -> SeriesPoint:
        p50_ns = p99_ns = max_ns = None
        broker = one.waits.broker
        if broker.count:
            p50_ns, p99_ns = broker.percentiles((0.5, 0.99))
            max_ns = broker.max_ns
        return SeriesPoint(
            self._origin_ns + at * self._width_ns,
            self._width_ns,
            one.count - one.errors - one.unanswered,
            one.errors,
            one.unanswered,
            one.request_bytes,
            one.response_bytes,
            p50_ns,
            p99_ns,
            max_ns,
        )
