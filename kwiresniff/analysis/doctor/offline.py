"""Partitions without a leader: nobody can write to them or read them until one of their replicas is back.

Metadata names the replicas that are offline (KIP-112). Where the broker that has them is there all the same, it is the
log directory that failed.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, as_clients, found
from kwiresniff.analysis.doctor.wording import duration, listed, span
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import METADATA
from kwiresniff.model import Exchange
from kwiresniff.results.findings import Finding, scope_of

#: A partition has no leader for a moment when its topic is new or its leader has left.
OFFLINE_NS = 5_000_000_000
#: Partitions that are remembered.
MAX_PARTITIONS = 5_000

_Partition = tuple[str, str, int]


class _Offline:
    """A partition since when it has no leader, and the replicas that are offline while their brokers are there."""

    __slots__ = ("case", "over", "present", "replicas")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.replicas: tuple[int, ...] = ()
        self.present: tuple[int, ...] = ()
        self.over = False


class OfflineRule(Rule):
    """Partitions that have no leader for long."""

    codes = ("partition_offline",)
    apis = frozenset({METADATA})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._offline: dict[_Partition, _Offline] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Metadata says which partitions have a leader."""
        body = exchange.response.body if exchange.response is not None else None
        if not body:
            return
        cluster, (packet, ns) = self.context.cluster.of(exchange.connection.broker), place_of(exchange)
        brokers = {one.get("node_id", -1) for one in body.get("brokers") or ()}
        for topic in body.get("topics") or ():
            for one in topic.get("partitions") or ():
                leads = one.get("leader_id", 0) >= 0
                if "leader_id" not in one or (leads and not self._offline):
                    continue
                key = cluster, clipped(self.context.topic_of(topic)), one.get("partition_index", -1)
                known = self._offline.get(key)
                if leads:
                    if known is not None:
                        self._ends(key, known)
                    continue
                if known is None:
                    size = 8 * ENTRY_BYTES + text_bytes(key[1])
                    if len(self._offline) >= MAX_PARTITIONS or not self.context.budget.admit(size):
                        continue
                    known = self._offline[key] = _Offline(self.context.case())
                if not known.over:
                    known.case.add(packet, ns)
                    known.case.note("clients", [client_of(exchange)])
                    known.replicas = tuple(one.get("replica_nodes") or ())
                    known.present = tuple(node for node in one.get("offline_replicas") or () if node in brokers)

    def _ends(self, key: _Partition, known: _Offline) -> None:
        """Notes that a partition has a leader again; one that was without for a moment is forgotten."""
        if not known.over and known.case.last_ns - known.case.first_ns < OFFLINE_NS:
            del self._offline[key]
        known.over = True

    def findings(self) -> Iterator[Finding]:
        """By why they have none: partitions whose replicas are in a failed log directory, and others."""
        groups: dict[tuple[str, tuple[int, ...], bool], list[_Partition]] = {}
        for key, known in self._offline.items():
            if known.case.last_ns - known.case.first_ns >= OFFLINE_NS:
                groups.setdefault((key[0], known.present or known.replicas, bool(known.present)), []).append(key)
        for (cluster, nodes, failed), keys in groups.items():
            yield self._finding(cluster, nodes, failed, keys)

    def _finding(self, cluster_id: str, nodes: tuple[int, ...], failed: bool, keys: list[_Partition]) -> Finding:
        case = self.context.case()
        for key in keys:
            case.merge(self._offline[key].case)
        texts = listed([self.context.cluster.node_text(cluster_id, node) for node in nodes])
        partitions = [f"{topic}-{partition}" for _, topic, partition in keys]
        if failed:
            why = f"their replicas on {texts} are offline though the broker is there: a log directory of it failed"
        elif nodes:
            why = f"their replicas are on {texts}, and none of those can lead"
        else:
            why = "which replicas they have is not told"
        clients, topics = case.noted("clients"), sorted({topic for _, topic, _ in keys})
        lasted = duration(case.last_ns - case.first_ns)
        return found(
            "partition_offline",
            "error",
            listed(partitions),
            f"no leader{span(case.first_ns, case.last_ns)}, for {lasted} at least: {why}; nobody can write to them or "
            "read them",
            _FAILED if failed else _AWAY,
            case,
            {"partitions": partitions[:100], "nodes": list(nodes), "log_directory_failed": failed, "clients": clients},
            clients=clients,
            topics=topics,
            explains={
                "leader_not_available": as_clients(*clients),
                "kafka_storage_error": as_clients(*clients),
                "not_leader_or_follower": as_clients(*clients),
                "stale_metadata": as_clients(*clients),
                "coordinator_not_available": as_clients(*clients),
                "not_coordinator": as_clients(*clients),
                "request_timed_out": as_clients(*clients),
                "leader_change": scope_of("topic", topics),
                "metadata_storm": as_clients(*clients),
            },
            rank=INCIDENT,
        )


_FAILED = (
    "Look at the broker's log for the log directory that it took offline (an I/O error, a full or unmounted disk), "
    "repair it and restart the broker. With one replica the records are on that disk only."
)
_AWAY = (
    "Bring the brokers that have its replicas back, the one that was last in the ISR first. An unclean election "
    "(kafka-leader-election --election-type unclean) gives up what only the others have."
)
