"""Hot partitions: one that gets most of what a topic with several partitions is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from kwiresniff.analysis.doctor.cause import INCIDENT
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, clipped
from kwiresniff.analysis.doctor.rule import Rule, found
from kwiresniff.analysis.doctor.wording import listed
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.topic_parts import sizes_of
from kwiresniff.base.api_keys import METADATA, PRODUCE
from kwiresniff.model import Body, Exchange, Message
from kwiresniff.results.findings import Finding

#: Partitions that a topic must have, and requests that must have been looked at, before a share says anything.
ENOUGH_PARTITIONS = 3
ENOUGH_REQUESTS = 60
#: The part of a topic's bytes that one partition gets, and how many times its fair share that must be.
HOT_SHARE = 0.5
HOT_TIMES = 3.0
#: A producer without keys stays with a partition until a batch is full; only over such a time that evens out. One that
#: writes to several partitions at once, or goes from one to another, so often, has keys.
LASTING_NS = 10_000_000_000
MIXED = 20
#: Topics and partitions counted apart.
MAX_TOPICS = 2_000
MAX_PARTITIONS = 1_000


#: Partitions of a topic, each with the bytes that it is sent.
_Sizes: TypeAlias = list[tuple[int, int]]


class _Topic:
    __slots__ = ("case", "clients", "mixed", "sizes", "written")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.sizes: dict[int, int] = {}
        self.clients: dict[str, None] = {}
        self.written: dict[int, int] = {}
        self.mixed = 0

    def mix(self, connection: int, sizes: _Sizes) -> None:
        """Whether a producer has written to more than the one partition it wrote to before."""
        one = sizes[0][0] if len(sizes) == 1 else -1
        if one < 0 or self.written.get(connection, one) != one:
            self.mixed += 1
        if connection in self.written or len(self.written) < MAX_PARTITIONS:
            self.written[connection] = one


class HotPartitionRule(Rule):
    """Partitions that get far more than their share.

    `hot_partition` (warning): half of what a topic is sent goes to one partition, three times its share and more.
    """

    codes = ("hot_partition",)
    apis = frozenset({PRODUCE, METADATA})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._topics: dict[str, _Topic] = {}
        self._leaders: dict[str, dict[int, tuple[str, int]]] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Counts the bytes of Produce requests; Metadata tells how many partitions there are."""
        if exchange.api_key == METADATA:
            self._learn(exchange)
            return
        request = exchange.request
        if request is None:
            return
        client_id = exchange.client_id
        for topic, sizes in _written(request, self.context):
            known = self._topics.get(topic) or self._topic(clipped(topic))
            if known is None:
                continue
            known.case.add(request.first_packet, request.first_ns)
            clients, sums = known.clients, known.sizes
            if client_id and client_id not in clients and len(clients) < 10:
                clients[clipped(client_id)] = None
            if sizes:
                known.mix(exchange.connection.id, sizes)
            for partition, size in sizes:
                before = sums.get(partition, -1)
                if before >= 0:
                    sums[partition] = before + size
                elif len(sums) < MAX_PARTITIONS:
                    sums[partition] = size

    def _topic(self, name: str) -> _Topic | None:
        known = self._topics.get(name)
        if known is None:
            size = 10 * ENTRY_BYTES + text_bytes(name)
            if len(self._topics) < MAX_TOPICS and self.context.budget.admit(size):
                known = self._topics[name] = _Topic(self.context.case())
        return known

    def _learn(self, exchange: Exchange) -> None:
        body = exchange.response.body if exchange.response is not None else None
        cluster = self.context.cluster.of(exchange.connection.broker)
        for topic in (body or {}).get("topics") or ():
            name, partitions = clipped(self.context.topic_of(topic)), topic.get("partitions") or ()
            size = ENTRY_BYTES * (1 + len(partitions)) + text_bytes(name)
            if name in self._leaders or (len(self._leaders) < MAX_TOPICS and self.context.budget.admit(size)):
                self._leaders[name] = {
                    one.get("partition_index", -1): (cluster, one.get("leader_id", -1))
                    for one in partitions[:MAX_PARTITIONS]
                }

    def _visible(self, topic: str) -> set[int]:
        """The partitions whose leaders' answers are in the capture: of the others nothing is known."""
        cluster = self.context.cluster
        return {
            partition
            for partition, leader in self._leaders.get(topic, {}).items()
            if cluster.address(*leader) in cluster.last_answer_ns
        }

    def findings(self) -> Iterator[Finding]:
        """By topic."""
        for topic, known in self._topics.items():
            count = len(self._visible(topic) | known.sizes.keys())
            whole = sum(known.sizes.values())
            case = known.case
            enough = MIXED if known.mixed >= MIXED else ENOUGH_REQUESTS
            if count < ENOUGH_PARTITIONS or case.count < enough or not whole:
                continue
            if case.last_ns - case.first_ns < LASTING_NS and known.mixed < MIXED:
                continue
            partition, most = max(known.sizes.items(), key=lambda one: one[1])
            share = most / whole
            if share < HOT_SHARE or share * count < HOT_TIMES:
                continue
            clients = list(known.clients)
            yield found(
                "hot_partition",
                "warning",
                f"{topic}-{partition}",
                f"gets {share:.0%} of what is produced to {count} partitions of {topic} by {listed(clients)}",
                "Its leader carries most of the load of the topic: look at the keys of the records (one that most "
                "have, a null or constant key, a partitioner of one's own).",
                case,
                {"partition": f"{topic}-{partition}", "share": round(share, 3), "partitions": count, "clients": clients,
                 "sampled_bytes": whole},
                topics=[topic],
                rank=INCIDENT,
            )  # fmt: skip


def _written(request: Message, context: Context) -> list[tuple[str, _Sizes]]:
    """The topics that a Produce request writes to, with their partitions."""
    digest = request.digest
    # A digest leaves out batches that are cut, and a topic without name and id.
    if digest is not None and not digest.is_cut:
        written = []
        for topic in digest.parts or ():
            if not topic.name:
                break
            written.append((context.topic_in(topic), sizes_of(topic)))
        else:
            return written
    return [
        (context.topic_of(topic), [(one.get("index", -1), _size_of(one)) for one in topic.get("partition_data") or ()])
        for topic in (request.body or {}).get("topic_data") or ()
    ]


def _size_of(partition: Body) -> int:
    return sum(batch.get("size_bytes", 0) for batch in partition.get("records") or () if isinstance(batch, dict))
