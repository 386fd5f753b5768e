"""Hot partitions: one that gets most of what a topic with several partitions is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeAlias

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, clipped
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.topic_parts import message_parts, parts_of
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.model import Exchange

#: Partitions that a topic must have, and requests that must have been looked at, before a share says anything.
ENOUGH_PARTITIONS = 3
ENOUGH_REQUESTS = 60
#: A producer without keys stays with a partition until a batch is full; only over such a time that evens out. One that
#: writes to several partitions at once, or goes from one to another, so often, has keys.
LASTING_NS = 10_000_000_000
MIXED = 20
#: Partitions counted apart.
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


class PartitionShares(Observer):
    """``partition_share``: the partition that gets most of the bytes that a topic is sent, of topics with several.

    Numbers: ``topic``, ``partition``, ``share``, ``partitions``, ``clients``, ``sampled_bytes``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("partition_share",)
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._topics: Subjects[str, _Topic] = context.subjects(lambda: _Topic(context.case()), 10)

    def exchange(self, exchange: Exchange) -> None:
        """Counts the bytes of a Produce request."""
        request = exchange.request
        if request is None:
            return
        client_id = exchange.client_id
        digest = request.digest
        # A digest leaves out batches that are cut.
        is_cut = digest is not None and digest.is_cut
        for topic in parts_of(request.body or {}) if is_cut else message_parts(request):
            sizes = [(part.index, part.size_bytes) for part in topic.partitions]
            known = self._topics.of(clipped(self.context.topic_in(topic)))
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

    def observations(self) -> Iterator[Observation]:
        """By topic, where enough of it was seen."""
        visible = self._visible()
        for topic, known in self._topics.items():
            count, case = len(visible.get(topic, set()) | known.sizes.keys()), known.case
            whole = sum(known.sizes.values())
            mixed = known.mixed >= MIXED
            enough = case.count >= (MIXED if mixed else ENOUGH_REQUESTS)
            lasting = mixed or case.last_ns - case.first_ns >= LASTING_NS
            if count < ENOUGH_PARTITIONS or not (enough and lasting and whole):
                continue
            index, most = max(known.sizes.items(), key=lambda one: one[1])
            yield observation_of(
                "partition_share",
                case,
                {f"topic:{topic}"},
                {
                    "topic": topic,
                    "partition": f"{topic}-{index}",
                    "share": most / whole,
                    "partitions": count,
                    "clients": list(known.clients),
                    "sampled_bytes": whole,
                },
            )

    def _visible(self) -> dict[str, set[int]]:
        """By topic the partitions whose leaders' answers are in the capture: of the others nothing is known."""
        cluster, visible = self.context.cluster, dict[str, set[int]]()
        for cluster_id, topic, index, known in self.context.replicas:
            if cluster.address(cluster_id, known.leader) in cluster.last_answer_ns:
                visible.setdefault(topic, set()).add(index)
        return visible
