"""Writes that a leader refuses because too few replicas are in sync."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.troubles.missing_replicas import CUT_OFF, do_not_copy
from kwiresniff.analysis.doctor.wording import broker_says, listed, span
from kwiresniff.analysis.places import place_of
from kwiresniff.model import Exchange
from kwiresniff.results.findings import scope_of

#: Errors by which a write is refused because of the ISR.
NOT_ENOUGH: Final = frozenset({"NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"})
#: Requests may have waited for a missing replica for so long before the first refusal.
BEFORE_NS: Final = 60_000_000_000
#: An answer so shortly before the first refusal shows that a broker was there.
SHORTLY_NS: Final = 1_000_000_000


class RefusedWrites(Observer):
    """`writes_refused`: writes that a leader refused because too few replicas were in sync.

    By topic. Notes: ``errors``, ``apis``, ``concerns`` (partitions), ``messages`` of the broker. Numbers: ``topic``,
    ``cluster``, ``missing`` (nodes with a replica that were gone) and ``certain`` (Metadata said so, or they alone of
    all replicas did not answer any more).
    """

    kinds = ("writes_refused",)
    judges = NOT_ENOUGH

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()

    def failure(self, exchange: Exchange) -> None:
        cluster_id = self.context.cluster.of(exchange.connection.broker)
        places = error_places(exchange, self.context, NOT_ENOUGH)
        for topic in dict.fromkeys(place.topic for place in places):
            case = self._cases.case(topic, cluster_id)
            case.add(*place_of(exchange))
            case.note("apis", [exchange.api])
            case.note("clients", [client_of(exchange)])
            case.note("brokers", [exchange.connection.broker])
        for place in places:
            case = self._cases.case(place.topic, cluster_id)
            place.note(case)
            case.note("indexes", [str(place.partition)])

    def observations(self) -> Iterator[Observation]:
        for topic, cluster_id, case in self._cases:
            missing, certain = self._missing(cluster_id, topic, case.noted("indexes"), case.first_ns)
            numbers = {"topic": topic, "cluster": cluster_id, "missing": missing, "certain": certain}
            about = [f"node:{cluster_id}/{node}" for node in missing]
            yield observation_of("writes_refused", case, about, numbers, Harm(requests_failed=case.count))

    def _missing(self, cluster_id: str, topic: str, indexes: list[str], since_ns: int) -> tuple[list[int], bool]:
        """The nodes with replicas that are gone, and whether that is certain or found by elimination."""
        cluster = self.context.cluster
        nodes, nodes_ns = self.context.replicas.brokers(cluster_id)
        gone: dict[int, None] = {}
        silent: dict[int, None] = {}
        answering = 0
        for index in indexes:
            known = self.context.replicas.of(cluster_id, topic, int(index))
            if known is None:
                continue
            if known.ns >= since_ns - BEFORE_NS and known.in_sync and known.short_since is not None:
                gone |= dict.fromkeys(known.behind)
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


@cause("not_enough_replicas", explains=("writes_refused",))
def not_enough_replicas(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`not_enough_replicas` (error): writes are refused because fewer replicas are in sync than
    ``min.insync.replicas``; with the partitions, and the broker that left: by Metadata, or because it alone of all
    replicas does not answer any more.

    Seen must be NOT_ENOUGH_REPLICAS or NOT_ENOUGH_REPLICAS_AFTER_APPEND. The answer names no replica; where neither
    Metadata nor silence shows which one left, none is named, nor where brokers are there and do not copy from each
    other, of which `under_replicated` tells.
    """
    cluster, numbers = context.cluster, one.numbers
    topic, cluster_id, missing = numbers["topic"], numbers["cluster"], numbers["missing"]
    what, errors, messages = listed(one.noted("concerns")) or topic, one.noted("errors"), one.noted("messages")
    apart = context.replicas.cut_off(cluster_id)
    if apart:
        left = f"; {do_not_copy([cluster.node_text(cluster_id, node) for node in apart])}"
    elif missing:
        texts = listed([cluster.node_text(cluster_id, node) for node in missing])
        left = f"; {texts} {'left' if numbers['certain'] else 'must have left: the other replicas still answer'}"
    else:
        left = "; which replica left is not in the capture"
    addresses = [address for node in missing if (address := cluster.address(cluster_id, node))]
    clients = one.named("client")
    # Until the replica has left the ISR, writes wait for it instead of being refused, at every broker.
    everywhere = [*one.named("broker"), *cluster.addresses(cluster_id)]
    return told(
        one,
        f"{listed(errors)}: writes to {what} are refused{span(one.first_ns, one.last_ns)}, too "
        f"few replicas are in sync{left}",
        CUT_OFF
        if apart
        else "Find the replicas that fell out of the ISR (disk, network, a broker that is down) before lowering "
        "min.insync.replicas.",
        subject=f"topic {topic}",
        numbers={
            "error": errors[0] if errors else "",
            "concerns": [*one.noted("apis"), *one.noted("concerns")],
            "missing": missing,
            "missing_addresses": addresses,
            "clients": clients,
            "error_messages": messages,
        },
        details=tuple(broker_says(messages)),
        scope=scope_of("left", addresses),
        explains=symptoms("client", clients, "unanswered", "metadata_storm")
        | symptoms("broker", everywhere, "slow", "request_timed_out", "replica_wait", "slow_broker")
        | symptoms("broker", addresses, "broker_unreachable", "closed_by_broker", "broker_stalled")
        | symptoms("left", addresses, "leader_change", "under_replicated")
        | symptoms("node", [f"{cluster_id}/{node}" for node in apart], "under_replicated"),
    )
