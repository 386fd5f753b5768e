"""Counts over time, in slices whose width grows with the time that a capture spans.

Bounded: never more than ``MAX_SLICES``. When a capture outgrows them, each two become one.
"""

from __future__ import annotations

from kwiresniff.analysis.latency import Histogram
from kwiresniff.analysis.stats_row import own_time_ns
from kwiresniff.model import Exchange
from kwiresniff.results.report import SeriesPoint

#: Slices kept: about as many as a page has room to draw.
MAX_SLICES = 240
#: The width of a slice to begin with.
FIRST_WIDTH_NS = 1_000_000


class _Slice:
    __slots__ = ("broker", "errors", "ok", "request_bytes", "response_bytes", "unanswered")

    def __init__(self) -> None:
        self.ok = 0
        self.errors = 0
        self.unanswered = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.broker = Histogram()

    def merge(self, other: _Slice) -> None:
        self.ok += other.ok
        self.errors += other.errors
        self.unanswered += other.unanswered
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        self.broker.merge(other.broker)


class TimeSeries:
    """Counts exchanges by the time of their request (of the response where that was all that was seen)."""

    def __init__(self) -> None:
        self._origin_ns = 0
        self._width_ns = FIRST_WIDTH_NS
        self._slices: dict[int, _Slice] = {}

    def add(self, exchange: Exchange) -> None:
        """Count an exchange in its slice."""
        request, response = exchange.request, exchange.response
        message = request or response
        if message is None:
            return
        found = self._slice(message.first_ns)
        if exchange.is_negotiation:
            found.ok += 1
        elif exchange.errors:
            found.errors += 1
        elif exchange.outcome == "unanswered":
            found.unanswered += 1
        else:
            found.ok += 1
        if request is not None:
            found.request_bytes += request.size_bytes
        if response is not None:
            found.response_bytes += response.size_bytes
        latency_ns = exchange.latency_ns
        if latency_ns is not None and (own_ns := own_time_ns(exchange, latency_ns)) is not None:
            found.broker.add(own_ns)

    def _slice(self, ns: int) -> _Slice:
        if not self._slices:
            self._origin_ns = ns
        # A clock that ran backwards must not stretch the axis: what is before the beginning counts as the beginning.
        at = max(ns - self._origin_ns, 0) // self._width_ns
        while at >= MAX_SLICES:
            self._widen()
            at = (ns - self._origin_ns) // self._width_ns
        found = self._slices.get(at)
        if found is None:
            found = self._slices[at] = _Slice()
        return found

    def _widen(self) -> None:
        slices: dict[int, _Slice] = {}
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
        empty = _Slice()
        return [self._point(at, self._slices.get(at, empty)) for at in range(max(self._slices) + 1)]

    def _point(self, at: int, one: _Slice) -> SeriesPoint:
        p50_ns = p99_ns = max_ns = None
        if one.broker.count:
            p50_ns, p99_ns = one.broker.percentiles((0.5, 0.99))
            max_ns = one.broker.max_ns
        return SeriesPoint(
            self._origin_ns + at * self._width_ns,
            self._width_ns,
            one.ok,
            one.errors,
            one.unanswered,
            one.request_bytes,
            one.response_bytes,
            p50_ns,
            p99_ns,
            max_ns,
        )
