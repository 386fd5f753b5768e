"""The replicas of partitions, and which of them are in sync, as Metadata says."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwiresniff.analysis.doctor.evidence import clipped
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.model import Body

#: Partitions whose replicas are remembered.
MAX_PARTITIONS = 20_000


class Replicas(NamedTuple):
    """The nodes that have replicas of a partition, and those in sync, when Metadata last said so."""

    all: tuple[int, ...]
    in_sync: tuple[int, ...]
    ns: int


class ReplicaTable:
    """The replicas of each partition that Metadata has named."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._replicas: dict[tuple[str, str, int], Replicas] = {}

    def learn(self, cluster: str, body: Body, topic_of: Callable[[Body], str], ns: int) -> None:
        """Takes in the replicas that a Metadata response names."""
        for topic in body.get("topics") or ():
            name = clipped(topic_of(topic))
            for one in topic.get("partitions") or ():
                key = cluster, name, one.get("partition_index", -1)
                replicas = tuple(one.get("replica_nodes") or ())
                size = 6 * ENTRY_BYTES + text_bytes(name) + 16 * len(replicas)
                if key in self._replicas or (len(self._replicas) < MAX_PARTITIONS and self._budget.admit(size)):
                    self._replicas[key] = Replicas(replicas, tuple(one.get("isr_nodes") or ()), ns)

    def of(self, cluster: str, topic: str, partition: int) -> Replicas | None:
        """The replicas of a partition, None where Metadata has not named any."""
        return self._replicas.get((cluster, topic, partition))
