"""Clients that dial a KRaft controller: its listener speaks Kafka and has nothing for them.

A controller offers neither Metadata nor Produce (KIP-590, KIP-919), so a client that wants brokers goes no further than
ApiVersions, and says why in its own log only.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import INCIDENT
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, client_text
from kwiresniff.analysis.doctor.network import is_node
from kwiresniff.analysis.doctor.rule import Rule, as_clients, found
from kwiresniff.analysis.doctor.wording import times
from kwiresniff.base.api_keys import API_VERSIONS, METADATA, PRODUCE
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.findings import Finding

#: Connections to controllers that are remembered until they end.
MAX_CONNECTIONS = 5_000
#: What nodes call themselves that ask controllers for the metadata log, before their node id.
_RAFT = "raft-client-"


class ControllerListenerRule(Rule):
    """Clients that ask a controller for its versions and then leave.

    `controller_dialled` (error): a client dials a KRaft controller instead of a broker: neither Metadata nor Produce is
    offered there, and it goes no further than ApiVersions.
    """

    codes = ("controller_dialled",)
    apis = frozenset({API_VERSIONS})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._open: set[int] = set()
        self._working: set[str] = set()

    def exchange(self, exchange: Exchange) -> None:
        """Notes connections to a server that offers no Metadata and no Produce."""
        offered = self.context.cluster.offer_in(exchange.response)
        controller = offered and offered.keys().isdisjoint({METADATA, PRODUCE})
        node = is_node(client_of(exchange)) or (exchange.client_id or "").startswith(_RAFT)
        if controller and len(self._open) < MAX_CONNECTIONS and not node:
            self._open.add(exchange.connection.id)

    def connection(self, connection: Connection) -> None:
        """One that has ended after ApiVersions, as that of a client does which wants a broker."""
        if connection.id not in self._open:
            return
        self._open.discard(connection.id)
        client = client_text(connection.client_id, connection.client)
        if sum(connection.exchanges.values()) > 1 and len(self._working) < MAX_CONNECTIONS:
            self._working.add(client)
        elif connection.closed_by == "client":
            self._cases.case(client, connection.broker).add(
                connection.first_packet, connection.first_ns, until_ns=connection.last_ns
            )

    def findings(self) -> Iterator[Finding]:
        """By client and controller, without those that work with controllers."""
        for client, server, case in self._cases:
            if client in self._working:
                continue
            yield found(
                "controller_dialled",
                "error",
                client,
                f"dials {server}, the listener of a controller: that offers no Metadata and no Produce, and the client "
                f"goes no further than ApiVersions, {times(case.count)}",
                "Let bootstrap.servers name brokers, by a port of listeners that is not in controller.listener.names. "
                "Admin clients that mean the controllers name them by bootstrap.controllers.",
                case,
                {"address": server},
                clients=[client],
                brokers=[server],
                explains={"connection_churn": as_clients(client)},
                rank=INCIDENT,
            )
