"""Replicas that are missing from the ISR, and brokers that lead nothing, as Metadata says (KIP-112)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.bodies import response_body
from kwiresniff.analysis.doctor.cause import Cause, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed, grouped, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.replica_table import Replicas
from kwiresniff.analysis.doctor.troubles.leaderless import LOG_DIRECTORY_FAILED, MAX_NAMED
from kwiresniff.analysis.doctor.wording import counted, listed, span
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import DESCRIBE_TOPIC_PARTITIONS, METADATA
from kwiresniff.model import Exchange
from kwiresniff.results.findings import scope_of

#: A broker leads none of so many partitions that it would lead if leaders were spread.
FAIR: Final = 3
#: A broker leads none of so many partitions whose preferred leader it is.
PREFERRED: Final = 2
#: A follower leaves the ISR after this (``replica.lag.time.max.ms``); a restart takes less.
LAG_NS: Final = 30_000_000_000


class MissingReplicas(Observer):
    """`under_replicated`: partitions with fewer replicas in sync than replicas, in the last answer about each.
    `leads_none`: a broker leads no partition, though it would lead 3 or more if leaders were spread over the replicas
    in sync, or is the preferred leader (the first replica) of 2 or more.

    By cluster; the latter by node. Numbers of the former: ``partitions`` (names, up to 100), ``short``, ``of`` (all
    that were described), ``missing`` (pairs of a node and the number of partitions in whose ISR it is missing),
    ``absent`` (nodes of these that are not in the list of brokers), ``in_other`` (those in sync elsewhere),
    ``was_whole`` (all had all replicas in sync before), ``offline`` (nodes in the list of brokers with offline
    replicas), ``least`` (the fewest replicas in sync), ``leads`` (pairs of a node and how many of these it leads). Of
    the latter: ``partitions`` (in which it is in sync), ``preferred``, ``leads``, ``by_chance`` (it would lead fewer
    than 3).
    """

    kinds = ("under_replicated", "leads_none")
    apis = frozenset({METADATA, DESCRIBE_TOPIC_PARTITIONS})

    def exchange(self, exchange: Exchange) -> None:
        """Learns brokers, replicas and in-sync replicas of an answer that is complete."""
        body = response_body(exchange)
        if not body or exchange.problems:
            return
        cluster_id = self.context.cluster.of(exchange.connection.broker)
        self.context.replicas.learn(cluster_id, body, self.context.topic_of, place_of(exchange))

    def observations(self) -> Iterator[Observation]:
        clusters: dict[str, list[tuple[str, int, Replicas]]] = {}
        for cluster_id, topic, index, known in self.context.replicas:
            clusters.setdefault(cluster_id, []).append((topic, index, known))
        for cluster_id, partitions in clusters.items():
            short = [one for one in partitions if one[2].short_since is not None]
            if short:
                yield self._observation(cluster_id, short, partitions)
            yield from self._without_leadership(cluster_id, [one for _, _, one in partitions if one.leader >= 0])

    def _observation(
        self, cluster_id: str, short: list[tuple[str, int, Replicas]], partitions: list[tuple[str, int, Replicas]]
    ) -> Observation:
        cluster, case = self.context.cluster, self.context.case()
        missing: dict[int, int] = {}
        leads: dict[int, int] = {}
        for topic, _, known in short:
            assert known.short_since is not None
            case.add(*known.short_since, until_ns=known.ns)
            case.note("topics", [topic])
            for node in known.behind:
                missing[node] = missing.get(node, 0) + 1
            if known.leader >= 0:
                leads[known.leader] = leads.get(known.leader, 0) + 1
        in_sync = {node for _, _, known in partitions for node in known.in_sync}
        present, _ = self.context.replicas.brokers(cluster_id)
        absent = [node for node in missing if present and node not in present]
        names = [f"{topic}-{index}" for topic, index, _ in short[:MAX_NAMED]]
        where = [f"{cluster.node_text(cluster_id, node)} in {count}" for node, count in missing.items()]
        text = (
            f"{len(short)} of {counted(len(partitions), 'partition')} that were described had replicas that are not in "
            f"sync{span(case.first_ns, case.last_ns)}: {listed(where)}"
        )
        if absent:
            text += f"; the list of brokers had no {listed([f'node {node}' for node in absent])}"
        numbers = {
            "partitions": names,
            "short": len(short),
            "of": len(partitions),
            "missing": [list(one) for one in missing.items()],
            "absent": absent,
            "in_other": [node for node in missing if node in in_sync],
            "was_whole": all(known.was_whole for _, _, known in short),
            "offline": sorted({node for _, _, known in short for node in known.offline if node in present}),
            "least": min(len(known.in_sync) for _, _, known in short),
            "leads": [list(one) for one in leads.items()],
        }
        about = [f"node:{cluster_id}/{node}" for node in missing]
        return observation_of("under_replicated", case, about, numbers, text=text)

    def _without_leadership(self, cluster_id: str, partitions: list[Replicas]) -> Iterator[Observation]:
        leads: dict[int, int] = {}
        for one in partitions:
            leads[one.leader] = leads.get(one.leader, 0) + 1
        present, _ = self.context.replicas.brokers(cluster_id)
        by_node: dict[int, list[Replicas]] = {}
        for one in partitions:
            for node in present.intersection(one.in_sync):
                by_node.setdefault(node, []).append(one)
        for node, mine in sorted(by_node.items()):
            preferred = sum(one.all[0] == node for one in mine)
            fair = sum(1 / len(one.in_sync) for one in mine)
            if node in leads or (fair < FAIR and preferred < PREFERRED):
                continue
            numbers = {
                "partitions": len(mine),
                "preferred": preferred,
                "leads": [list(one) for one in leads.items()],
                "by_chance": fair < FAIR,
            }
            case = self.context.case()
            for place in sorted({one.place for one in mine}, key=lambda each: each[1]):
                case.add(*place)
            yield observation_of("leads_none", case, [f"node:{cluster_id}/{node}"], numbers)


@cause("under_replicated", explains=("under_replicated",))
def under_replicated(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`under_replicated` (warning; info where it began in the capture and was seen for less than 30 s, the default of
    `replica.lag.time.max.ms`): partitions have fewer replicas in sync than replicas; with the nodes that are missing,
    whether these are in the list of brokers, how many replicas are left at least, and who leads.

    Seen must be Metadata or DescribeTopicPartitions; what is said is what the last answer on each partition said. A
    reassignment adds replicas that are not in sync yet and looks the same while it goes on: then the missing node is in
    sync elsewhere, which is told as a doubt. A node in the list of brokers that is missing where others lead, while
    these are missing where it leads, is cut off from them: it is the way between the brokers, and none of them failed.
    """
    cluster, numbers = context.cluster, one.numbers
    cluster_id = one.name("node").rpartition("/")[0]
    missing = [node for node, _ in numbers["missing"]]
    absent, elsewhere, least = numbers["absent"], numbers["in_other"], numbers["least"]
    texts = {node: cluster.node_text(cluster_id, node) for node in missing}
    parts = []
    if absent:
        names = listed([texts[node] for node in absent])
        parts.append(f"{names} {_is(absent)} missing from the ISR and from the list of brokers")
    lagging, apart = [node for node in missing if node not in absent], context.replicas.cut_off(cluster_id)
    if apart:
        parts.append(do_not_copy([texts.get(node, f"node {node}") for node in apart]))
    elif lagging:
        names = listed([texts[node] for node in lagging])
        parts.append(f"{names} {_is(lagging)} missing from the ISR, and in the list of brokers")
    grave = not numbers["was_whole"] or one.last_ns - one.first_ns >= LAG_NS
    failed = [texts[node] for node in lagging if grave and node in numbers["offline"]]
    if failed:
        parts.append(f"replicas of {listed(failed)} are offline though the broker is there: a log directory failed")
    left = f"{counted(least, 'replica')} in sync {'are' if least != 1 else 'is'} left"
    risk = _LAST if least == 1 else f"with min.insync.replicas={least}, one more loss refuses writes with acks=all"
    most = max(numbers["leads"], key=lambda pair: pair[1], default=None)
    details = [f"{left} at least: {risk}"] if least else []
    if most is not None and numbers["short"] > 1:
        details.append(f"node {most[0]} leads {most[1]} of these {numbers['short']} partitions")
    addresses = [address for node in absent if (address := cluster.address(cluster_id, node))]
    be = "is" if numbers["short"] == 1 else "are"
    return told(
        one,
        f"{numbers['short']} of {counted(numbers['of'], 'partition')} {be} under-replicated"
        f"{span(one.first_ns, one.last_ns)}: {'; '.join(parts)}",
        LOG_DIRECTORY_FAILED if failed else _ABSENT if absent else CUT_OFF if apart else _LAGGING,
        subject=listed([texts[node] for node in missing if node in apart or not apart]),
        doubt=_REASSIGNED if elsewhere and not absent and not failed and not apart else "",
        numbers={
            "partitions": numbers["partitions"],
            "under_replicated": numbers["short"],
            "of": numbers["of"],
            "missing": missing,
            "not_in_broker_list": absent,
            "least_in_sync": least,
            "leads": numbers["leads"],
        },
        details=tuple(details),
        severity="warning" if grave else "info",
        scope=scope_of("left", addresses),
        explains=symptoms("broker", addresses, "broker_unreachable"),
    )


class UnevenLeaders(Cause):
    """`leader_imbalance` (warning; info of fewer partitions): brokers that are there and in sync lead no partition, so
    that the others do all the work of leaders.

    Seen must be Metadata of so many partitions that each of them would lead 3 or more if leaders were spread over the
    replicas in sync, or of 2 or more of which it is the preferred leader, the first of the replicas. Soon after a
    restart it is ordinary: the preferred leaders are elected again within 5 minutes
    (``leader.imbalance.check.interval.seconds``), unless that is switched off.
    """

    codes = ("leader_imbalance",)
    explains = ("leads_none",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        for cluster_id, idle in grouped(
            observed.of("leads_none"), lambda one: one.name("node").rpartition("/")[0]
        ).items():
            yield self._explanation(cluster_id, idle)

    def _explanation(self, cluster_id: str, idle: list[Observation]) -> Explanation:
        cluster = self.context.cluster
        nodes = [int(one.name("node").rpartition("/")[2]) for one in idle]
        leads = idle[0].numbers["leads"]
        preferred = sum(one.numbers["preferred"] for one in idle)
        texts = listed([cluster.node_text(cluster_id, node) for node in nodes])
        others = [f"{cluster.node_text(cluster_id, node)} leads {count}" for node, count in leads]
        return Explanation(
            code="leader_imbalance",
            subject=texts,
            title=f"{'leads' if len(nodes) == 1 else 'lead'} no partition, though in sync in "
            f"{max(one.numbers['partitions'] for one in idle)}: {listed(others)}",
            remedy=_ELECT if preferred else _ASSIGN,
            explained=tuple(idle),
            numbers={"nodes": nodes, "leads": leads, "preferred": preferred},
            severity="info" if all(one.numbers["by_chance"] for one in idle) else "warning",
        )


def do_not_copy(nodes: list[str]) -> str:
    """What is said of nodes that are cut off from other brokers."""
    whom = listed(nodes) if len(nodes) > 1 else f"{nodes[0]} and the others"
    return f"{whom} do not copy from each other, though all are in the list of brokers"


def _is(nodes: list[int]) -> str:
    return "is" if len(nodes) == 1 else "are"


_LAST: Final = "if that one goes as well, they have no leader"

_REASSIGNED: Final = (
    "a reassignment that goes on looks the same: it adds replicas that are not in sync yet (kafka-reassign-partitions "
    "--list)"
)

_ABSENT: Final = (
    "Start the broker again, or see its log for why it is gone; it fetches what it has missed and joins the ISR. Then "
    "a preferred election (kafka-leader-election --election-type preferred, auto.leader.rebalance.enable) spreads the "
    "leaders again."
)

_LAGGING: Final = (
    "The broker is there and does not keep up: see its replica fetchers in its log, its disk, its network and the "
    "quota of replication (kafka-topics --describe --under-replicated-partitions; replica.lag.time.max.ms)."
)

CUT_OFF: Final = (
    "The brokers run, and clients may reach all of them: see the way between these brokers on the listener that they "
    "copy by (inter.broker.listener.name): firewall, security group, route, MTU, its TLS or SASL; and the replica "
    "fetchers in their logs."
)

_ELECT: Final = (
    "Have the preferred leaders elected (kafka-leader-election --election-type preferred --all-topic-partitions), and "
    "see whether auto.leader.rebalance.enable is off; soon after a restart of these brokers it is ordinary."
)

_ASSIGN: Final = (
    "These brokers are the preferred leader of none of the partitions: have other replicas stand first in the "
    "assignment (kafka-reassign-partitions), then have the preferred leaders elected."
)
