"""The leaders of partitions, and how they have changed.

Leader epochs (KIP-320) show which of two responses is the newer one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from kwiresniff.analysis.doctor.evidence import clipped
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.model import Body

#: Partitions whose leader is remembered, and changes of leaders.
MAX_PARTITIONS = 50_000
MAX_CHANGES = 5_000
#: Changes that come so close to each other and away from the same node have one cause: a node's restart takes so long
#: to move all it leads.
TOGETHER_NS = 15_000_000_000

#: Cluster, topic and number.
Partition: TypeAlias = tuple[str, str, int]


@dataclass(slots=True, eq=False)
class _Leader:
    node: int
    epoch: int


class Change(NamedTuple):
    """A partition's leader moved from one node to another; ``ns`` and ``packet`` say when that was first seen."""

    partition: Partition
    before: int
    after: int
    ns: int
    packet: int


class LeaderTable:
    """The newest leader of each partition."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._leaders: dict[Partition, _Leader] = {}
        self._changes: list[Change] = []

    def learn(self, cluster: str, body: Body, topic_of: Callable[[Body], str], packet: int, ns: int) -> None:
        """Takes in the leaders that a Metadata response names."""
        for topic in body.get("topics") or ():
            name = clipped(topic_of(topic))
            for one in topic.get("partitions") or ():
                if not one.get("error_code"):
                    partition = cluster, name, one.get("partition_index", -1)
                    self.learn_leader(partition, one, packet, ns)

    def learn_leader(self, partition: Partition, leader: Body, packet: int, ns: int) -> None:
        """A leader with its epoch, as a structure names it; a node below 0 is none."""
        node, epoch = leader.get("leader_id", -1), leader.get("leader_epoch", -1)
        if node < 0:
            return
        known = self._leaders.get(partition)
        if known is None:
            size = 2 * ENTRY_BYTES + text_bytes(partition[1])
            if len(self._leaders) < MAX_PARTITIONS and self._budget.admit(size):
                self._leaders[partition] = _Leader(node, epoch)
            return
        if 0 <= epoch < known.epoch or (epoch == known.epoch and epoch >= 0):
            return  # said by a broker that is behind, or known
        if node != known.node and len(self._changes) < MAX_CHANGES:
            self._changes.append(Change(partition, known.node, node, ns, packet))
        known.node, known.epoch = node, max(epoch, known.epoch)

    def leader(self, partition: Partition) -> int | None:
        """The node that leads, as far as it is known."""
        known = self._leaders.get(partition)
        return known.node if known is not None else None

    def incidents(self) -> list[list[Change]]:
        """The changes, those together that have one cause."""
        incidents: list[list[Change]] = []
        last: dict[tuple[str, int], list[Change]] = {}
        for change in sorted(self._changes, key=lambda one: one.ns):
            key = change.partition[0], change.before
            incident = last.get(key)
            if incident is None or change.ns - incident[-1].ns > TOGETHER_NS:
                incident = last[key] = []
                incidents.append(incident)
            incident.append(change)
        return incidents
