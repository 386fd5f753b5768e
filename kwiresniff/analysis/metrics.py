"""Counters for a monitoring system that scrapes them: exchanges, connections and problems.

Names and units follow Prometheus' conventions (https://prometheus.io/docs/practices/naming/): seconds, bytes. The
number of series is bounded: of APIs, clients, brokers and topics the busiest have their own, and the rest is counted
together under ``OTHERS``. So is the length of their labels: what is longer is cut and marked with a checksum.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from zlib import crc32

from kwiresniff.analysis.stats_keys import TopicKeys
from kwiresniff.analysis.stats_row import own_time_ns
from kwiresniff.analysis.top_k import Labels, TopK
from kwiresniff.base.flows import host_of
from kwiresniff.base.needs import Needs
from kwiresniff.base.placeholders import NO_REQUEST, NO_TOPIC, OTHERS
from kwiresniff.model import Connection, Event, Exchange, Problem, TopicNames
from kwiresniff.results.metrics import Metric

#: Kafka has some ninety APIs; unknown ones can be invented.
MAX_APIS = 150
#: Clients, brokers and topics that have series of their own, each, by default.
DEFAULT_SERIES = 50
#: Error names of one API, and codes of problems: there are fewer, but a broker can make codes up.
MAX_NAMES = 150
#: Characters of a label's value: a client id may have 32 KB.
MAX_LABEL_CHARS = 200
#: Topics of its fetch session that a fetch counts for beside those that it or its response names. A session may have a
#: thousand, and an empty fetch a hundred bytes.
MAX_OF_SESSION = 64
#: The time between two choices of the busiest: several times the usual scrape interval, so that a series is collected
#: before it goes.
REVIEW_NS = 60_000_000_000

#: Upper bounds of the latency buckets, from what a broker in the same rack takes to the default request timeout.
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_BOUNDS_NS = tuple(int(bound * 1e9) for bound in BOUNDS)


class _Latency:
    """A histogram with few fixed buckets."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.sum_ns = 0

    def add(self, ns: int) -> None:
        # Swapped packets can make it negative.
        self.counts[bisect_left(_BOUNDS_NS, ns)] += 1
        if ns > 0:
            self.sum_ns += ns

    def sample(self) -> tuple[list[int], float]:
        return self.counts[:], self.sum_ns / 1e9


class _Row:
    """The counts of an API, client, broker or topic."""

    __slots__ = (
        "broker", "errors", "exchanges", "latency", "names", "outcomes", "queued", "request_bytes", "response_bytes",
        "waits",
    )  # fmt: skip

    def __init__(self) -> None:
        self.exchanges = 0
        self.errors = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.outcomes: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.latency = _Latency()
        self.queued = _Latency()
        self.broker = _Latency()
        self.waits: dict[str, _Latency] = {}

    def add(self, exchange: Exchange) -> None:
        self.exchanges += 1
        outcome = exchange.outcome
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        request, response = exchange.request, exchange.response
        if request is not None:
            self.request_bytes += request.size_bytes
        if response is not None:
            self.response_bytes += response.size_bytes
            if request is not None and response.first_ns >= request.last_ns:
                reason = exchange.waiting
                if reason and reason not in self.waits:
                    self.waits[reason] = _Latency()
                latency = self.waits[reason] if reason else self.latency
                latency_ns = response.first_ns - request.last_ns
                latency.add(latency_ns)
                self._parts(exchange, latency_ns)
        if exchange.errors:
            self.errors += 1
            for name in {name for _, _, name, _ in exchange.errors}:
                _count(self.names, name)

    def _parts(self, exchange: Exchange, latency_ns: int) -> None:
        if exchange.queued >= 0:
            self.queued.add(exchange.queued)
        own_ns = own_time_ns(exchange, latency_ns)
        if own_ns is not None:
            self.broker.add(own_ns)


def _count(counts: dict[str, int], name: str, by: int = 1) -> None:
    if name not in counts and len(counts) >= MAX_NAMES:
        name = OTHERS
    counts[name] = counts.get(name, 0) + by


class Metrics:
    """Counts events. ``collect`` may be called from another thread at any time."""

    NEEDS: ClassVar[Needs] = Needs("errors", topics=True)

    def __init__(self, series: int = DEFAULT_SERIES, topic_name: TopicNames | None = None) -> None:
        """``series`` is how many clients, brokers and topics have series of their own."""
        self._topics_in = TopicKeys(topic_name, MAX_OF_SESSION)
        self._apis = TopK(MAX_APIS, (OTHERS,), _Row)
        self._clients = TopK(series, (OTHERS, OTHERS), _Row)
        self._brokers = TopK(series, (OTHERS,), _Row)
        self._topics = TopK(series, (OTHERS,), _Row)
        self._ended: dict[str, int] = {}
        self._problems: dict[str, int] = {}
        self._bytes_lost = {"missing": 0, "skipped": 0}
        self._reviewed_ns = 0

    def add(self, event: Event) -> None:
        """One more exchange, ended connection or problem."""
        if isinstance(event, Exchange):
            self._add_exchange(event)
        elif isinstance(event, Problem):
            self._add_problem(event)
        elif isinstance(event, Connection):
            self._add_connection(event)

    def _add_exchange(self, exchange: Exchange) -> None:
        message = exchange.response or exchange.request
        if message is not None and message.last_ns - self._reviewed_ns >= REVIEW_NS:
            self._reviewed_ns = message.last_ns
            for table in (self._apis, self._clients, self._brokers, self._topics):
                table.review()
        connection = exchange.connection
        self._apis.row((exchange.api or NO_REQUEST,)).add(exchange)
        self._clients.row((label(exchange.client_id or ""), host_of(connection.client))).add(exchange)
        self._brokers.row((connection.broker,)).add(exchange)
        for topic in self._topics_in(exchange):
            if topic != NO_TOPIC:
                self._topics.row((label(topic),)).add(exchange)
        for problem in exchange.problems:
            _count(self._problems, problem.code)

    def _add_problem(self, problem: Problem) -> None:
        _count(self._problems, problem.code)
        details = problem.details or {}
        for kind in self._bytes_lost:
            self._bytes_lost[kind] += details.get(f"{kind}_bytes", 0)

    def _add_connection(self, connection: Connection) -> None:
        _count(self._ended, connection.protocol)

    def collect(self) -> Iterator[Metric]:
        """Everything counted so far."""
        apis = self._apis.rows()
        yield _counter("exchanges", "Exchanges by API and outcome.", ("api", "outcome"), _spread(apis, "outcomes"))
        yield _counter(
            "errors", "Exchanges with this error code in the response.", ("api", "error"), _spread(apis, "names")
        )
        yield from _sizes("", ("api",), apis)
        yield _histogram("latency_seconds", "Request's last byte to response's first byte.", ("api",), apis)
        help = "Of it, until the answer before on the connection had gone and the channel was open."
        yield _histogram("queued_seconds", help, ("api",), apis, "queued")
        help = "The broker's own time, without queue and what was held back on purpose."
        yield _histogram("broker_time_seconds", help, ("api",), apis, "broker")
        waits = [((*key, reason), wait.sample()) for key, row in apis for reason, wait in list(row.waits.items())]
        help = "The same where the broker held the response back on purpose."
        yield Metric("held_back_seconds", help, "histogram", ("api", "reason"), waits, BOUNDS)
        for what, labels, table in (
            ("client", ("client_id", "client"), self._clients),
            ("broker", ("broker",), self._brokers),
            ("topic", ("topic",), self._topics),
        ):
            rows = table.rows()
            yield _counter(f"{what}_exchanges", f"Exchanges by {what}.", labels, _values(rows, "exchanges"))
            yield _counter(f"{what}_errors", f"Exchanges with an error by {what}.", labels, _values(rows, "errors"))
            unanswered = [(key, row.outcomes.get("unanswered", 0)) for key, row in rows]
            yield _counter(f"{what}_unanswered", f"Requests never answered by {what}.", labels, unanswered)
            yield from _sizes(f"{what}_", labels, rows)
            if what == "broker":
                help = "Request's last byte to response's first byte, what was held back on purpose left out."
                yield _histogram("broker_latency_seconds", help, labels, rows)
                help = "The broker's own time, without queue and what was held back on purpose."
                yield _histogram("broker_broker_time_seconds", help, labels, rows, "broker")
        yield _counter("connections_ended", "Connections that ended, by protocol.", ("protocol",), _pairs(self._ended))
        yield _counter("problems", "Problems by code.", ("code",), _pairs(self._problems))
        yield _counter(
            "lost_bytes", "Bytes of messages that could not be read, and why.", ("reason",), _pairs(self._bytes_lost)
        )


def label(text: str) -> str:
    """A name from the wire as the value of a label."""
    if len(text) <= MAX_LABEL_CHARS:
        return text
    return f"{text[:MAX_LABEL_CHARS]}#{crc32(text.encode('utf-8', 'backslashreplace')):08x}"


def _counter(name: str, help: str, labels: Labels, samples: Sequence[tuple[Labels, Any]]) -> Metric:
    return Metric(name, help, "counter", labels, samples)


def _histogram(
    name: str, help: str, labels: Labels, rows: Sequence[tuple[Labels, _Row]], what: str = "latency"
) -> Metric:
    return Metric(name, help, "histogram", labels, [(key, getattr(row, what).sample()) for key, row in rows], BOUNDS)


def _sizes(prefix: str, labels: Labels, rows: Sequence[tuple[Labels, _Row]]) -> Iterator[Metric]:
    by = prefix.rstrip("_") or "API"
    for side in ("request", "response"):
        help = f"Bytes of {side}s by {by}, without their 4-byte lengths."
        yield _counter(f"{prefix}{side}_bytes", help, labels, _values(rows, f"{side}_bytes"))


def _values(rows: Sequence[tuple[Labels, _Row]], name: str) -> list[tuple[Labels, int]]:
    return [(key, getattr(row, name)) for key, row in rows]


def _spread(rows: Sequence[tuple[Labels, _Row]], name: str) -> list[tuple[Labels, int]]:
    return [((*key, value), count) for key, row in rows for value, count in list(getattr(row, name).items())]


def _pairs(counts: dict[str, int]) -> list[tuple[Labels, int]]:
    return [((name,), count) for name, count in list(counts.items())]
