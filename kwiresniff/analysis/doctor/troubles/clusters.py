"""Addresses that became another cluster, and consumers that stand still since then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, is_replica
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import clock, listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import CONSUMER_GROUP_HEARTBEAT, FETCH, HEARTBEAT, METADATA
from kwiresniff.identity.clusters import ClusterChange
from kwiresniff.model import Exchange

#: Clients of an address, in each of its clusters, whose last exchanges are remembered.
MAX_VISITS: Final = 5_000
#: A consumer that sends no fetch for so long stands still: ten times ``fetch.max.wait.ms``.
STILL_NS: Final = 5_000_000_000
#: Consumers that stand still that a finding names.
MAX_LISTED: Final = 6


class ClusterChanges(Observer):
    """``other_cluster``: an address answered with another cluster id from some time on.

    Numbers: ``before`` and ``after``, the cluster ids; ``standing_still``: consumers that fetched before and ask the
    new cluster without a fetch, with the time of their last one. The harm is the time between the answers of both
    clusters, or for which a consumer stands still.
    """

    kinds: ClassVar[tuple[str, ...]] = ("other_cluster",)
    apis: ClassVar[frozenset[int] | None] = frozenset({FETCH, HEARTBEAT, METADATA, CONSUMER_GROUP_HEARTBEAT})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._visits = context.visits

    def exchange(self, exchange: Exchange) -> None:
        if is_replica(exchange) or exchange.response is None:
            return
        client = client_of(exchange)
        key = self.context.clusters.of(exchange), exchange.connection.broker, client
        visit = self._visits.get(key)
        if visit is None:
            if not self.context.has_room(self._visits, MAX_VISITS, client, entries=3):
                return
            visit = self._visits[key] = [0, 0]
        ns = place_of(exchange)[1]
        visit[0] = max(visit[0], ns)
        if exchange.api_key == FETCH:
            visit[1] = max(visit[1], ns)

    def observations(self) -> Iterator[Observation]:
        """By pair of clusters; of several examinations the first gives those of all clusters."""
        if not self.context.is_first:
            return
        pairs: dict[tuple[str, str], list[ClusterChange]] = {}
        for change in self.context.clusters.changes:
            pairs.setdefault((change.before, change.after), []).append(change)
        for (before, after), changes in pairs.items():
            yield self._observation(before, after, changes)

    def _observation(self, before: str, after: str, changes: list[ClusterChange]) -> Observation:
        clusters = self.context.clusters
        addresses = [one.address for one in changes]
        told_ns, ns = max(one.before_ns for one in changes), min(one.ns for one in changes)
        old: dict[str, int] = {}
        new: dict[str, list[int]] = {}
        for (node, address, client), (last_ns, fetched_ns) in self._visits.items():
            if address in addresses:
                if clusters.id_of(node) == before:
                    old[client] = max(old.get(client, 0), fetched_ns)
                elif clusters.id_of(node) == after:
                    seen = new.setdefault(client, [0, 0])
                    seen[:] = max(seen[0], last_ns), max(seen[1], fetched_ns)
        still = {
            client: fetched_ns
            for client, fetched_ns in old.items()
            if fetched_ns and client in new and not new[client][1] and new[client][0] - ns >= STILL_NS
        }
        last_ns = max([ns, *(new[client][0] for client in still)])
        stand = "".join(f"; {client} fetched until {clock(since_ns)} only" for client, since_ns in still.items())
        return Observation(
            kind="other_cluster",
            about=frozenset(
                [f"broker:{address}" for address in addresses] + [f"client:{client}" for client in {*old, *new}]
            ),
            text=f"{listed(addresses)} told the cluster id {before} until {clock(told_ns)}, {after} from {clock(ns)} on"
            f"{stand}",
            first_ns=told_ns,
            last_ns=last_ns,
            count=len(changes),
            harm=Harm(seconds_down=(last_ns - told_ns) / 1e9),
            evidence=tuple((one.packet, one.ns) for one in changes[:5]),
            numbers={"before": before, "after": after, "addresses": addresses, "standing_still": still},
        )


@cause("cluster_changed", explains=("other_cluster",))
def cluster_changed(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`cluster_changed` (error): the server at an address became another cluster. Seen must be two cluster ids in
    Metadata or DescribeCluster answers from one address, one after the other. An address that leads to several clusters
    by turns, as a gateway's does, looks the same at first. What goes wrong meanwhile with its clients and in its topics
    and groups is its symptom.
    """
    addresses, still = one.named("broker"), one.numbers["standing_still"]
    before, after = one.numbers["before"], one.numbers["after"]
    when = clock(one.evidence[0][1])
    details = ["the topics, committed offsets and producer ids of the old cluster are unknown in the new one"]
    details += [
        f"{client} stands still: it last fetched at {clock(ns)}, and asks the new cluster for other things"
        for client, ns in list(still.items())[:MAX_LISTED]
    ]
    return told(
        one,
        f"became another cluster at {when}: its id was {before} and is {after}",
        "Find out who answers at this address now: a name or a virtual address that was moved, a "
        "container of another environment, or a broker whose data directory is gone (cluster.id in its "
        "meta.properties, and in the log of its start). If that was meant, make topics and ACLs anew, set the "
        "offsets of groups with kafka-consumer-groups --reset-offsets, and restart clients that keep what "
        "they knew of the old cluster"
        + (f": {listed(still)} at once." if still else "; else let clients reach the old one again."),
        subject=listed(addresses),
        details=tuple(details),
        numbers={"clients": one.named("client"), **one.numbers},
    )
