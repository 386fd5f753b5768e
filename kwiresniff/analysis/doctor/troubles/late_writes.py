"""Late writes of one time of trouble, with the writes that each node, or two nodes together, take part in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kwiresniff.analysis.doctor.cluster import Cluster
from kwiresniff.analysis.doctor.evidence import together
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.troubles.writes import TOGETHER_NS

#: Writes that a comparison needs.
ENOUGH: Final = 20
#: A node is slow whose writes lose so many times as much as others, and this part of the time of all late writes.
TIMES_AS_MUCH: Final = 10
MOST: Final = 0.9


class Share(NamedTuple):
    """The number of some writes, and the sum of what the late ones took, in nanoseconds."""

    late_ns: int
    count: int  # type: ignore[assignment]  # not the method of tuples

    def __sub__(self, other: Share) -> Share:
        return Share(self.late_ns - other.late_ns, self.count - other.count)

    def is_less(self, other: Share) -> bool:
        """Whether they are enough, and lost so little that the others were late for a reason of their own."""
        return self.count >= ENOUGH and self.late_ns * other.count * TIMES_AS_MUCH <= other.late_ns * self.count


def _share(logs: Iterable[Observation]) -> Share:
    some = list(logs)
    return Share(sum(one.numbers["late_ns"] for one in some), sum(one.numbers["writes"] for one in some))


class Trouble:
    """The late writes of a cluster in one time, and its other logs."""

    def __init__(
        self, cluster: Cluster, cluster_id: str, late: Sequence[Observation], others: Sequence[Observation]
    ) -> None:
        self.cluster, self.cluster_id = cluster, cluster_id
        self.late = late
        self.logs = [*late, *others]

    def nodes(self) -> list[int]:
        """The nodes that took part in late writes."""
        return list(dict.fromkeys(node for one in self.late for node, _ in one.numbers["late_nodes"]))

    def with_node(self, node: int) -> tuple[Share, Share]:
        """The writes that a node took part in, and the others."""
        mine = _with(node, self.logs)
        return mine, _share(self.logs) - mine

    def led_by(self, node: int) -> tuple[list[Observation], Share, Share, Share]:
        """Of the writes that a node leads the late ones and all; all others; and those that it copies."""
        led = self._led_by(node)
        mine = _share(led)
        copied = _with(node, self.logs) - mine
        return [one for one in led if one in self.late], mine, _share(self.logs) - mine, copied

    def _led_by(self, node: int) -> list[Observation]:
        return [one for one in self.logs if self.cluster.node_at(one.numbers["leader"]) == node]

    def other_topics(self, one: Observation) -> list[Observation]:
        """The other topics at the leader of a log whose writes need at least the same nodes."""
        nodes = nodes_of(one)
        mine = [other for other in self.logs if other.numbers["leader"] == one.numbers["leader"] and other is not one]
        return [other for other in mine if nodes <= nodes_of(other) and other.name("topic") != one.name("topic")]

    def between(self, node: int, other: int) -> tuple[Share, Share]:
        """The writes that the first of two nodes leads and the other copies, and the reverse."""
        return _with(other, self._led_by(node)), _with(node, self._led_by(other))

    def own_hosts(self) -> list[Observation]:
        """The late writes of a host while others write to the same topic there in time."""
        found = []
        for one in self.late:
            place = one.numbers["leader"], one.name("topic")
            others = [each for each in self.logs if (each.numbers["leader"], each.name("topic")) == place]
            if _share(each for each in others if each.name("host") != one.name("host")).is_less(_share([one])):
                found.append(one)
        return found

    def own_topics(self) -> list[Observation]:
        """The late writes to a topic while others at the same leader, which need at least the same nodes, are not
        late."""
        return [one for one in self.late if _share(self.other_topics(one)).is_less(_share([one]))]


def troubles(observed: Observed, cluster: Cluster) -> Iterator[Trouble]:
    """The late writes by cluster and time."""

    def cluster_of(one: Observation) -> str:
        return cluster.of(one.numbers["leader"])

    for late in together(observed.of("late_writes"), TOGETHER_NS, cluster_of):
        cluster_id = cluster_of(late[0])
        yield Trouble(
            cluster, cluster_id, late, [one for one in observed.of("prompt_writes") if cluster_of(one) == cluster_id]
        )


def _with(node: int, logs: Iterable[Observation]) -> Share:
    """The writes among ``logs`` that a node takes part in."""
    some = list(logs)
    late_ns = sum(ns for one in some for other, ns in one.numbers["late_nodes"] if other == node)
    return Share(late_ns, sum(count for one in some for other, count in one.numbers["nodes"] if other == node))


def nodes_of(one: Observation) -> set[int]:
    return {node for node, _ in one.numbers["nodes"]}
