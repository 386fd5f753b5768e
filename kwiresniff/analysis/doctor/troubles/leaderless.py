"""Partitions without a leader, and the brokers that have their replicas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kwiresniff.analysis.doctor.bodies import response_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import duration, listed, span
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import METADATA
from kwiresniff.model import Exchange

#: Partitions without a leader that are remembered.
MAX_LEADERLESS: Final = 5_000
#: A new partition, or one whose leader has just left, has no leader for less.
LEADERLESS_NS: Final = 5_000_000_000
#: Partitions that an observation names.
MAX_NAMED: Final = 100

_Partition = tuple[str, str, int]
#: Findings of clients that follow from partitions without a leader.
_WITHOUT_LEADER: Final = (
    "leader_not_available", "kafka_storage_error", "not_leader_or_follower", "stale_metadata",
    "coordinator_not_available", "not_coordinator", "request_timed_out", "metadata_storm",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class _Leaderless:
    """A partition without a leader, its replicas, and those that are offline while their brokers are present."""

    case: Case
    replicas: tuple[int, ...] = ()
    present: tuple[int, ...] = ()
    over: bool = False


class LeaderlessPartitions(Observer):
    """`no_leader`: partitions that had no leader for 5 s or more, as Metadata said.

    By the nodes that have their replicas. Numbers: ``partitions`` (up to 100), ``nodes``, ``log_directory_failed`` (the
    replicas are offline while their brokers are there), ``lasted_ns``.
    """

    kinds = ("no_leader",)
    apis = frozenset({METADATA})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._leaderless: Subjects[_Partition, _Leaderless] = context.subjects(
            lambda: _Leaderless(context.case()), 8, MAX_LEADERLESS
        )

    def exchange(self, exchange: Exchange) -> None:
        body = response_body(exchange)
        cluster = self.context.cluster.of(exchange.connection.broker)
        brokers = {one.get("node_id", -1) for one in body.get("brokers") or ()}
        for name, one in self.context.members(body):
            key, leads = (cluster, name, one.get("partition_index", -1)), one.get("leader_id", 0) >= 0
            known = self._leaderless.get(key) if leads else self._leaderless.of(key)
            if known is None:
                continue
            if leads:  # again; a short time without a leader is forgotten
                if not known.over and known.case.last_ns - known.case.first_ns < LEADERLESS_NS:
                    del self._leaderless[key]
                known.over = True
            elif not known.over:
                known.case.add(*place_of(exchange))
                known.case.note("clients", [client_of(exchange)])
                known.replicas = tuple(one.get("replica_nodes") or ())
                known.present = tuple(node for node in one.get("offline_replicas") or () if node in brokers)

    def observations(self) -> Iterator[Observation]:
        groups: dict[tuple[str, tuple[int, ...], bool], list[_Partition]] = {}
        for key, known in self._leaderless.items():
            if known.case.last_ns - known.case.first_ns >= LEADERLESS_NS:
                groups.setdefault((key[0], known.present or known.replicas, bool(known.present)), []).append(key)
        for (cluster_id, nodes, failed), keys in groups.items():
            case = self.context.case(self._leaderless[key].case for key in keys)
            case.note("topics", dict.fromkeys(topic for _, topic, _ in keys))
            lasted_ns = case.last_ns - case.first_ns
            numbers = {
                "partitions": [f"{topic}-{index}" for _, topic, index in keys][:MAX_NAMED],
                "nodes": list(nodes),
                "log_directory_failed": failed,
                "lasted_ns": lasted_ns,
            }
            about = [f"node:{cluster_id}/{node}" for node in nodes]
            harm = Harm(seconds_down=lasted_ns / 1e9)
            yield observation_of("no_leader", case, about, numbers, harm)


@cause("partition_offline", explains=("no_leader",))
def offline_partition(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`partition_offline` (error): partitions have had no leader for 5 s or more; with the brokers that have their
    replicas, and whether a log directory failed.

    Seen must be Metadata answers 5 s apart. A replica that is offline while its broker is in the list is in a failed
    log directory (KIP-112). A new topic, or one whose leader has just left, has none for a moment and is not this.
    """
    numbers, clients = one.numbers, one.named("client")
    nodes, failed = numbers["nodes"], numbers["log_directory_failed"]
    cluster_id = one.name("node").rpartition("/")[0]
    texts = listed([context.cluster.node_text(cluster_id, node) for node in nodes])
    if failed:
        why = f"their replicas on {texts} are offline though the broker is there: a log directory of it failed"
    elif len(nodes) == 1:
        why = f"their only replica is on {texts}, which is gone"
    elif nodes:
        why = f"their replicas are on {texts}, and none of those can lead"
    else:
        why = "which replicas they have is not told"
    return told(
        one,
        f"no leader{span(one.first_ns, one.last_ns)}, for {duration(numbers['lasted_ns'])} at least: {why}; "
        "nobody can write to them or read them",
        LOG_DIRECTORY_FAILED if failed else _ALONE if len(nodes) == 1 else _AWAY,
        subject=listed(numbers["partitions"]),
        numbers={
            "partitions": numbers["partitions"],
            "nodes": nodes,
            "log_directory_failed": failed,
            "clients": clients,
        },
        explains=symptoms("client", clients, *_WITHOUT_LEADER)
        | symptoms("topic", one.named("topic"), "leader_change", "under_replicated"),
    )


LOG_DIRECTORY_FAILED: Final = (
    "Look at the broker's log for the log directory that it took offline (an I/O error, a full or unmounted disk), "
    "repair it and restart the broker. With one replica the records are on that disk only."
)

_ALONE: Final = (
    "Bring that broker back: nobody else has the records. Each restart of it stops these topics: give them three "
    "replicas (kafka-reassign-partitions; default.replication.factor for new ones)."
)

_AWAY: Final = (
    "Bring the brokers that have its replicas back, the one that was last in the ISR first. An unclean election "
    "(kafka-leader-election --election-type unclean) gives up what only the others have."
)
