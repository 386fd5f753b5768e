"""Writes refused because too few replicas are in sync, and which broker is missing.

The answer names neither. Metadata tells a partition's replicas; those whose brokers are gone from it, or do not answer
while the others do, are the ones that left.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_meanings import MEANINGS
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, as_brokers, as_clients, found
from kwiresniff.analysis.doctor.wording import broker_says, listed, span
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import METADATA
from kwiresniff.model import Exchange
from kwiresniff.results.findings import Finding, scope_of

CODES = frozenset({"NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"})
#: So long before the first refusal requests may have waited for a replica that had left.
BEFORE_NS = 60_000_000_000

#: An answer so shortly before the first refusal says that a broker was there.
SHORTLY_NS = 1_000_000_000


class ReplicaRule(Rule):
    """NOT_ENOUGH_REPLICAS, by topic."""

    codes = ("not_enough_replicas",)
    apis = frozenset({METADATA})
    judges = CODES

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._nodes: dict[str, tuple[frozenset[int], int]] = {}
        self._cases = context.tally()

    def exchange(self, exchange: Exchange) -> None:
        """Learns replicas, in-sync replicas and brokers from a Metadata response."""
        body = exchange.response.body if exchange.response is not None else None
        if not body:
            return
        cluster, ns = self.context.cluster.of(exchange.connection.broker), place_of(exchange)[1]
        if len(self._nodes) < 100:
            self._nodes[cluster] = frozenset(one.get("node_id", -1) for one in body.get("brokers") or ()), ns
        self.context.replicas.learn(cluster, body, self.context.topic_of, ns)

    def failure(self, exchange: Exchange) -> None:
        """Counts a write that is refused."""
        if not any(name in CODES for _, _, name, _ in exchange.errors):
            return
        packet, ns = place_of(exchange)
        cluster = self.context.cluster.of(exchange.connection.broker)
        counted: set[str] = set()
        for place in error_places(exchange, self.context):
            if place.name not in CODES:
                continue
            case = self._cases.case(place.topic, cluster)
            if place.topic not in counted:
                case.add(packet, ns)
                counted.add(place.topic)
            case.note("errors", [place.name])
            case.note("apis", [exchange.api])
            case.note("topics", [place.topic] if place.topic else [])
            case.note("concerns", [place.what] if place.what else [])
            case.note("partitions", [str(place.partition)])
            case.note("clients", [client_of(exchange)])
            case.note("brokers", [exchange.connection.broker])
            case.note("messages", [place.message] if place.message else [])

    def findings(self) -> Iterator[Finding]:
        """By topic: the partitions, and the brokers that are missing."""
        for topic, cluster_id, case in self._cases:
            cluster = self.context.cluster
            missing, certain = self._missing(cluster_id, topic, case.noted("partitions"), case.first_ns)
            texts = [cluster.node_text(cluster_id, node) for node in missing]
            what = listed(case.noted("concerns")) or topic
            if missing:
                left = f"; {listed(texts)} {'left' if certain else 'must have left: the other replicas still answer'}"
            else:
                left = "; which replica left is not in the capture"
            errors = case.noted("errors")
            addresses = [address for node in missing if (address := cluster.address(cluster_id, node))]
            clients = case.noted("clients")
            # Until the replica has left the ISR, writes wait for it instead of being refused, wherever they go.
            everywhere = [*case.noted("brokers"), *cluster.addresses(cluster_id)]
            yield found(
                "not_enough_replicas",
                "error",
                f"topic {topic}",
                f"{listed(errors)}: writes to {what} are refused{span(case.first_ns, case.last_ns)}, too few "
                f"replicas are in sync{left}",
                MEANINGS["NOT_ENOUGH_REPLICAS"].remedy,
                case,
                {
                    "error": errors[0] if errors else "",
                    "concerns": [*case.noted("apis"), *case.noted("concerns")],
                    "missing": missing,
                    "missing_addresses": addresses,
                    "clients": clients,
                    "error_messages": case.noted("messages"),
                },
                details=broker_says(case.noted("messages")),
                scope=scope_of("left", addresses),
                explains={
                    "unanswered": as_clients(*clients),
                    "slow": as_brokers(*everywhere),
                    "request_timed_out": as_brokers(*everywhere),
                    "replica_wait": as_brokers(*everywhere),
                    "metadata_storm": as_clients(*clients),
                    "broker_unreachable": as_brokers(*addresses),
                    "closed_by_broker": as_brokers(*addresses),
                    "leader_change": scope_of("left", addresses),
                    "broker_stalled": as_brokers(*addresses),
                },
                rank=INCIDENT,
            )

    def _missing(self, cluster_id: str, topic: str, partitions: list[str], since_ns: int) -> tuple[list[int], bool]:
        """The nodes that hold replicas and are gone, and whether that is certain or found by elimination."""
        cluster = self.context.cluster
        nodes, nodes_ns = self._nodes.get(cluster_id, (frozenset(), 0))
        gone: dict[int, None] = {}
        silent: dict[int, None] = {}
        answering = 0
        for partition in partitions:
            known = self.context.replicas.of(cluster_id, topic, int(partition))
            if known is None:
                continue
            if known.ns >= since_ns - BEFORE_NS and known.in_sync and set(known.all) - set(known.in_sync):
                gone |= dict.fromkeys(node for node in known.all if node not in known.in_sync)
            if nodes_ns >= since_ns:
                gone |= dict.fromkeys(node for node in known.all if node not in nodes)
            for node in known.all:
                address = cluster.address(cluster_id, node)
                if cluster.last_answer_ns.get(address, 0) >= since_ns - SHORTLY_NS:
                    answering += 1
                else:
                    silent[node] = None
        if gone:
            return list(gone), True
        return (list(silent), False) if answering and silent else ([], False)
