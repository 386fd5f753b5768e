"""The replicas, ISR and leaders of partitions, from Metadata and DescribeTopicPartitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kwiresniff.analysis.doctor.evidence import clipped
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.model import Body

#: Partitions whose replicas are remembered.
MAX_PARTITIONS = 20_000
#: Clusters whose brokers are remembered.
MAX_CLUSTERS = 100
#: Answers within such a time tell of the same state.
TOGETHER_NS = 5_000_000_000


class Replicas(NamedTuple):
    """The nodes with replicas of a partition, those in sync, those whose replicas are offline (KIP-112), and the leader
    (-1 for none), in the last answer, at ``place`` (packet and time).

    ``short_since`` is packet and time of the first answer since which not all replicas are in sync, or None;
    ``was_whole``: an answer before that had all of them in sync.
    """

    all: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    leader: int
    place: tuple[int, int]
    short_since: tuple[int, int] | None
    was_whole: bool

    @property
    def nodes(self) -> int:
        """How many nodes are remembered, in all three roles."""
        return len(self.all) + len(self.in_sync) + len(self.offline)

    @property
    def behind(self) -> list[int]:
        """The nodes with replicas that are not in sync."""
        in_sync = frozenset(self.in_sync)
        return [node for node in self.all if node not in in_sync]

    @property
    def ns(self) -> int:
        """The time of the last answer."""
        return self.place[1]


class ReplicaTable:
    """The replicas of each partition that was described, and the brokers of each cluster."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._replicas: dict[tuple[str, str, int], Replicas] = {}
        self._brokers: dict[str, tuple[frozenset[int], int]] = {}

    def learn(self, cluster: str, body: Body, topic_of: Callable[[Body], str], place: tuple[int, int]) -> None:
        """Takes in the replicas in an answer at ``place`` (packet and time)."""
        brokers = frozenset(one.get("node_id", -1) for one in body.get("brokers") or ())
        if brokers and (cluster in self._brokers or len(self._brokers) < MAX_CLUSTERS):
            self._brokers[cluster] = brokers, place[1]
        for topic in body.get("topics") or ():
            name = clipped(topic_of(topic))
            for one in topic.get("partitions") or ():
                key = cluster, name, one.get("partition_index", -1)
                replicas, in_sync = tuple(one.get("replica_nodes") or ()), tuple(one.get("isr_nodes") or ())
                leader, offline = one.get("leader_id", -1), tuple(one.get("offline_replicas") or ())
                known = self._replicas.get(key)
                nodes = len(replicas) + len(in_sync) + len(offline)
                size = 24 * nodes + (6 * ENTRY_BYTES + text_bytes(name) if known is None else -24 * known.nodes)
                if (known is None and len(self._replicas) >= MAX_PARTITIONS) or not self._budget.admit(max(size, 0)):
                    continue
                before = known.short_since if known is not None else None
                since = (before or place) if len(in_sync) < len(replicas) else None
                whole = since is None or (known is not None and known.was_whole)
                self._replicas[key] = Replicas(replicas, in_sync, offline, leader, place, since, whole)

    def of(self, cluster: str, topic: str, partition: int) -> Replicas | None:
        """The replicas of a partition, None where no answer has named any."""
        return self._replicas.get((cluster, topic, partition))

    def brokers(self, cluster: str) -> tuple[frozenset[int], int]:
        """The nodes in the newest list of a cluster's brokers, and its time; none and 0 where there was no list."""
        return self._brokers.get(cluster, (frozenset(), 0))

    def cut_off(self, cluster: str) -> list[int]:
        """The nodes in the list of brokers that neither copy from others nor are copied from, by the newest answers.

        They are missing from the ISR where others lead, and the others where they lead; no other pair of leader and
        follower is apart. Of two nodes it is both.
        """
        short = [one for name, _, _, one in self if name == cluster and one.short_since is not None and one.leader >= 0]
        newest_ns = max((one.ns for one in short), default=0)
        new = [one for one in short if one.ns >= newest_ns - TOGETHER_NS]
        pairs = {(one.leader, node) for one in new for node in one.behind}
        present, _ = self.brokers(cluster)
        if not pairs or any(not present.issuperset(pair) for pair in pairs):
            return []
        leaders, followers = ({pair[place] for pair in pairs} for place in (0, 1))
        return sorted(node for node in leaders & followers if all(node in pair for pair in pairs))

    def __iter__(self) -> Iterator[tuple[str, str, int, Replicas]]:
        return ((*key, known) for key, known in self._replicas.items())
