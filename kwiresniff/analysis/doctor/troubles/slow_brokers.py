"""Brokers that are slower than the others, and topics that cost their leader more than others do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kwiresniff.analysis.doctor.cause import Cause, Explanation, told
from kwiresniff.analysis.doctor.cluster import Cluster
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import clock, counted, duration, listed, span
from kwiresniff.results.findings import scope_of

#: Writes that must be seen of what is compared with.
ENOUGH: Final = 20
#: How much more time than others writes lose with a node before it is that node, and which part of the time that all
#: late writes took they have to take.
TIMES_AS_MUCH: Final = 10
MOST: Final = 0.9
#: A silence that is this part of the time of trouble, or less, is one of its signs.
SMALL_PART: Final = 4
#: Late writes that overlap or follow each other so soon are one time of trouble.
TOGETHER_NS: Final = 10_000_000_000


class _Share(NamedTuple):
    """Of some writes how many there were, and how long those took that were late, in nanoseconds."""

    late_ns: int
    count: int  # type: ignore[assignment]  # not the method of tuples

    def is_less(self, other: _Share) -> bool:
        """Whether they are enough, and lost so little, that the others were late for a reason of their own."""
        return self.count >= ENOUGH and self.late_ns * other.count * TIMES_AS_MUCH <= other.late_ns * self.count


class _Trouble:
    """Late writes of a cluster in one time, and all other logs that were written."""

    def __init__(self, cluster_id: str, late: Sequence[Observation], others: Sequence[Observation]) -> None:
        self.cluster_id = cluster_id
        self.late = late
        self.logs = [*late, *others]

    def nodes(self) -> list[int]:
        """The nodes that took part in late writes."""
        return list(dict.fromkeys(node for one in self.late for node, _ in one.numbers["late_nodes"]))

    def with_node(self, node: int) -> tuple[_Share, _Share]:
        """The writes that a node took part in, and the others."""
        late_ns = sum(ns for one in self.logs for other, ns in one.numbers["late_nodes"] if other == node)
        count = sum(count for one in self.logs for other, count in one.numbers["nodes"] if other == node)
        all_ns, everything = (sum(one.numbers[name] for one in self.logs) for name in ("late_ns", "writes"))
        return _Share(late_ns, count), _Share(all_ns - late_ns, everything - count)

    def other_topics(self, one: Observation) -> list[Observation]:
        """The other topics at the leader of a log whose writes need at least the same nodes."""
        nodes = _nodes_of(one)
        mine = [other for other in self.logs if other.numbers["leader"] == one.numbers["leader"] and other is not one]
        return [other for other in mine if nodes <= _nodes_of(other) and other.name("topic") != one.name("topic")]

    def own_topics(self) -> list[Observation]:
        """The late writes that are their topic's own: the other topics at the same leader, which need at least the same
        nodes, are written without being late."""
        found = []
        for one in self.late:
            others = self.other_topics(one)
            share = _Share(*(sum(other.numbers[name] for other in others) for name in ("late_ns", "writes")))
            if share.is_less(_Share(one.numbers["late_ns"], one.numbers["writes"])):
                found.append(one)
        return found


def _troubles(observed: Observed, cluster: Cluster) -> Iterator[_Trouble]:
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
        yield _Trouble(cluster_id, together, others)


class SlowBroker(Cause):
    """`slow_broker` (warning): one broker of a cluster is slower than the others: writes that it takes part in, as
    leader or as replica in sync, are late, and the others are not.

    Seen must be late writes (`late_writes`), nine tenths of whose time was lost with that node, and 20 writes without
    it that lost a tenth as much or less; or late writes that no other node takes part in. Not seen may be that another
    topic at the same leader, stored by the same nodes, is not late, nor that the node closed its connections: then it
    went. A path between brokers that is slow looks the same at the clients.
    """

    codes = ("slow_broker",)
    explains = ("late_writes", "broker_silent")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By cluster and time, each node that took part in late writes."""
        for trouble in _troubles(observed, self.context.cluster):
            if len(trouble.own_topics()) == len(trouble.late):
                continue
            nodes = trouble.nodes()
            suspects = [node for node in nodes if self._fits(trouble, node, nodes)]
            for node in suspects:
                yield self._explanation(trouble, node, suspects, observed)

    def _fits(self, trouble: _Trouble, node: int, nodes: list[int]) -> bool:
        mine, others = trouble.with_node(node)
        return mine.late_ns >= MOST * (mine.late_ns + others.late_ns) and (nodes == [node] or others.is_less(mine))

    def _explanation(self, trouble: _Trouble, node: int, suspects: list[int], observed: Observed) -> Explanation:
        cluster, late = self.context.cluster, trouble.late
        name, address = cluster.node_text(trouble.cluster_id, node), cluster.address(trouble.cluster_id, node)
        mine, others = trouble.with_node(node)
        led = list(dict.fromkeys(one.name("topic") for one in late if one.numbers["leader"] == address))
        stored = list(dict.fromkeys(one.name("topic") for one in late if one.numbers["leader"] != address))
        longest_ns = max(one.numbers["longest_ns"] for one in late)
        first_ns, last_ns = min(one.first_ns for one in late), max(one.last_ns for one in late)
        roles = [f"it leads {listed(led)}"] if led else []
        roles += [f"has a replica of {listed(stored)}"] if stored else []
        without = [one for one in trouble.logs if not one.numbers["late"] and node not in _nodes_of(one)]
        topics = listed([one.name("topic") for one in without])
        beside = f"; {topics}, written without it, {'is' if len(without) == 1 else 'are'} not late" if without else ""
        brokers = list(dict.fromkeys([*([address] if address else []), *[one.numbers["leader"] for one in late]]))
        contradicts = [] if others.count else ["no write without it is in the capture, to compare it with"]
        went = [ns for ns in cluster.closings(address) if first_ns <= ns <= last_ns]
        if went:
            contradicts.append(f"it closed connections at {clock(went[0])}: it was stopped, or killed")
        clients = sorted({client for one in late for client in one.named("client")})
        doubt = ""
        if len(suspects) > 1:
            also = [cluster.node_text(trouble.cluster_id, one) for one in suspects if one != node]
            doubt = f"{listed(also)} took part in the same writes, so it may be that one as well"
        return Explanation(
            code="slow_broker",
            subject=name,
            title=f"is slow{span(first_ns, last_ns)}: {counted(sum(one.count for one in late), 'write')} took up to "
            f"{duration(longest_ns)}; {' and '.join(roles)}{beside}",
            remedy=self._remedy(trouble, name, address, node, led, stored),
            explained=(*late, *self._silences(observed, address, first_ns, last_ns)),
            supports=tuple(one.sentence for one in without[:3]),
            contradicts=tuple(contradicts),
            doubt=doubt,
            numbers={
                "node": node,
                "address": address or None,
                "leads": led,
                "follows": stored,
                "late": sum(one.count for one in late),
                "writes": mine.count,
                "late_ns": mine.late_ns,
                "writes_without": others.count,
                "late_without_ns": others.late_ns,
                "longest_ns": longest_ns,
                "clients": clients,
            },
            stands=not went,
            scope=frozenset([f"node:{trouble.cluster_id}/{node}", *([f"broker:{address}"] if address else [])]),
            explains={
                **dict.fromkeys(
                    ("slow", "replica_wait", "unanswered", "request_timed_out", "request_timeout"),
                    scope_of("broker", brokers),
                ),
                "own_queue": scope_of("client", clients),
            },
        )

    def _silences(self, observed: Observed, address: str, first_ns: int, last_ns: int) -> list[Observation]:
        """Silences of the broker that are a small part of the same time: it did not stand still."""
        silences = [one for one in observed.of("broker_silent") if one.numbers["silent"] == [address]]
        least_ns = (last_ns - first_ns) // SMALL_PART
        silences = [one for one in silences if one.numbers["lasted_ns"] <= least_ns]
        return [one for one in silences if first_ns <= one.last_ns and one.first_ns <= last_ns]

    def _remedy(self, trouble: _Trouble, name: str, address: str, node: int, led: list[str], stored: list[str]) -> str:
        follows = [one for one in trouble.logs if one.numbers["leader"] != address and node in _nodes_of(one)]
        if led and not stored and follows:
            return (
                f"As a replica of what others lead {name} keeps up, so its disk takes what it gets: look at what it "
                "does as a leader (its request handlers' idle time, CPU, pauses), and at its network."
            )
        where = "its LocalTimeMs of Produce is the time" if led else "the leaders' RemoteTimeMs of Produce is the time"
        both = ", and the leaders that it follows have it as RemoteTimeMs" if led and stored else ""
        return (
            f"Look at {name} first: its disk (iostat, log.flush.interval.messages), its pauses of garbage collection, "
            f"CPU and network; {where}{both}. Until it is mended, move leaders and replicas away from it."
        )


class CostlyTopic(Cause):
    """`slow_topic` (warning): the writes to a topic are late, and those to other topics at the same leader, which need
    at least the same nodes, are not. Seen must be 20 writes to the others, that lost a tenth as much time or less.

    `recompression` (warning where writes are late by it, else info): the leader of a topic decompresses each batch and
    compresses it again, because the topic's ``compression.type`` is not what its producers use. Seen must be another
    codec of batches as they were fetched than as they were produced, at the same offsets; it is why writes are late
    where those to no other topic at that leader are. Batches that are converted to an older format for old consumers
    are not compared.
    """

    codes = ("recompression", "slow_topic")
    explains = ("recompressed", "late_writes")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        troubles = list(_troubles(observed, self.context.cluster))
        recompressed = {one.name("topic"): one for one in observed.of("recompressed")}
        own = [(late, trouble) for trouble in troubles for late in trouble.own_topics()]
        for one in recompressed.values():
            yield self._explanation(one, [pair for trouble in troubles for pair in self._late(one, trouble, own)])
        for late, trouble in own:
            if late.name("topic") not in recompressed:
                yield self._slow_topic(late, trouble)

    def _late(
        self, one: Observation, trouble: _Trouble, own: list[tuple[Observation, _Trouble]]
    ) -> list[tuple[Observation, _Trouble]]:
        """The late writes to a recompressed topic: those that are its own, or where no other topic is late there."""
        mine = [late for late in trouble.late if late.name("topic") == one.name("topic")]
        others = {late.numbers["leader"] for late in trouble.late if late not in mine}
        alone = [late for late in mine if late.numbers["leader"] not in others]
        return [(late, trouble) for late in mine if (late, trouble) in own or late in alone]

    def _slow_topic(self, late: Observation, trouble: _Trouble) -> Explanation:
        topic, leader, others = late.name("topic"), late.numbers["leader"], trouble.other_topics(late)
        longest_ns, broker = late.numbers["longest_ns"], self.context.cluster.broker_text(leader)
        names = listed([other.name("topic") for other in others])
        return told(
            late,
            f"{late.count} of {late.numbers['writes']} writes took {broker} up to {duration(longest_ns)}"
            f"{span(late.first_ns, late.last_ns)}, while {names} there is not late",
            f"It is not the broker but what {topic} asks of it: compare its settings with those of {names} "
            "(kafka-configs --describe: compression.type, flush.messages, message.timestamp.type), the log directory "
            "that it lies in, and the size of its batches.",
            code="slow_topic",
            subject=f"topic {topic}",
            supports=tuple(other.sentence for other in others),
            doubt="" if late.numbers["nodes"] and late.numbers["acks"] else "its replicas are not in the capture",
            numbers={
                "leader": leader,
                "late": late.count,
                "writes": late.numbers["writes"],
                "longest_ns": longest_ns,
                "other_topics": [other.name("topic") for other in others],
            },
            explains=dict.fromkeys(("slow", "replica_wait"), scope_of("broker", [leader])),
        )

    def _explanation(self, one: Observation, own: list[tuple[Observation, _Trouble]]) -> Explanation:
        topic, produced, fetched = one.name("topic"), one.numbers["produced"], one.numbers["fetched"]
        leaders = [self.context.cluster.broker_text(leader) for leader in one.numbers["leaders"]]
        codec = fetched[0] if fetched[0] != "none" else "uncompressed"
        title = (
            f"{listed(leaders)} compresses each batch again: producers send {listed(produced)}, consumers get "
            f"{listed(fetched)}"
        )
        late = [each for each, _ in own]
        others = {other.name("topic"): other for each, trouble in own for other in trouble.other_topics(each)}
        longest_ns = max((each.numbers["longest_ns"] for each in late), default=None)
        if longest_ns is not None:
            count = f"{sum(each.count for each in late)} of {late[0].numbers['writes']} writes"
            title += f"; {count} took it up to {duration(longest_ns)}"
            title += f", while {listed(list(others))} there is not late" if others else ""
        brokers = one.numbers["leaders"]
        return told(
            one,
            title,
            f"Set compression.type=producer for {topic}, or let its producers use what the topic has "
            f"(compression.type={codec}): then the broker stores batches as they come. A high level of compression "
            "(compression.zstd.level, compression.gzip.level) costs the most.",
            code="recompression",
            subject=f"topic {topic}",
            explained=(one, *late),
            supports=tuple(other.sentence for other in others.values()),
            contradicts=() if others or not late else ("no other topic was written there, to compare it with",),
            numbers={
                "produced": produced,
                "fetched": fetched,
                "leaders": brokers,
                "longest_ns": longest_ns,
            },
            explains={"slow": scope_of("broker", brokers)} if late else {},
        )


def _nodes_of(one: Observation) -> set[int]:
    return {node for node, _ in one.numbers["nodes"]}
