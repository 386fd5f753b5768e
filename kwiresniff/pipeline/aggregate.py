"""Latency and errors counted while exchanges stream by: rows that merge by adding, histograms too.

Every unit writes the rows of what it saw. A question over all of them adds up rows of the same key, so new files
never make old ones to be read again, and a table that grows too big in memory is simply written out and begun anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, final

from kwiresniff.analysis.latency import Histogram
from kwiresniff.analysis.stats_row import Waits
from kwiresniff.base.flows import host_of
from kwiresniff.model import Exchange
from kwiresniff.pipeline.moments import micros_of, seen_ns
from kwiresniff.pipeline.rows import Row

#: Keys counted before they are written out; with its histogram a key takes some 5 kB, so a table stays below 50 MB.
MAX_KEYS: Final = 10_000
_MINUTE_NS: Final = 60_000_000_000


@final
class _Counts:
    """The counts of a row; one of ``latency`` and ``topic_latency`` is of one reason to wait, or of none."""

    __slots__ = ("errors", "exchanges", "request_bytes", "response_bytes", "unanswered", "waits")

    def __init__(self) -> None:
        self.exchanges = 0
        self.errors = 0
        self.unanswered = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.waits = Waits()

    def add(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        self.exchanges += 1
        if exchange.errors:
            self.errors += 1
        if request is not None:
            self.request_bytes += request.size_bytes
        if response is None:
            self.unanswered += exchange.outcome == "unanswered"
            return
        self.response_bytes += response.size_bytes
        self.waits.add(exchange)

    def row(self) -> Row:
        latency, broker = self.waits.whole, self.waits.broker
        sketch = _sketch(latency)
        return (
            self.exchanges,
            self.errors,
            self.unanswered,
            self.request_bytes,
            self.response_bytes,
            sketch,
            sketch if broker is latency else _sketch(broker),
        )


@final
class Aggregates:
    """The tables ``latency``, ``topic_latency`` and ``errors`` of one unit, those of them that are ``wanted``."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = wanted
        self._counts_latency = "latency" in wanted or "topic_latency" in wanted
        self._by_client: dict[Row, _Counts] = defaultdict(_Counts)
        self._by_topic: dict[Row, _Counts] = defaultdict(_Counts)
        self._errors: dict[Row, list[int]] = {}  # how many exchanges, how often in them

    def add(self, exchange: Exchange, topics: list[str]) -> None:
        """Counts one exchange, for each of its topics too."""
        if exchange.errors:
            self._add_errors(exchange)
        if not self._counts_latency:
            return
        connection = exchange.connection
        minute, api, waiting = seen_ns(exchange) // _MINUTE_NS, exchange.api or None, exchange.waiting or None
        host, broker = host_of(connection.client), connection.broker
        self._by_client[minute, api, exchange.client_id, host, broker, waiting].add(exchange)
        for topic in topics:
            self._by_topic[minute, topic, api, broker, waiting].add(exchange)

    def _add_errors(self, exchange: Exchange) -> None:
        connection = exchange.connection
        head = (seen_ns(exchange) // _MINUTE_NS, exchange.api or None)
        tail = (exchange.client_id, host_of(connection.client), connection.broker)
        for kind, times in Counter((name, code, retriable) for _, code, name, retriable in exchange.errors).items():
            counts = self._errors.setdefault((*head, *kind, *tail), [0, 0])
            counts[0] += 1
            counts[1] += times

    def full(self) -> bool:
        """Whether it is time to ``take`` what was counted so far."""
        return len(self._by_client) + len(self._by_topic) + len(self._errors) >= MAX_KEYS

    def take(self) -> Iterator[tuple[str, Row]]:
        """Table and row of everything counted since the last time."""
        for table, counted in (("latency", self._by_client), ("topic_latency", self._by_topic)):
            for key, counts in counted.items() if table in self._wanted else ():
                yield table, (micros_of(key[0] * _MINUTE_NS), *key[1:], *counts.row())
            counted.clear()
        for key, times in self._errors.items() if "errors" in self._wanted else ():
            yield "errors", (micros_of(key[0] * _MINUTE_NS), *key[1:], *times)
        self._errors.clear()


def _sketch(one: Histogram) -> Row:
    """A histogram as a ``latency`` column has it."""
    return (one.count, one.zeros, one.sum_ns, one.min_ns, one.max_ns, sorted(one.buckets.items()))


def merged(sketches: Iterable[Any]) -> Histogram:
    """The histogram of all values that went into any of the ``latency`` columns; mappings or rows."""
    total = Histogram()
    for one in sketches:
        if one is None:
            continue
        part = Histogram()
        part.count, part.zeros, part.sum_ns = one["count"], one["zeros"], one["sum_ns"]
        part.min_ns, part.max_ns = one["min_ns"], one["max_ns"]
        part.buckets = {item["bucket"]: item["count"] for item in one["buckets"]}
        total.merge(part)
    return total
