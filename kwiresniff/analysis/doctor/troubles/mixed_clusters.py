"""Clients that are in one cluster at one start and in another at the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_text
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import listed, span
from kwiresniff.model import Connection

#: Clients, and connections of each, that are remembered.
MAX_CLIENTS = 2_000
MAX_STAYS = 200
#: Stays by turns: two are a move from one cluster to another.
FEW_TURNS: Final = 3
#: The connections of a client that ends may last for so long into the next start.
OVERLAP_NS: Final = 1_000_000_000


class MixedClusters(Observer):
    """``clusters_by_turns``: a client has connections in one cluster, then in another, then in the first again, and
    never in both at a time.

    Counted are the stays in one cluster. Numbers: ``clusters``, the ids, and ``stays`` (sentences). Clusters of which
    an address became the other are left out.
    """

    kinds = ("clusters_by_turns",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        #: Connections by client: begin, end, broker and first packet of each.
        self._stays: dict[str, list[tuple[int, int, str, int]]] = {}

    def connection_anywhere(self, connection: Connection) -> None:
        if connection.client_id is None or not connection.exchanges:
            return
        client, stays = client_text(connection.client_id, connection.client), self._stays
        if client not in stays:
            if not self.context.has_room(stays, MAX_CLIENTS, client):
                return
            stays[client] = []
        if self.context.has_room(stays[client], MAX_STAYS, entries=2):
            end_ns = connection.closed_ns or connection.last_ns
            stays[client].append((connection.first_ns, end_ns, connection.broker, connection.first_packet))

    def observations(self) -> Iterator[Observation]:
        clusters = self.context.clusters
        changed = {name for change in clusters.changes for name in (change.before, change.after)}
        for client, connections in self._stays.items():
            turns: list[tuple[str, int, int, str]] = []
            case = self.context.case()
            for first_ns, end_ns, broker, packet in sorted(connections):
                name = clusters.id_of(clusters.node_at(broker))
                if not name or name in changed:
                    continue
                if turns and turns[-1][0] == name:
                    turns[-1] = (name, turns[-1][1], max(turns[-1][2], end_ns), turns[-1][3])
                elif turns and first_ns < turns[-1][2] - OVERLAP_NS:
                    break  # it is in both
                else:
                    turns.append((name, first_ns, end_ns, broker))
                    case.add(packet, first_ns, until_ns=end_ns)
                    case.note("brokers", [broker])
            else:
                if len(turns) >= FEW_TURNS:
                    stays = [f"{name} ({broker}){span(first, end)}" for name, first, end, broker in turns]
                    numbers = {"clusters": list(dict.fromkeys(turn[0] for turn in turns)), "stays": stays[:100]}
                    yield observation_of("clusters_by_turns", case, {f"client:{client}"}, numbers)


@cause("clusters_mixed", explains=("clusters_by_turns",))
def mixed_bootstrap(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`clusters_mixed` (warning): a client is in one cluster at one start and in another at the next, and in the first
    again: its `bootstrap.servers`, or the name in there, leads to brokers of several clusters. What it writes lies in
    either, and nothing fails. Seen must be three stays, whose connections do not overlap, and different cluster ids. A
    program that is started for one cluster after the other on purpose looks the same.
    """
    clusters, stays = one.numbers["clusters"], one.numbers["stays"]
    return told(
        one,
        f"is in {len(clusters)} clusters by turns: {listed(stays, 4)}",
        "Compare its bootstrap.servers, and what the names in there resolve to, with the addresses of these clusters: "
        "all have to be of one. What it wrote to the other cluster has to be copied, and its groups there be deleted.",
        numbers={"clusters": clusters, "stays": stays},
        doubt="It may be started for one cluster after the other on purpose.",
        severity="warning",
    )
