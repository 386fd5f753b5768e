"""Brokers that are slower than the others, slow replication between two, and topics that are slow to write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation, symptoms, told
from kwiresniff.analysis.doctor.observation import HARMLESS, Observation, Observed
from kwiresniff.analysis.doctor.troubles.late_writes import ENOUGH, MOST, Share, Trouble, nodes_of, troubles
from kwiresniff.analysis.doctor.wording import clock, counted, duration, listed, span
from kwiresniff.results.findings import scope_of

#: Fewer late writes with one node, or two, may be a coincidence.
MANY: Final = 15
#: How much more time is lost at one leader than at others, which wait for it as a replica.
MORE_OFTEN: Final = 3
#: A silence of a smaller part of the time of trouble is one of its signs.
SMALL_PART: Final = 4


class SlowBroker(Cause):
    """`slow_broker` (warning): one broker of a cluster is slower than the others: writes that it takes part in, as
    leader or as replica in sync, are late, and the others are not.

    Seen must be late writes (`late_writes`), nine tenths of whose time was lost with that node, and 20 writes without
    it that lost a tenth as much or less; or late writes that no other node takes part in; or late writes to several
    topics that it leads, and 20 that it copies from other leaders and that lost as little, or, with the doubt, a third
    as much where it copies all of these. Not seen may be that another
    topic at the same leader, stored by the same nodes, is not late, nor that other hosts are not late at all, nor that
    the node closed its connections: then it went. A network that is slow between it and all others looks the same.
    """

    codes = ("slow_broker",)
    explains = ("late_writes", "broker_silent")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        for trouble in troubles(observed, self.context.cluster):
            if len({*trouble.own_topics(), *trouble.own_hosts()}) == len(trouble.late):
                continue
            nodes = trouble.nodes()
            suspects = [node for node in nodes if self._fits(trouble, node, nodes)]
            for node in suspects:
                mine, others = trouble.with_node(node)
                yield self._explanation(trouble, node, trouble.late, mine, others, suspects, observed)
            for node in sorted(set(nodes).difference(suspects)):
                late, mine, others, copied = trouble.led_by(node)
                if len({one.name("topic") for one in late}) < 2:
                    continue
                is_most = mine.late_ns >= MOST * (mine.late_ns + others.late_ns)
                if is_most and others.is_less(mine) and copied.is_less(mine):
                    yield self._explanation(trouble, node, late, mine, others, [node], observed)
                elif (
                    sum(one.count for one in late) >= MANY
                    and others.count == copied.count >= ENOUGH
                    and mine.late_ns * others.count >= MORE_OFTEN * others.late_ns * mine.count
                ):
                    yield self._explanation(trouble, node, trouble.late, mine, others, nodes, observed)

    def _fits(self, trouble: Trouble, node: int, nodes: list[int]) -> bool:
        mine, others = trouble.with_node(node)
        return mine.late_ns >= MOST * (mine.late_ns + others.late_ns) and (nodes == [node] or others.is_less(mine))

    def _explanation(
        self,
        trouble: Trouble,
        node: int,
        late: Sequence[Observation],
        mine: Share,
        others: Share,
        suspects: list[int],
        observed: Observed,
    ) -> Explanation:
        cluster = self.context.cluster
        name, address = cluster.node_text(trouble.cluster_id, node), cluster.address(trouble.cluster_id, node)
        led = list(dict.fromkeys(one.name("topic") for one in late if one.numbers["leader"] == address))
        stored = list(dict.fromkeys(one.name("topic") for one in late if one.numbers["leader"] != address))
        longest_ns = max(one.numbers["longest_ns"] for one in late)
        first_ns, last_ns = min(one.first_ns for one in late), max(one.last_ns for one in late)
        roles = [f"it leads {listed(led)}"] if led else []
        roles += [f"has a replica of {listed(stored)}"] if stored else []
        without = [one for one in trouble.logs if not one.numbers["late"] and node not in nodes_of(one)]
        topics = listed([one.name("topic") for one in without])
        beside = f"; {topics}, written without it, {'is' if len(without) == 1 else 'are'} not late" if without else ""
        brokers = list(dict.fromkeys([*([address] if address else []), *[one.numbers["leader"] for one in late]]))
        contradicts = [] if others.count else ["no write without it is in the capture, to compare it with"]
        went = [ns for ns in cluster.closings(address) if first_ns <= ns <= last_ns]
        if went:
            contradicts.append(f"it closed connections at {clock(went[0])}: it was stopped, or killed")
        clients = sorted({client for one in late for client in one.named("client")})
        doubt = ""
        if len(suspects) > 1 and late is trouble.late and others.count == trouble.led_by(node)[3].count:
            doubt = "what others lead is late, too, but not as much: it has replicas of all of that, and may be why"
        elif len(suspects) > 1:
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
            explains=symptoms(
                "broker", brokers, "slow", "replica_wait", "unanswered", "request_timed_out", "request_timeout"
            )
            | symptoms("client", clients, "own_queue"),
        )

    def _silences(self, observed: Observed, address: str, first_ns: int, last_ns: int) -> list[Observation]:
        """Silences of the broker that are a small part of the same time."""
        silences = [one for one in observed.of("broker_silent") if one.numbers["silent"] == [address]]
        short = [one for one in silences if one.numbers["lasted_ns"] <= (last_ns - first_ns) // SMALL_PART]
        return [one for one in short if first_ns <= one.last_ns and one.first_ns <= last_ns]

    def _remedy(self, trouble: Trouble, name: str, address: str, node: int, led: list[str], stored: list[str]) -> str:
        follows = [one for one in trouble.logs if one.numbers["leader"] != address and node in nodes_of(one)]
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


class SlowReplication(Cause):
    """`slow_replication` (warning): writes that one of two nodes leads and the other copies are late, whichever of the
    two leads, and those that either takes part in without the other are not: it is the way between these two, and
    neither's disk.

    Seen must be 15 late writes, in both directions, with nine tenths of the time that all late writes took, and of
    either node 20 writes without the other that lost a tenth as much or less.
    """

    codes = ("slow_replication",)
    explains = ("late_writes",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        for trouble in troubles(observed, self.context.cluster):
            for node, other in combinations(trouble.nodes(), 2):
                if self._fits(trouble, node, other):
                    yield self._explanation(trouble, node, other)

    def _fits(self, trouble: Trouble, node: int, other: int) -> bool:
        there, back = trouble.between(node, other)
        if not (there.late_ns and back.late_ns) or there.is_less(back) or back.is_less(there):
            return False
        mine = Share(there.late_ns + back.late_ns, there.count + back.count)
        all_ns, count = sum(one.numbers["late_ns"] for one in trouble.late), sum(one.count for one in trouble.late)
        if count < MANY or mine.late_ns < MOST * all_ns:
            return False
        return all((trouble.with_node(one)[0] - mine).is_less(mine) for one in (node, other))

    def _explanation(self, trouble: Trouble, node: int, other: int) -> Explanation:
        cluster, late = self.context.cluster, trouble.late
        names = [cluster.node_text(trouble.cluster_id, one) for one in (node, other)]
        mine = trouble.between(node, other)
        longest_ns = max(one.numbers["longest_ns"] for one in late)
        when = span(min(one.first_ns for one in late), max(one.last_ns for one in late))
        brokers = list(dict.fromkeys(one.numbers["leader"] for one in late))
        clients = sorted({client for one in late for client in one.named("client")})
        prompt = [one for one in trouble.logs if not one.numbers["late"]]
        return Explanation(
            code="slow_replication",
            subject=listed(names),
            title=f"copy each other's partitions slowly{when}: {counted(sum(one.count for one in late), 'write')} that "
            f"one leads and the other copies took up to {duration(longest_ns)}; with other nodes both are prompt",
            remedy="Look at the network between these two brokers (interfaces, links, overlays, ip -s link; TCP "
            "retransmissions of their replica fetchers, nstat). Neither's disk is slow: what others lead they copy in "
            "time. RemoteTimeMs of Produce is what the leaders wait.",
            explained=tuple(late),
            supports=tuple(one.sentence for one in (*late, *prompt[:3])),
            numbers={
                "nodes": [node, other],
                "late": sum(one.count for one in late),
                "writes": sum(one.count for one in mine),
                "late_ns": sum(one.late_ns for one in mine),
                "longest_ns": longest_ns,
                "clients": clients,
            },
            severity="warning",
            scope=frozenset(f"node:{trouble.cluster_id}/{one}" for one in (node, other)),
            explains=symptoms("broker", brokers, "slow", "replica_wait", "unanswered", "request_timed_out")
            | symptoms("client", clients, "own_queue"),
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
        all_troubles = list(troubles(observed, self.context.cluster))
        recompressed = {one.name("topic"): one for one in observed.of("recompressed")}
        own = [(late, trouble) for trouble in all_troubles for late in trouble.own_topics()]
        for one in recompressed.values():
            yield self._explanation(one, [pair for trouble in all_troubles for pair in self._late(one, trouble, own)])
        for late, trouble in own:
            if late.name("topic") not in recompressed and late.harm != HARMLESS:
                yield self._slow_topic(late, trouble)

    def _late(
        self, one: Observation, trouble: Trouble, own: list[tuple[Observation, Trouble]]
    ) -> list[tuple[Observation, Trouble]]:
        """The late writes to a recompressed topic, where others are not late or no other topic is."""
        mine = [late for late in trouble.late if late.name("topic") == one.name("topic")]
        others = {late.numbers["leader"] for late in trouble.late if late not in mine}
        alone = [late for late in mine if late.numbers["leader"] not in others]
        return [(late, trouble) for late in mine if (late, trouble) in own or late in alone]

    def _slow_topic(self, late: Observation, trouble: Trouble) -> Explanation:
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
            explains=symptoms("broker", [leader], "slow", "replica_wait"),
        )

    def _explanation(self, one: Observation, own: list[tuple[Observation, Trouble]]) -> Explanation:
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
            numbers={"produced": produced, "fetched": fetched, "leaders": brokers, "longest_ns": longest_ns},
            explains={"slow": scope_of("broker", brokers)} if late else {},
        )
