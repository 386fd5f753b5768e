"""Latency and errors counted while exchanges stream by: rows that merge by adding, histograms too.

Every unit writes the rows of what it saw. A question over all of them adds up rows of the same key, so new files
never make old ones to be read again, and a table that grows too big in memory is simply written out and begun anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from kwiresniff.analysis.latency import Histogram
from kwiresniff.model import Exchange
from kwiresniff.pipeline.exchange_table import seen_ns
from kwiresniff.pipeline.rows import Row, when

#: Keys counted before they are written out; with its histogram a key takes some 5 kB, so a table stays below 50 MB.
MAX_KEYS = 10_000
_MINUTE_NS: Final = 60_000_000_000


class _Counts:
    __slots__ = ("broker", "errors", "exchanges", "latency", "request_bytes", "response_bytes", "unanswered")

    def __init__(self) -> None:
        self.exchanges = 0
        self.errors = 0
        self.unanswered = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.latency = Histogram()
        self.broker = Histogram()

    def add(self, exchange: Exchange) -> None:
        self.exchanges += 1
        self.errors += bool(exchange.errors)
        self.unanswered += exchange.outcome == "unanswered"
        if exchange.request is not None:
            self.request_bytes += exchange.request.size_bytes
        if exchange.response is not None:
            self.response_bytes += exchange.response.size_bytes
        latency_ns = exchange.latency_ns
        if latency_ns is not None:
            self.latency.add(latency_ns)
        broker_ns = exchange.broker_ns
        if broker_ns is not None and (broker_ns > 0 or not exchange.held_ns):
            self.broker.add(broker_ns)

    def row(self) -> Row:
        return (
            self.exchanges,
            self.errors,
            self.unanswered,
            self.request_bytes,
            self.response_bytes,
            sketch(self.latency),
            sketch(self.broker),
        )


class Errors:
    """The table ``errors`` of one unit."""

    def __init__(self) -> None:
        self._counts: dict[Row, list[int]] = {}  # how many exchanges, how often in them

    def add(self, exchange: Exchange) -> None:
        """Counts the errors of one exchange."""
        if not exchange.errors:
            return
        connection = exchange.connection
        host = connection.client.rpartition(":")[0]
        head = (seen_ns(exchange) // _MINUTE_NS, exchange.api or None)
        tail = (exchange.client_id, host, connection.broker)
        for kind, times in Counter((name, code, retriable) for _, code, name, retriable in exchange.errors).items():
            counts = self._counts.setdefault((*head, *kind, *tail), [0, 0])
            counts[0] += 1
            counts[1] += times

    def full(self) -> bool:
        """Whether it is time to ``take`` what was counted so far."""
        return len(self._counts) >= MAX_KEYS

    def take(self) -> Iterator[tuple[str, Row]]:
        """Table and row of everything counted since the last time."""
        for key, counts in self._counts.items():
            yield "errors", (when(key[0] * _MINUTE_NS)[1], *key[1:], *counts)
        self._counts.clear()


class Latency:
    """The tables ``latency`` and ``topic_latency`` of one unit."""

    def __init__(self) -> None:
        self._by_client: dict[Row, _Counts] = {}
        self._by_topic: dict[Row, _Counts] = {}

    def add(self, exchange: Exchange, topics: Iterable[str]) -> None:
        """Counts one exchange, for each of its topics too."""
        minute = seen_ns(exchange) // _MINUTE_NS
        connection = exchange.connection
        api, broker, waiting = exchange.api or None, connection.broker, exchange.waiting or None
        host = connection.client.rpartition(":")[0]
        _count(self._by_client, (minute, api, exchange.client_id, host, broker, waiting), exchange)
        for topic in topics:
            _count(self._by_topic, (minute, topic, api, broker, waiting), exchange)

    def full(self) -> bool:
        """Whether it is time to ``take`` what was counted so far."""
        return len(self._by_client) + len(self._by_topic) >= MAX_KEYS

    def take(self) -> Iterator[tuple[str, Row]]:
        """Table and row of everything counted since the last time."""
        for table, counted in (("latency", self._by_client), ("topic_latency", self._by_topic)):
            for key, counts in counted.items():
                yield table, (when(key[0] * _MINUTE_NS)[1], *key[1:], *counts.row())
            counted.clear()


def _count(table: dict[Row, _Counts], key: Row, exchange: Exchange) -> None:
    counts = table.get(key)
    if counts is None:
        counts = table[key] = _Counts()
    counts.add(exchange)


def sketch(histogram: Histogram) -> dict[str, Any]:
    """A histogram as the value of a ``latency`` column."""
    return {
        "count": histogram.count,
        "zeros": histogram.zeros,
        "sum_ns": histogram.sum_ns,
        "min_ns": histogram.min_ns,
        "max_ns": histogram.max_ns,
        "buckets": [{"bucket": bucket, "count": count} for bucket, count in sorted(histogram.buckets.items())],
    }


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
