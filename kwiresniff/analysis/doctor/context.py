"""What all observers and causes of an examination share: topic names, the cluster, the time so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, TypeAlias

from kwiresniff.analysis.doctor.cluster import Cluster
from kwiresniff.analysis.doctor.commits import MAX_COMMITTED, Committed, PartitionOfClient
from kwiresniff.analysis.doctor.copying import Copying, Place
from kwiresniff.analysis.doctor.evidence import Case, Tally, clipped, is_cut, is_replica, new_budget
from kwiresniff.analysis.doctor.replica_table import ReplicaTable
from kwiresniff.analysis.doctor.subjects import Subjects, Value
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.analysis.topic_parts import message_parts, parts_of
from kwiresniff.base.field_values import field_text
from kwiresniff.digest import PartitionDigest, TopicDigest
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Body, Exchange, Message, TopicNames

#: Connections remembered whose responses are cut off.
MAX_CUT = 20_000
#: So many gaps in what brokers sent, for each missing response, may have hidden it.
GAPS = 10

#: A partition of a Produce: the name of its topic, what was sent, and what was answered.
Written: TypeAlias = tuple[str, PartitionDigest, PartitionDigest | None]


class Context:
    """The shared state of an examination."""

    def __init__(
        self, topic_name: TopicNames | None = None, clusters: Clusters | None = None, beside: Context | None = None
    ) -> None:
        """``beside`` is that of the first examination, where each cluster has one."""
        self._topic_name = topic_name
        self.is_first = beside is None
        self.budget: MemoryBudget = new_budget() if beside is None else beside.budget
        #: The nodes of all clusters, and which brokers are one cluster.
        self.cluster: Cluster = Cluster(self.budget) if beside is None else beside.cluster
        self.clusters: Clusters = (clusters or Clusters()) if beside is None else beside.clusters
        #: When topics were last seen to exist, by cluster id and name.
        self.existing: dict[tuple[str, str], int] = {} if beside is None else beside.existing
        #: The last exchange and the last fetch of clients, by node of ``clusters``, address and client.
        self.visits: dict[tuple[int, str, str], list[int]] = {} if beside is None else beside.visits
        #: What programs of all clusters read: times and sums of records, by client or host and topic.
        self.sources: dict[str, dict[Place, deque[tuple[int, int]]]] = {} if beside is None else beside.sources
        #: How many records they wrote, by client or host and topic, and beside each topic that they read.
        self.written_records: dict[tuple[str, Place], int] = {} if beside is None else beside.written_records
        self.copying: dict[tuple[str, Place, Place], Copying] = {} if beside is None else beside.copying
        self.replicas = ReplicaTable(self.budget)
        self.commits: Subjects[PartitionOfClient, Committed] = Subjects(self.budget, Committed, 3, MAX_COMMITTED)
        #: Error codes that observers judge.
        self.judged: frozenset[str] = frozenset()
        #: Clients whose transactions took longer than their timeout, with a sentence.
        self.overdue: dict[str, str] = {}
        #: Moved coordinators: of what, from and to which address, and when that was learned.
        self.moves: list[tuple[str, str, str, int]] = []
        #: Connections with responses that are cut off.
        self.cut: set[int] = set()
        #: Gaps in what brokers sent.
        self.gaps = 0
        self.begin_ns = 0
        self.end_ns = 0
        # Observers ask for those of the same exchange one after the other.
        self._fetch: Exchange | None = None
        self._brought: list[tuple[str, PartitionDigest]] = []
        self._produce: Exchange | None = None
        self._written: list[Written] = []
        self._before: Message | None = None
        self._parts_before: list[tuple[str, PartitionDigest]] = []
        self._last: Message | None = None
        self._last_parts: list[tuple[str, PartitionDigest]] = []

    def is_lossy(self, count: int) -> bool:
        """Whether the capture has so many gaps that the missing responses may be in them."""
        return self.gaps >= count * GAPS

    def note_cut(self, exchange: Exchange) -> None:
        """Notes a response that is cut off."""
        if len(self.cut) < MAX_CUT and is_cut(exchange, "response"):
            self.cut.add(exchange.connection.id)

    def topic_name(self, topic_id: str) -> str | None:
        """The name of a topic id, as far as the capture has shown it."""
        return self._topic_name(topic_id) if self._topic_name is not None else None

    def topic_of(self, body: Body) -> str:
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
        """The partitions of which a fetch brought a consumer batches, each with the name of its topic; none for a
        follower's.
        """
        if fetch is not self._fetch:
            parts = [] if is_replica(fetch) else self.parts(fetch.response)
            self._fetch, self._brought = fetch, [one for one in parts if one[1].batches]
        return self._brought

    def written(self, produce: Exchange) -> list[Written]:
        """The partitions of a Produce request, each with the name of its topic and what was answered of it."""
        if produce is not self._produce:
            answers = {(name, part.index): part for name, part in self.parts(produce.response)}
            sent = self.parts(produce.request)
            self._produce, self._written = produce, [(name, one, answers.get((name, one.index))) for name, one in sent]
        return self._written

    def parts(self, message: Message | None) -> list[tuple[str, PartitionDigest]]:
        """The partitions that a message is about, each with the name of its topic."""
        if message is None:
            return []
        if message is self._before:
            return self._parts_before
        if message is not self._last:
            self._before, self._parts_before = self._last, self._last_parts
            self._last, self._last_parts = message, self._named(message_parts(message))
        return self._last_parts

    def parts_in(self, body: Body) -> list[tuple[str, PartitionDigest]]:
        """The partitions in a body, each with the name of its topic."""
        return self._named(parts_of(body))

    def members(self, body: Body, topics: str = "topics", parts: str = "partitions") -> Iterator[tuple[str, Body]]:
        """The structures of partitions in an array of topics, each with the name of its topic."""
        for topic in body.get(topics) or ():
            name = clipped(self.topic_of(topic))
            for part in topic.get(parts) or ():
                if isinstance(part, dict):
                    yield name, part

    def _named(self, topics: list[TopicDigest]) -> list[tuple[str, PartitionDigest]]:
        found = []
        for topic in topics:
            name = clipped(self.topic_in(topic))
            found += [(name, part) for part in topic.partitions]
        return found

    def has_room(self, table: Sized, most: int, *texts: str, entries: int = 1) -> bool:
        """Whether a table has room for one more; if so, its entries and texts are charged to the budget."""
        return len(table) < most and self.budget.admit(entries * ENTRY_BYTES + text_bytes(*texts))

    def subjects(self, make: Callable[[], Value], entries: int, most: int | None = None) -> Subjects[Any, Value]:
        """Values by subject within the memory budget, see ``Subjects``."""
        return Subjects(self.budget, make, entries, most)

    def tally(self) -> Tally:
        """A new tally that shares the budget of memory."""
        return Tally(self.budget)

    def case(self, cases: Iterable[Case] = ()) -> Case:
        """A new case outside a tally, with the evidence of others."""
        case = Case(self.budget)
        for one in cases:
            case.merge(one)
        return case
