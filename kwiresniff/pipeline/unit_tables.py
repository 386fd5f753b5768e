"""The tables of one unit, filled exchange by exchange. Written for mypyc: exchanges come by the million."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kwiresniff.analysis.audit import audit
from kwiresniff.analysis.clients import Inventory
from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.analysis.named import client_with_names
from kwiresniff.analysis.producer_ledger import ProducerLedger
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.identity.addresses import AddressBook
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Connection, Exchange, Problem, Sink
from kwiresniff.pipeline.aggregate import Aggregates
from kwiresniff.pipeline.cluster_sightings import ClusterSightings
from kwiresniff.pipeline.entities import Entities
from kwiresniff.pipeline.rows import Row, Rows
from kwiresniff.pipeline.table_writer import TableWriter


class UnitTables(Sink):
    """Fills the wanted tables from the events of a unit. ``target`` is the release of the audit."""

    def __init__(
        self, rows: Rows, writer: TableWriter, tables: Sequence[str], target: str | None, clusters: Clusters
    ) -> None:
        wanted = set(tables)
        self._rows = rows
        self._writer = writer
        self._target = target
        self._wanted = wanted
        self._exchanges = "exchanges" in wanted
        self._aggregates = Aggregates(wanted) if {"latency", "topic_latency", "errors"} & wanted else None
        self._entities = Entities(rows.topic_name)
        self._inventory: Inventory | None = None
        self._sightings = ClusterSightings(clusters)
        self._sights = bool({"clusters", "clients", "topics", "groups", "producers"} & wanted)
        if {"clients", "audit"} & wanted:
            self._inventory = Inventory(clusters=clusters)
        self._book = AddressBook()
        self._topics = TopicTraffic(rows.topic_name, clusters) if "topics" in wanted else None
        self._groups = GroupTimeline(rows.topic_name, clusters) if "groups" in wanted else None
        self._producers = ProducerLedger(rows.topic_name, clusters) if "producers" in wanted else None
        self._records = "records" in wanted

    def on_connection(self, connection: Connection) -> None:
        if self._inventory is not None:
            self._inventory.connection(connection)
        if "connections" in self._wanted:
            self._writer.add("connections", self._rows.connection(connection))

    def on_problem(self, problem: Problem) -> None:
        if "problems" in self._wanted:
            self._writer.add("problems", self._rows.problem(problem))

    def on_exchange(self, exchange: Exchange) -> None:
        entities = self._entities
        entities.find(exchange)
        if self._exchanges:
            self._writer.add("exchanges", self._rows.exchange(exchange, entities))
        aggregates = self._aggregates
        if aggregates is not None:
            aggregates.add(exchange, entities.topics)
            if aggregates.full():
                self._take(aggregates)
        if self._sights:
            self._sightings.exchange(exchange)
        if self._inventory is not None:
            self._book.exchange(exchange)
            self._inventory.exchange_about(exchange, entities.topics, entities.groups, entities.transactional_ids)
        if self._topics is not None:
            self._topics.exchange(exchange)
        if self._groups is not None:
            self._groups.add(exchange)
        if self._producers is not None:
            self._producers.exchange(exchange)
        if self._records:
            self._put("records", self._rows.records(exchange))

    def finish(self) -> None:
        """Writes the tables of all events together."""
        rows, only = self._rows, self._sightings.only
        if self._aggregates is not None:
            self._take(self._aggregates)
        if "clusters" in self._wanted:
            self._put("clusters", map(rows.cluster, self._sightings.all()))
        if self._inventory is not None:
            self._take_clients(self._inventory)
        if (topics := self._topics) is not None:
            self._put("topics", [rows.topic(one, one.cluster or only) for one in topics.topics()])
            what = f"too many topics: {topics.left_out} names or rows more are not in the table topics"
            self._tell(topics.left_out, Problem("too_many_topics", what))
        if (groups := self._groups) is not None:
            self._put("groups", [rows.group_event(one, one.cluster or only) for one in groups.events()])
            what = f"too many events of groups: {groups.left_out} older ones are not in the table groups"
            self._tell(groups.left_out, Problem("too_many_group_events", what))
        if (ledger := self._producers) is not None:
            self._put("producers", [rows.producer(one, one.cluster or only) for one in ledger.producers()])
            what = f"too many producers: {ledger.left_out} producers or names more are not in the table producers"
            self._tell(ledger.left_out, Problem("too_many_producers", what))
        cut = self._entities.cut
        what = f"too many topics: {cut} fetches belong to sessions with more topics or partitions than the tables "
        self._tell(cut, Problem("too_many_topics", what + "exchanges and topic_latency list for one"))

    def _take_clients(self, inventory: Inventory) -> None:
        clients = [client_with_names(client, self._book) for client in inventory.clients()]
        rows, target, only = self._rows, self._target, self._sightings.only
        if "clients" in self._wanted:
            self._put("clients", [rows.client(client, client.cluster or only) for client in clients])
        if target is not None and "audit" in self._wanted:
            self._put("audit", [rows.verdict(verdict, target) for verdict in audit(clients, target)])
        left_out, cut = inventory.left_out, inventory.cut
        what = f"too many clients: {left_out} more are not in the tables clients and audit"
        self._tell(left_out, Problem("too_many_clients", what))
        what = f"{cut} clients used more API versions or names than are in the tables clients and audit"
        self._tell(cut, Problem("too_many_clients", what))

    def _take(self, aggregates: Aggregates) -> None:
        for table, row in aggregates.take():
            self._writer.add(table, row)

    def _put(self, table: str, rows: Iterable[Row]) -> None:
        for row in rows:
            self._writer.add(table, row)

    def _tell(self, count: int, problem: Problem) -> None:
        """Reports a problem where ``count`` things found no room."""
        if count:
            self.on_problem(problem)
