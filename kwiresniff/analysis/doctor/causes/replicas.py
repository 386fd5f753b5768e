"""Replicas and brokers that are gone, and what they leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import broker_says, counted, duration, listed, span
from kwiresniff.results.findings import scope_of

#: A follower may be behind for so long before it leaves the ISR (``replica.lag.time.max.ms``); a restart takes less.
LAG_NS: Final = 30_000_000_000
#: What clients meet at partitions without a leader.
_WITHOUT_LEADER: Final = (
    "leader_not_available", "kafka_storage_error", "not_leader_or_follower", "stale_metadata",
    "coordinator_not_available", "not_coordinator", "request_timed_out", "metadata_storm",
)  # fmt: skip


class UnderReplicated(Cause):
    """`under_replicated` (warning; info where it began in the capture and was seen for less than 30 s, the default of
    `replica.lag.time.max.ms`): partitions have fewer replicas in sync than replicas; with the nodes that are missing,
    whether these are in the list of brokers, how many replicas are left at least, and who leads.

    Seen must be Metadata or DescribeTopicPartitions; what is said is what the last answer on each partition said. A
    reassignment adds replicas that are not in sync yet and looks the same while it goes on: then the missing node is in
    sync elsewhere, which is told as a doubt.
    """

    codes = ("under_replicated",)
    explains = ("under_replicated",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        cluster, numbers = self.context.cluster, one.numbers
        cluster_id = one.name("node").rpartition("/")[0]
        missing = [node for node, _ in numbers["missing"]]
        absent, elsewhere, least = numbers["absent"], numbers["in_other"], numbers["least"]
        texts = {node: cluster.node_text(cluster_id, node) for node in missing}
        parts = []
        if absent:
            names = listed([texts[node] for node in absent])
            parts.append(f"{names} {_is(absent)} missing from the ISR and from the list of brokers")
        lagging = [node for node in missing if node not in absent]
        if lagging:
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
        return self.told(
            one,
            f"{numbers['short']} of {counted(numbers['of'], 'partition')} {be} under-replicated"
            f"{span(one.first_ns, one.last_ns)}: {'; '.join(parts)}",
            _FAILED if failed else _ABSENT if absent else _LAGGING,
            subject=listed([texts[node] for node in missing]),
            supports=(one.text,),
            doubt=_REASSIGNED if elsewhere and not absent and not failed else "",
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
            explains={"broker_unreachable": scope_of("broker", addresses)},
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
        clusters: dict[str, list[Observation]] = {}
        for one in observed.of("leads_none"):
            clusters.setdefault(one.name("node").rpartition("/")[0], []).append(one)
        for cluster_id, idle in clusters.items():
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
            supports=tuple(one.text for one in idle),
            numbers={"nodes": nodes, "leads": leads, "preferred": preferred},
            severity="info" if all(one.numbers["by_chance"] for one in idle) else "warning",
        )


class OfflinePartition(Cause):
    """`partition_offline` (error): partitions have had no leader for 5 s or more; with the brokers that have their
    replicas, and whether a log directory failed.

    Seen must be Metadata answers 5 s apart. A replica that is offline while its broker is in the list is in a failed
    log directory (KIP-112). A new topic, or one whose leader has just left, has none for a moment and is not this.
    """

    codes = ("partition_offline",)
    explains = ("no_leader",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        numbers, clients = one.numbers, one.named("client")
        nodes, failed = numbers["nodes"], numbers["log_directory_failed"]
        cluster_id = one.name("node").rpartition("/")[0]
        texts = listed([self.context.cluster.node_text(cluster_id, node) for node in nodes])
        if failed:
            why = f"their replicas on {texts} are offline though the broker is there: a log directory of it failed"
        elif nodes:
            why = f"their replicas are on {texts}, and none of those can lead"
        else:
            why = "which replicas they have is not told"
        return self.told(
            one,
            f"no leader{span(one.first_ns, one.last_ns)}, for {duration(numbers['lasted_ns'])} at least: {why}; "
            "nobody can write to them or read them",
            _FAILED if failed else _AWAY,
            subject=listed(numbers["partitions"]),
            supports=(one.text,),
            numbers={
                "partitions": numbers["partitions"],
                "nodes": nodes,
                "log_directory_failed": failed,
                "clients": clients,
            },
            explains={
                **dict.fromkeys(_WITHOUT_LEADER, scope_of("client", clients)),
                "leader_change": scope_of("topic", one.named("topic")),
                "under_replicated": scope_of("topic", one.named("topic")),
            },
        )


class NotEnoughReplicas(Cause):
    """`not_enough_replicas` (error): writes are refused because fewer replicas are in sync than
    ``min.insync.replicas``; with the partitions, and the broker that left: by Metadata, or because it alone of all
    replicas does not answer any more.

    Seen must be NOT_ENOUGH_REPLICAS or NOT_ENOUGH_REPLICAS_AFTER_APPEND. The answer names no replica; where neither
    Metadata nor silence shows which one left, none is named.
    """

    codes = ("not_enough_replicas",)
    explains = ("writes_refused",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        cluster, numbers = self.context.cluster, one.numbers
        topic, cluster_id, missing = numbers["topic"], numbers["cluster"], numbers["missing"]
        what = listed(numbers["partitions"]) or topic
        if missing:
            texts = listed([cluster.node_text(cluster_id, node) for node in missing])
            left = f"; {texts} {'left' if numbers['certain'] else 'must have left: the other replicas still answer'}"
        else:
            left = "; which replica left is not in the capture"
        addresses = [address for node in missing if (address := cluster.address(cluster_id, node))]
        clients = one.named("client")
        # Until the replica has left the ISR, writes wait for it instead of being refused, wherever they go.
        everywhere = [*one.named("broker"), *cluster.addresses(cluster_id)]
        return self.told(
            one,
            f"{listed(numbers['errors'])}: writes to {what} are refused{span(one.first_ns, one.last_ns)}, too "
            f"few replicas are in sync{left}",
            "Find the replicas that fell out of the ISR (disk, network, a broker that is down) before lowering "
            "min.insync.replicas.",
            subject=f"topic {topic}",
            supports=(one.text,),
            numbers={
                "error": numbers["errors"][0] if numbers["errors"] else "",
                "concerns": [*numbers["apis"], *numbers["partitions"]],
                "missing": missing,
                "missing_addresses": addresses,
                "clients": clients,
                "error_messages": numbers["messages"],
            },
            details=tuple(broker_says(numbers["messages"])),
            scope=scope_of("left", addresses),
            explains={
                **dict.fromkeys(("unanswered", "metadata_storm"), scope_of("client", clients)),
                **dict.fromkeys(
                    ("slow", "request_timed_out", "replica_wait", "slow_broker"), scope_of("broker", everywhere)
                ),
                **dict.fromkeys(
                    ("broker_unreachable", "closed_by_broker", "broker_stalled"), scope_of("broker", addresses)
                ),
                **dict.fromkeys(("leader_change", "under_replicated"), scope_of("left", addresses)),
            },
        )


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
_ELECT: Final = (
    "Have the preferred leaders elected (kafka-leader-election --election-type preferred --all-topic-partitions), and "
    "see whether auto.leader.rebalance.enable is off; soon after a restart of these brokers it is ordinary."
)
_ASSIGN: Final = (
    "These brokers are the preferred leader of none of the partitions: have other replicas stand first in the "
    "assignment (kafka-reassign-partitions), then have the preferred leaders elected."
)
_FAILED: Final = (
    "Look at the broker's log for the log directory that it took offline (an I/O error, a full or unmounted disk), "
    "repair it and restart the broker. With one replica the records are on that disk only."
)
_AWAY: Final = (
    "Bring the brokers that have its replicas back, the one that was last in the ISR first. An unclean election "
    "(kafka-leader-election --election-type unclean) gives up what only the others have."
)
