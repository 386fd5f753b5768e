"""Late writes that belong to one time of trouble, and which of its writes each node, and each way between two, has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kwiresniff.analysis.doctor.cluster import Cluster
from kwiresniff.analysis.doctor.observation import Observation, Observed

#: Writes that must be seen of what is compared with.
ENOUGH: Final = 20
#: How much more time than others writes lose with a node before it is that node, and which part of the time that all
#: late writes took they have to take.
TIMES_AS_MUCH: Final = 10
MOST: Final = 0.9
#: Late writes that overlap or follow each other so soon are one time of trouble.
TOGETHER_NS: Final = 10_000_000_000


class Share(NamedTuple):
    """Of some writes how many there were, and how long those took that were late, in nanoseconds."""

    late_ns: int
    count: int  # type: ignore[assignment]  # not the method of tuples

    def is_less(self, other: Share) -> bool:
        """Whether they are enough, and lost so little, that the others were late for a reason of their own."""
        return self.count >= ENOUGH and self.late_ns * other.count * TIMES_AS_MUCH <= other.late_ns * self.count


class Trouble:
    """Late writes of a cluster in one time, and all other logs that were written."""

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
        late_ns = sum(ns for one in self.logs for other, ns in one.numbers["late_nodes"] if other == node)
        count = sum(count for one in self.logs for other, count in one.numbers["nodes"] if other == node)
        all_ns, everything = (sum(one.numbers[name] for one in self.logs) for name in ("late_ns", "writes"))
        return Share(late_ns, count), Share(all_ns - late_ns, everything - count)

    def led_by(self, node: int) -> tuple[list[Observation], Share, Share, Share]:
        """The late ones of the writes that a node leads; all that it leads, all others, and those of them that it
        copies."""
        led = [one for one in self.logs if self.cluster.node_at(one.numbers["leader"]) == node]
        mine, everything = (
            Share(*(sum(one.numbers[name] for one in some) for name in ("late_ns", "writes")))
            for some in (led, self.logs)
        )
        both = self.with_node(node)[0]
        others = Share(everything.late_ns - mine.late_ns, everything.count - mine.count)
        copied = Share(both.late_ns - mine.late_ns, both.count - mine.count)
        return [one for one in led if one in self.late], mine, others, copied

    def other_topics(self, one: Observation) -> list[Observation]:
        """The other topics at the leader of a log whose writes need at least the same nodes."""
        nodes = nodes_of(one)
        mine = [other for other in self.logs if other.numbers["leader"] == one.numbers["leader"] and other is not one]
        return [other for other in mine if nodes <= nodes_of(other) and other.name("topic") != one.name("topic")]

    def between(self, node: int, other: int) -> tuple[Share, Share]:
        """The writes that one of two nodes led and the other copied: those of the first, and those of the other."""
        ways = [
            [
                Share(dict(one.numbers["late_nodes"]).get(copied_by, 0), dict(one.numbers["nodes"]).get(copied_by, 0))
                for one in self.logs
                if self.cluster.node_at(one.numbers["leader"]) == leader
            ]
            for leader, copied_by in ((node, other), (other, node))
        ]
        there, back = (Share(sum(one.late_ns for one in way), sum(one.count for one in way)) for way in ways)
        return there, back

    def own_hosts(self) -> list[Observation]:
        """The late writes that are their host's own: other hosts write to the same topic there without being late."""
        found = []
        for one in self.late:
            place = one.numbers["leader"], one.name("topic")
            others = [each for each in self.logs if (each.numbers["leader"], each.name("topic")) == place]
            others = [each for each in others if each.name("host") != one.name("host")]
            share = Share(*(sum(other.numbers[name] for other in others) for name in ("late_ns", "writes")))
            if share.is_less(Share(one.numbers["late_ns"], one.numbers["writes"])):
                found.append(one)
        return found

    def own_topics(self) -> list[Observation]:
        """The late writes that are their topic's own: the other topics at the same leader, which need at least the same
        nodes, are written without being late."""
        found = []
        for one in self.late:
            others = self.other_topics(one)
            share = Share(*(sum(other.numbers[name] for other in others) for name in ("late_ns", "writes")))
            if share.is_less(Share(one.numbers["late_ns"], one.numbers["writes"])):
                found.append(one)
        return found


def troubles(observed: Observed, cluster: Cluster) -> Iterator[Trouble]:
    """Late writes by cluster and time."""
    late = sorted(observed.of("late_writes"), key=lambda one: (cluster.of(one.numbers["leader"]), one.first_ns))
    while late:
        together = [late.pop(0)]
        cluster_id, last_ns = cluster.of(together[0].numbers["leader"]), together[0].last_ns
        while (
            late and cluster.of(late[0].numbers["leader"]) == cluster_id and late[0].first_ns <= last_ns + TOGETHER_NS
        ):
            together.append(late.pop(0))
            last_ns = max(last_ns, together[-1].last_ns)
        others = [one for one in observed.of("prompt_writes") if cluster.of(one.numbers["leader"]) == cluster_id]
        yield Trouble(cluster, cluster_id, together, others)


def nodes_of(one: Observation) -> set[int]:
    return {node for node, _ in one.numbers["nodes"]}
