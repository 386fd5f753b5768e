"""The committed offsets of consumers, from OffsetCommit requests and OffsetFetch responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

#: Partitions of clients whose committed offset is remembered.
MAX_COMMITTED = 10_000

#: A client, a topic, the number of a partition.
PartitionOfClient: TypeAlias = tuple[str, str, int]


@dataclass(slots=True, eq=False)
class Committed:
    """The newest committed offset (-1 before any), the number of commits in the capture, the time of the last, and the
    longest between two."""

    offset: int = -1
    count: int = 0
    ns: int = 0
    longest_ns: int = 0

    def commit(self, offset: int, ns: int) -> None:
        """Takes in a commit."""
        self.offset = offset
        if self.count:
            self.longest_ns = max(self.longest_ns, ns - self.ns)
        self.count += 1
        self.ns = ns
