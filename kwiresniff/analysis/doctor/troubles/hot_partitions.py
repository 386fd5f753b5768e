"""Partitions that get most of what is sent to a topic with several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, TypeAlias

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import listed
from kwiresniff.analysis.topic_parts import message_parts, parts_of
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.model import Exchange

#: Partitions of a topic, and requests, below which a share says nothing.
ENOUGH_PARTITIONS = 3
ENOUGH_REQUESTS = 60
#: A producer without keys stays with a partition until a batch is full, which evens out over this time. One that writes
#: to several partitions at once, or in turn, so often has keys.
LASTING_NS = 10_000_000_000
MIXED = 20
#: Partitions counted apart.
MAX_PARTITIONS = 1_000
#: Partitions of a topic in a request, with their bytes.
_Sizes: TypeAlias = list[tuple[int, int]]


#: A hot partition gets this part of a topic's bytes, and so many times its fair share.
HOT_SHARE: Final = 0.5
HOT_TIMES: Final = 3.0


class _Topic:
    __slots__ = ("case", "clients", "mixed", "sizes", "written")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.sizes: dict[int, int] = {}
        self.clients: dict[str, None] = {}
        self.written: dict[int, int] = {}
        self.mixed = 0

    def mix(self, connection: int, sizes: _Sizes) -> None:
        """Counts a request of a producer that writes to more than the one partition that it wrote to before."""
        one = sizes[0][0] if len(sizes) == 1 else -1
        if one < 0 or self.written.get(connection, one) != one:
            self.mixed += 1
        if connection in self.written or len(self.written) < MAX_PARTITIONS:
            self.written[connection] = one


class PartitionShares(Observer):
    """``partition_share``: the partition that gets most of the bytes sent to a topic with several.

    Numbers: ``topic``, ``partition``, ``share``, ``partitions``, ``clients``, ``sampled_bytes``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("partition_share",)
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._topics: Subjects[str, _Topic] = context.subjects(lambda: _Topic(context.case()), 10)

    def exchange(self, exchange: Exchange) -> None:
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
            numbers = {
                "topic": topic,
                "partition": f"{topic}-{index}",
                "share": most / whole,
                "partitions": count,
                "clients": list(known.clients),
                "sampled_bytes": whole,
            }
            yield observation_of("partition_share", case, {f"topic:{topic}"}, numbers)

    def _visible(self) -> dict[str, set[int]]:
        """By topic the partitions whose leaders' answers are in the capture."""
        cluster, visible = self.context.cluster, dict[str, set[int]]()
        for cluster_id, topic, index, known in self.context.replicas:
            if cluster.address(cluster_id, known.leader) in cluster.last_answer_ns:
                visible.setdefault(topic, set()).add(index)
        return visible


@cause("hot_partition", explains=("partition_share",))
def hot_partition(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`hot_partition` (warning): half of what a topic is sent goes to one partition, three times its share and more."""
    numbers, share = one.numbers, one.numbers["share"]
    if share < HOT_SHARE or share * numbers["partitions"] < HOT_TIMES:
        return None
    return told(
        one,
        f"gets {share:.0%} of what is produced to {numbers['partitions']} partitions of {numbers['topic']} by "
        f"{listed(numbers['clients'])}",
        "Its leader carries most of the load of the topic: look at the keys of the records (one that most have, a "
        "null or constant key, a partitioner of one's own).",
        subject=numbers["partition"],
        severity="warning",
        numbers={name: value for name, value in numbers.items() if name != "topic"} | {"share": round(share, 3)},
    )
