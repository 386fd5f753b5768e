"""What all observers, causes and rules of an examination share: topic names, the cluster, the time so far."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

from kwiresniff.analysis.doctor.cluster import Cluster
from kwiresniff.analysis.doctor.commits import MAX_COMMITTED, Committed, PartitionOfClient
from kwiresniff.analysis.doctor.evidence import Case, Tally, clipped, is_cut, is_replica, new_budget
from kwiresniff.analysis.doctor.replica_table import ReplicaTable
from kwiresniff.analysis.doctor.subjects import Subjects, Value
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.analysis.topic_parts import message_parts
from kwiresniff.base.field_values import field_text
from kwiresniff.digest import PartitionDigest, TopicDigest
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Exchange, TopicNames

#: Connections remembered whose responses are cut off.
MAX_CUT = 20_000
#: Gaps in what brokers sent, for each response that is missed, that make it doubtful: some of them are at the end of a
#: connection, or before a pause.
GAPS = 10


class Context:
    """What all rules of an examination share: names of topics, the cluster as far as it is known, the time so far."""

    def __init__(
        self,
        topic_name: TopicNames | None = None,
        clusters: Clusters | None = None,
        beside: Context | None = None,
    ) -> None:
        """``beside`` is that of the first examination, where each cluster has one."""
        self._topic_name = topic_name
        self.is_first = beside is None
        self.budget: MemoryBudget = new_budget() if beside is None else beside.budget
        #: What is known of the nodes of all clusters, and of which brokers are one.
        self.cluster: Cluster = Cluster(self.budget) if beside is None else beside.cluster
        self.clusters: Clusters = (clusters or Clusters()) if beside is None else beside.clusters
        #: When topics were last seen to exist, by cluster id and name.
        self.existing: dict[tuple[str, str], int] = {} if beside is None else beside.existing
        #: When clients were last heard of, and when they fetched: by node of ``clusters``, address and client.
        self.visits: dict[tuple[int, str, str], list[int]] = {} if beside is None else beside.visits
        self.replicas = ReplicaTable(self.budget)
        self.commits: Subjects[PartitionOfClient, Committed] = Subjects(self.budget, Committed, 3, MAX_COMMITTED)
        #: Error codes that observers judge, so that they need no finding of their own.
        self.judged: frozenset[str] = frozenset()
        #: Clients whose transactions took longer than their timeout, and what is to be said of that.
        self.overdue: dict[str, str] = {}
        #: Whose coordinator moved, from which address to which, and when that was learned.
        self.moves: list[tuple[str, str, str, int]] = []
        #: Connections with responses that are cut off: what throttled their clients may have been in these.
        self.cut: set[int] = set()
        #: Gaps in what brokers sent: each may have been a response.
        self.gaps = 0
        self.begin_ns = 0
        self.end_ns = 0
        self._fetch: Exchange | None = None
        self._brought: list[tuple[str, PartitionDigest]] = []

    def is_lossy(self, count: int) -> bool:
        """Whether the capture has so many gaps that what is missing may be in others, which nothing shows."""
        return self.gaps >= count * GAPS

    def note_cut(self, exchange: Exchange) -> None:
        """Notes a response that is cut off."""
        if len(self.cut) < MAX_CUT and is_cut(exchange, "response"):
            self.cut.add(exchange.connection.id)

    def topic_name(self, topic_id: str) -> str | None:
        """The name of a topic id, as far as the capture has shown it."""
        return self._topic_name(topic_id) if self._topic_name is not None else None

    def topic_of(self, body: dict[str, Any]) -> str:
        """The topic that a structure names, by its name or its id; empty when it names none."""
        for field in ("name", "topic", "topic_name"):
            if name := field_text(body.get(field)):
                return name
        topic_id = body.get("topic_id")
        return (self.topic_name(topic_id) or topic_id) if isinstance(topic_id, str) else ""

    def topic_in(self, topic: TopicDigest) -> str:
        """The topic of a digest by its name, or by its id where the capture has not shown its name."""
        return (self.topic_name(topic.name) or topic.name) if topic.is_id else topic.name

    def brought(self, fetch: Exchange) -> list[tuple[str, PartitionDigest]]:
        """The partitions of which the fetch that is looked at brought a consumer batches, each with the name of its
        topic; none for a follower's. Several rules ask, and it is looked up once.
        """
        if fetch is not self._fetch:
            self._fetch, self._brought = fetch, []
            if not is_replica(fetch):
                for topic in message_parts(fetch.response):
                    name = clipped(self.topic_in(topic))
                    self._brought += [(name, part) for part in topic.partitions if part.batches]
        return self._brought

    def has_room(self, table: Sized, most: int, *texts: str, entries: int = 1) -> bool:
        """Whether a table may have one more, of so many entries and these texts, which then count in the budget."""
        return len(table) < most and self.budget.admit(entries * ENTRY_BYTES + text_bytes(*texts))

    def subjects(self, make: Callable[[], Value], entries: int, most: int | None = None) -> Subjects[Any, Value]:
        """What is remembered by subject within the budget of memory, see ``Subjects``."""
        return Subjects(self.budget, make, entries, most)

    def tally(self) -> Tally:
        """A new tally that shares the budget of memory."""
        return Tally(self.budget)

    def case(self) -> Case:
        """A new case outside a tally."""
        return Case(self.budget)
