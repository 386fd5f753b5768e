"""What consumers have committed, as OffsetCommit requests and OffsetFetch responses say, by client and partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, MemoryBudget, text_bytes

#: Partitions of clients whose committed offset is remembered.
MAX_COMMITTED = 10_000

#: A client, a topic, the number of a partition.
PartitionOfClient: TypeAlias = tuple[str, str, int]


@dataclass(slots=True, eq=False)
class Committed:
    """The newest committed offset, how often it was committed while the capture looked, when last, and the longest time
    between two commits."""

    offset: int
    count: int = 0
    ns: int = 0
    longest_ns: int = 0


class Commits:
    """The committed offset of each partition."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._committed: dict[PartitionOfClient, Committed] = {}

    def learn(self, key: PartitionOfClient, offset: int) -> Committed | None:
        """An offset that was committed before; None where there is no room for it."""
        known = self._committed.get(key)
        if known is not None:
            known.offset = offset
            return known
        size = CONTAINER_BYTES + 3 * ENTRY_BYTES + text_bytes(key[0], key[1])
        if len(self._committed) >= MAX_COMMITTED or not self._budget.admit(size):
            return None
        known = self._committed[key] = Committed(offset)
        return known

    def commit(self, key: PartitionOfClient, offset: int, ns: int) -> None:
        """A commit."""
        known = self.learn(key, offset)
        if known is not None:
            if known.count:
                known.longest_ns = max(known.longest_ns, ns - known.ns)
            known.count += 1
            known.ns = ns

    def of(self, key: PartitionOfClient) -> Committed | None:
        """What a client has committed of a partition, None where that is not known."""
        return self._committed.get(key)
