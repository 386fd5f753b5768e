"""All that a report shows, collected in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

from kwiresniff.analysis.clients import Inventory
from kwiresniff.analysis.doctor import Doctors, Maker
from kwiresniff.analysis.flow_picture import picture_of
from kwiresniff.analysis.flows import flows_of
from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.analysis.stats import StatsTable
from kwiresniff.analysis.time_series import TimeSeries
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.needs import Needs
from kwiresniff.identity.addresses import AddressBook
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Connection, Event, Exchange, Problem, TopicNames
from kwiresniff.results.report import Report

#: Items of each section that a page shows.
MAX_FINDINGS = 200
MAX_STAT_ROWS = 50
MAX_CLIENTS = 200
MAX_TOPICS = 100
MAX_GROUP_EVENTS = 500
MAX_PROBLEMS = 100

DIMENSIONS = ("api", "client", "topic", "broker")

Item = TypeVar("Item")


class Reporter:
    """Takes in events with decoded bodies; memory is bounded by the parts."""

    NEEDS: ClassVar[Needs] = Doctors.NEEDS | Inventory.NEEDS | GroupTimeline.NEEDS | TopicTraffic.NEEDS

    def __init__(
        self,
        topic_name: TopicNames | None = None,
        rules: Iterable[Maker] = (),
        clusters: Clusters | None = None,
        names: AddressNames | None = None,
    ) -> None:
        """``clusters`` are those of other analyses of the same exchanges, ``names`` those of addresses."""
        clusters = clusters or Clusters()
        self._doctor = Doctors(topic_name, rules, clusters)
        self._tables = [StatsTable((name,), topic_name) for name in DIMENSIONS]
        self._inventory = Inventory(topic_name, clusters)
        self._timeline = GroupTimeline(topic_name, clusters)
        self._topics = TopicTraffic(topic_name, clusters)
        self._book = AddressBook(names)
        self._series = TimeSeries()
        self._problems: list[Problem] = []
        self._problem_count = 0
        self._connections = self._exchanges = self._errors = self._unanswered = self._negotiation = 0
        self._first_ns: int | None = None
        self._last_ns: int | None = None

    def add(self, event: Event) -> None:
        """An exchange, an ended connection, an attempt at one, or a problem."""
        if isinstance(event, Exchange):
            self.exchange(event)
            return
        self._doctor.add(event)
        if isinstance(event, Connection):
            self._connections += 1
            self._inventory.connection(event)
        elif isinstance(event, Problem):
            self._problem_count += 1
            if len(self._problems) < MAX_PROBLEMS:
                self._problems.append(event)

    def exchange(self, exchange: Exchange) -> None:
        """An exchange."""
        self._doctor.exchange(exchange)
        self._exchanges += 1
        if exchange.is_negotiation:
            self._negotiation += 1
        else:
            self._errors += bool(exchange.errors)
            self._unanswered += exchange.outcome == "unanswered"
        for table in self._tables:
            table.add(exchange)
        self._inventory.exchange(exchange)
        self._timeline.add(exchange)
        self._topics.exchange(exchange)
        self._book.exchange(exchange)
        self._series.add(exchange)
        for message in (exchange.request, exchange.response):
            if message is not None:
                if self._first_ns is None or message.first_ns < self._first_ns:
                    self._first_ns = message.first_ns
                if self._last_ns is None or message.last_ns > self._last_ns:
                    self._last_ns = message.last_ns

    def report(self, title: str, files: Sequence[str]) -> Report:
        """The content of the page."""
        left_out: dict[str, int] = {}

        def first(items: Sequence[Item], most: int, name: str, beyond: int = 0) -> tuple[Item, ...]:
            more = max(len(items) - most, 0) + beyond
            if more:
                left_out[name] = more
            return tuple(items[:most])

        clients = self._inventory.clients()
        if self._inventory.cut:
            left_out["clients' whole lists of API versions and names"] = self._inventory.cut
        topics = self._topics.topics()
        flows = [flow for flow in flows_of(topics, self._book) if flow.role != "replica"]
        stats = [(table.by[0], first(table.rows(), MAX_STAT_ROWS, f"rows by {table.by[0]}")) for table in self._tables]
        return Report(
            title=title,
            files=tuple(files),
            exchanges=self._exchanges,
            errors=self._errors,
            negotiation=self._negotiation,
            unanswered=self._unanswered,
            connections=self._connections,
            first_ns=self._first_ns,
            last_ns=self._last_ns,
            series=tuple(self._series.points()),
            findings=first(self._doctor.findings(), MAX_FINDINGS, "findings"),
            stats=tuple((name, rows) for name, rows in stats if rows),
            topics=first(topics, MAX_TOPICS, "topics", self._topics.left_out),
            flows=picture_of(flows),
            clients=first(clients, MAX_CLIENTS, "clients", self._inventory.left_out),
            group_events=first(self._timeline.events(), MAX_GROUP_EVENTS, "group events", self._timeline.left_out),
            problems=first(self._problems, MAX_PROBLEMS, "problems", self._problem_count - len(self._problems)),
            left_out=left_out,
        )
