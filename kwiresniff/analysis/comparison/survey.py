"""All of one side that is compared, collected in one pass.

Bounded: latencies, errors and rates as told at their constants, the rest by the analyses that collect it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Final, NamedTuple

from kwiresniff.analysis.clients import Inventory
from kwiresniff.analysis.comparison.series import LatencySeries, OutcomeSeries, RateSeries
from kwiresniff.analysis.doctor import Doctors, Maker
from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.analysis.latency import BUCKET_BYTES
from kwiresniff.analysis.memory_budget import text_bytes
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.base.flows import host_of
from kwiresniff.base.needs import Needs
from kwiresniff.base.time_units import SECOND_NS
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Connection, Event, Exchange, TopicNames
from kwiresniff.results.clients import Client
from kwiresniff.results.findings import Finding
from kwiresniff.results.groups import GroupEvent
from kwiresniff.results.topics import Topic

#: Kinds of exchanges (an API, with one client or broker) whose latencies are kept.
MAX_SERIES: Final = 2_000
#: Memory of their blocks. A kind usually takes some 30 kB.
MAX_SERIES_BYTES: Final = 64 << 20
#: APIs whose errors are counted: more than Kafka and its private forks have.
MAX_APIS: Final = 500
#: The error of a request that should have been answered and was not.
UNANSWERED: Final = "unanswered"

#: The part of a client id that differs from process to process.
_RANDOM: Final = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


class Kind(NamedTuple):
    """Exchanges whose latencies are compared: of an API, or of it with one ``client`` or ``broker`` (``dimension``)."""

    api: str
    dimension: str = ""
    name: str = ""

    def __str__(self) -> str:
        by = {"": "", "client": f" of {self.name}", "broker": f" at {self.name}"}
        return self.api + by[self.dimension]


def stable_name(client_id: str | None, address: str) -> str:
    """The name of a client in captures of different times: its id without the part that differs by process, or its host
    where it has no id.
    """
    return _RANDOM.sub("*", client_id) if client_id else address


class Found(NamedTuple):
    """The results of one side."""

    exchanges: int
    first_ns: int
    last_ns: int
    latencies: dict[Kind, LatencySeries]
    outcomes: dict[str, OutcomeSeries]
    retriable: frozenset[str]
    rates: dict[str, RateSeries]
    clients: tuple[Client, ...]
    topics: tuple[Topic, ...]
    group_events: tuple[GroupEvent, ...]
    findings: tuple[Finding, ...]
    left_out: int

    @property
    def seconds(self) -> float:
        """Seconds from the first exchange to the last."""
        return max(self.last_ns - self.first_ns, 0) / SECOND_NS


class Survey:
    """Takes in the events of one side, with decoded bodies."""

    NEEDS: ClassVar[Needs] = Doctors.NEEDS | Inventory.NEEDS | GroupTimeline.NEEDS | TopicTraffic.NEEDS

    def __init__(
        self, topic_name: TopicNames | None = None, rules: Iterable[Maker] = (), clusters: Clusters | None = None
    ) -> None:
        """``clusters`` are those of other analyses of the same exchanges."""
        clusters = clusters or Clusters()
        self._doctor = Doctors(topic_name, rules, clusters)
        self._inventory = Inventory(topic_name, clusters)
        self._timeline = GroupTimeline(topic_name, clusters)
        self._topics = TopicTraffic(topic_name, clusters)
        self._latencies: dict[Kind, LatencySeries] = {}
        self._held_bytes = 0  # at the most; the next review will find out
        self._closed = False  # for other kinds than there are
        self._outcomes: dict[str, OutcomeSeries] = {}
        self._retriable: set[str] = set()
        self._rates = {name: RateSeries() for name in ("requests", "bytes to brokers", "bytes to clients")}
        self._exchanges = 0
        self._first_ns = self._last_ns = 0
        self._left_out = 0

    def add(self, event: Event) -> None:
        """An ended connection, an attempt at one, or a problem."""
        self._doctor.add(event)
        if isinstance(event, Connection):
            self._inventory.connection(event)

    def exchange(self, exchange: Exchange) -> None:
        """An exchange."""
        self._doctor.exchange(exchange)
        self._inventory.exchange(exchange)
        self._timeline.add(exchange)
        self._topics.exchange(exchange)
        message = exchange.request or exchange.response
        if message is None:
            return
        if not self._exchanges:
            self._first_ns = message.first_ns
        self._exchanges += 1
        self._last_ns = max(self._last_ns, (exchange.response or message).last_ns)
        self._count(exchange, max(message.first_ns - self._first_ns, 0) // SECOND_NS)
        latency_ns = exchange.latency_ns
        if latency_ns is not None and not exchange.waiting and not exchange.errors:
            self._time(exchange, latency_ns)

    def _count(self, exchange: Exchange, second: int) -> None:
        request, response = exchange.request, exchange.response
        api = exchange.api
        if request is not None:
            self._rates["requests"].add(second, 1)
            self._rates["bytes to brokers"].add(second, request.size_bytes)
        if response is not None:
            self._rates["bytes to clients"].add(second, response.size_bytes)
        outcomes = self._outcomes.get(api)
        if outcomes is None:
            if len(self._outcomes) >= MAX_APIS:
                self._left_out += 1
                return
            outcomes = self._outcomes[api] = OutcomeSeries()
        errors: set[str] = set()
        if not exchange.is_negotiation:
            errors = {name for _, _, name, _ in exchange.errors}
            self._retriable.update(name for _, _, name, retriable in exchange.errors if retriable)
            if exchange.outcome == "unanswered":
                errors.add(UNANSWERED)
        if not outcomes.add(errors):
            self._left_out += 1

    def _time(self, exchange: Exchange, latency_ns: int) -> None:
        connection = exchange.connection
        client = stable_name(exchange.client_id, host_of(connection.client))
        api = exchange.api
        for kind in (Kind(api), Kind(api, "client", client), Kind(api, "broker", connection.broker)):
            series = self._latencies.get(kind)
            if series is None:
                if self._closed or len(self._latencies) >= MAX_SERIES:
                    self._left_out += 1
                    continue
                series = self._latencies[kind] = LatencySeries()
                self._held_bytes += series.size_bytes() + text_bytes(client)
            # A bucket of the block, and one of the whole.
            self._held_bytes += 2 * BUCKET_BYTES
            if self._held_bytes > MAX_SERIES_BYTES:
                self._review()
            series.add(latency_ns)

    def _review(self) -> None:
        """Drops those of least use where all together really take more than they may."""
        sizes = {kind: series.size_bytes() for kind, series in self._latencies.items()}
        held = sum(sizes.values())
        for kind in sorted(sizes, key=lambda kind: self._latencies[kind].whole.count):
            if held <= MAX_SERIES_BYTES // 2:
                break
            held -= sizes[kind]
            del self._latencies[kind]
            self._left_out += 1
            self._closed = True  # one that is dropped would come again with a part of it
        self._held_bytes = held

    def found(self) -> Found:
        """Everything, once the captures have ended."""
        return Found(
            exchanges=self._exchanges,
            first_ns=self._first_ns,
            last_ns=self._last_ns,
            latencies=self._latencies,
            outcomes=self._outcomes,
            retriable=frozenset(self._retriable),
            rates=self._rates,
            clients=tuple(self._inventory.clients()),
            topics=tuple(self._topics.topics()),
            group_events=tuple(self._timeline.events()),
            findings=tuple(self._doctor.findings()),
            left_out=self._left_out,
        )
