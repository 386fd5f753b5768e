"""The memory of a timeline of groups: its newest events, and the last known values of members.

Bounded in number and in bytes: the oldest go first, and what went is counted.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any, Generic, TypeAlias, TypeVar

from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes, value_bytes
from kwiresniff.results.groups import GroupEvent

#: Events kept. One takes about 1 kB.
MAX_EVENTS = 50_000
#: Memory of the events. Assignments of 10,000s of partitions come again at every rebalance.
MAX_EVENT_BYTES = 64 << 20
#: Members whose assignment or epoch is remembered, to find what changed.
MAX_MEMBERS = 10_000
#: Memory of what is remembered of members.
MAX_MEMBER_BYTES = 32 << 20
#: Partitions named of one commit event.
MAX_OFFSETS = 1_000

#: The object, the dict of its details, and numbers in them.
_EVENT_BYTES = 600

Partitions: TypeAlias = dict[str, list[int]]
#: Cluster (as ``identity.clusters`` numbers them), group and member.
Member: TypeAlias = tuple[int, str, str]
Value = TypeVar("Value")


class LastKnown(Generic[Value]):
    """The newest value of each member. ``forgotten`` counts those that had to go."""

    def __init__(self, budget: MemoryBudget) -> None:
        self.forgotten = 0
        self._budget = budget
        self._values: OrderedDict[Member, tuple[Value, int]] = OrderedDict()

    def __contains__(self, member: Member) -> bool:
        return member in self._values

    def __iter__(self) -> Iterator[Member]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def get(self, member: Member) -> Value | None:
        """The value of a member, or None."""
        found = self._values.get(member)
        return None if found is None else found[0]

    def put(self, member: Member, value: Value) -> None:
        """Remembers ``value`` instead of what was known; the members least lately seen make room."""
        self.pop(member)
        size = 2 * ENTRY_BYTES + text_bytes(*member[1:]) + value_bytes(value)
        self._values[member] = (value, size)
        self._budget.charge(size)
        while self._values and (len(self._values) > MAX_MEMBERS or self._budget.exceeded):
            self.pop(next(iter(self._values)))
            self.forgotten += 1

    def pop(self, member: Member) -> Value | None:
        """Removes and returns the value of a member."""
        found = self._values.pop(member, None)
        if found is None:
            return None
        self._budget.release(found[1])
        return found[0]


def new_member_budget() -> MemoryBudget:
    """The memory budget of all that is known of members."""
    return MemoryBudget(MAX_MEMBER_BYTES)


class KeptEvent:
    """An event and its size in memory; of commits that may go on, also their offsets by topic and partition.

    ``group`` is the event's by its cluster and its name.
    """

    __slots__ = ("event", "group", "offsets", "size")

    def __init__(self, event: GroupEvent, group: tuple[int, str], size: int) -> None:
        self.event = event
        self.group = group
        self.size = size
        #: The lists of the event. A topic may have a long name, which is not to be joined to a partition to look there.
        self.offsets: dict[tuple[str, Any], list[Any]] = {}


class EventLog:
    """The newest events of all groups. ``left_out`` counts the older ones."""

    def __init__(self) -> None:
        self.left_out = 0
        self._events: deque[KeptEvent] = deque()
        self._budget = MemoryBudget(MAX_EVENT_BYTES)
        # The last event of each group, while it is a commit that the next one may be part of.
        self._commits: OrderedDict[tuple[int, str], KeptEvent] = OrderedDict()

    def __iter__(self) -> Iterator[GroupEvent]:
        return (kept.event for kept in self._events)

    def add(self, event: GroupEvent, cluster: int) -> KeptEvent:
        """One more event in a cluster; the oldest make room."""
        group = cluster, event.group
        self._close_commit(group)
        kept = KeptEvent(event, group, 0)
        self._events.append(kept)
        texts = text_bytes(event.group, event.client_id, event.member_id, event.instance_id)
        # The names of the details are the program's own.
        self._grow(kept, _EVENT_BYTES + texts + sum(map(value_bytes, event.details.values())))
        return kept

    def add_commit(self, event: GroupEvent, cluster: int) -> KeptEvent:
        """One more event, of commits that may go on until something else happens in the group."""
        kept = self.add(event, cluster)
        self._commits[kept.group] = kept
        if len(self._commits) > MAX_MEMBERS:
            self._close_commit(next(iter(self._commits)))
        return kept

    def open_commit(self, group: tuple[int, str]) -> KeptEvent | None:
        """The last event of a group in a cluster, if it is one of commits."""
        return self._commits.get(group)

    def count_error(self, kept: KeptEvent, name: str) -> None:
        """Counts an error in the response to one of the commits."""
        errors = kept.event.details["errors"]
        if name not in errors:
            self._grow(kept, text_bytes(name) + ENTRY_BYTES)
        errors[name] = errors.get(name, 0) + 1

    def count_offset(self, kept: KeptEvent, topic: str, partition: Any, offset: Any) -> None:
        """Adds what one of the commits says of a partition: its first offset is kept, and its last."""
        known = kept.offsets.get((topic, partition))
        if known is not None:
            known[1] = offset
        elif len(kept.offsets) < MAX_OFFSETS:
            name = f"{topic}-{partition}"
            kept.offsets[topic, partition] = kept.event.details["offsets"][name] = [offset, offset]
            self._grow(kept, text_bytes(name, topic) + 3 * ENTRY_BYTES)

    def _close_commit(self, group: tuple[int, str]) -> None:
        """Ends the group's last event of commits, so that later ones make a new event."""
        closed = self._commits.pop(group, None)
        if closed is not None:
            closed.offsets = {}

    def _grow(self, kept: KeptEvent, size: int) -> None:
        if kept.size < 0:
            return  # it has gone already
        kept.size += size
        events, budget = self._events, self._budget
        budget.charge(size)
        while events and (len(events) > MAX_EVENTS or budget.exceeded):
            oldest = events.popleft()
            budget.release(oldest.size)
            oldest.size = -1
            if self._commits.get(oldest.group) is oldest:
                self._close_commit(oldest.group)
            self.left_out += 1
