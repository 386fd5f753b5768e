"""What consumers have committed, as OffsetCommit requests and OffsetFetch responses say, by client and partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

#: Partitions of clients whose committed offset is remembered.
MAX_COMMITTED = 10_000

#: A client, a topic, the number of a partition.
PartitionOfClient: TypeAlias = tuple[str, str, int]


@dataclass(slots=True, eq=False)
class Committed:
    """The newest committed offset, -1 before any, how often it was committed while the capture looked, when last, and
    the longest time between two commits."""

    offset: int = -1
    count: int = 0
    ns: int = 0
    longest_ns: int = 0

    def commit(self, offset: int, ns: int) -> None:
        """A commit."""
        self.offset = offset
        if self.count:
            self.longest_ns = max(self.longest_ns, ns - self.ns)
        self.count += 1
        self.ns = ns
