"""Clients that speak to what is no broker of Kafka, and brokers that are sent something else than Kafka.

A KRaft controller offers neither Metadata nor Produce (KIP-590, KIP-919), so a client that wants brokers goes no
further than ApiVersions, and says why in its own log only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import ERROR, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, client_text, clipped, is_node
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.base.api_keys import API_VERSIONS, METADATA, PRODUCE
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection, Exchange, Problem
from kwiresniff.results.findings import scope_of

TLS = "tls"
#: Connections to controllers that are remembered until they end.
MAX_CONNECTIONS = 5_000
#: What nodes call themselves that ask controllers for the metadata log, before their node id.
_RAFT = "raft-client-"
#: Protocols by another name than ``session.signatures`` gives them.
_NAMES: Final = {"http": "HTTP", "text": "lines of text", "zookeeper": "ZooKeeper's protocol"}
_SENDER: Final = (
    "Give it the address and port of the service that it is meant for; the broker closes each of these connections and "
    "logs a receive of an invalid size."
)
_SENDERS: Final = {
    "http": "Find the process on that host: a scraper of metrics, a health check or a browser that is meant for "
    "another port (a JMX exporter, REST proxy, Connect, Schema Registry). The broker closes each of these connections "
    "and logs a receive of an invalid size.",
    "zookeeper": "Give it the address of ZooKeeper (port 2181), or retire the check where the cluster runs on KRaft.",
}


class ForeignAnswers(CountingObserver):
    """``foreign_answer``: a server that was asked for Kafka answered with another ``protocol``. TLS has an observer of
    its own.

    Notes: ``hosts`` that asked.
    """

    kinds = ("foreign_answer",)
    entities = ("broker", "protocol")

    def problem(self, problem: Problem) -> None:
        details = problem.details or {}
        if problem.code == "not_kafka_answer" and details.get("protocol") != TLS:
            count(self, problem, [host_of(str(details.get("client") or ""))])


class ForeignRequests(CountingObserver):
    """``foreign_request``: a broker that answers Kafka was sent another ``protocol``.

    Notes: ``hosts`` that sent it.
    """

    kinds = ("foreign_request",)
    entities = ("broker", "protocol")

    def problem(self, problem: Problem) -> None:
        details = problem.details or {}
        if problem.code == "not_kafka" and details.get("speaks_kafka"):
            count(self, problem, list(details.get("clients") or {}))


def count(observer: CountingObserver, problem: Problem, hosts: list[str]) -> None:
    """Counts a problem of a server's connections by the server and the protocol."""
    details = problem.details or {}
    case = observer.cases.case(str(details.get("server") or ""), clipped(str(details.get("protocol") or "")))
    case.add(problem.packet or 0, problem.timestamp_ns or 0)
    case.count += max(int(details.get("connections") or 1) - 1, 0)
    case.note("hosts", hosts)


class DialledControllers(CountingObserver):
    """``controller_dialled``: a client went no further than ApiVersions with any server that offers no Metadata and no
    Produce.
    """

    kinds = ("controller_dialled",)
    apis = frozenset({API_VERSIONS})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._open: set[int] = set()
        self._working: set[str] = set()

    def exchange(self, exchange: Exchange) -> None:
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
            self.cases.case(client, connection.broker).add(
                connection.first_packet, connection.first_ns, until_ns=connection.last_ns
            )

    def observations(self) -> Iterator[Observation]:
        """By client and controller, without those that work with controllers."""
        for client, broker, case in self.cases:
            if client not in self._working:
                yield self.observed(client, broker, case)


@cause("not_kafka_answer", explains=("foreign_answer",))
def not_kafka_server(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`not_kafka_answer` (error): a server that is asked for Kafka answers with another protocol: a wrong port, a web
    server.
    """
    server, protocol, hosts = one.name("broker"), one.name("protocol"), one.noted("hosts")
    follows = ("unanswered", "closed_by_broker", "connection_churn")
    return told(
        one,
        f"is asked for Kafka by {', '.join(hosts)} and answers with {protocol}, {times(one.count)}: it is no broker",
        "Give the client the address and port of a broker (bootstrap.servers); see what listens there, or what "
        "stands in between.",
        severity="error",
        numbers={"server": server, "protocol": protocol},
        scope=scope_of("host", hosts),
        explains=symptoms("broker", [server], *follows),
    )


@cause("not_kafka_client", explains=("foreign_request",))
def not_kafka_client(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`not_kafka_client` (warning): a broker that answers Kafka in the capture is sent another protocol: HTTP by a
    scraper of metrics or a health check, Redis, ZooKeeper's four-letter words; with the hosts that do so. What is not
    recognised has no finding: it may be Kafka of which the capture has too little.
    """
    server, protocol, hosts = one.name("broker"), one.name("protocol"), one.noted("hosts")
    return told(
        one,
        f"sends {_NAMES.get(protocol, protocol)} to {context.cluster.broker_text(server)}, a broker, which "
        f"takes none, {times(one.count)}",
        _SENDERS.get(protocol, _SENDER),
        subject=listed(hosts),
        severity="warning",
        rank=ERROR,
        numbers={"server": server, "protocol": protocol, "hosts": hosts},
        scope=scope_of("host", hosts),
    )


@cause("controller_dialled", explains=("controller_dialled",))
def controller_dialled(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`controller_dialled` (error): a client dials a KRaft controller instead of a broker: neither Metadata nor Produce
    is offered there, and it goes no further than ApiVersions.
    """
    server = one.name("broker")
    return told(
        one,
        f"dials {server}, the listener of a controller: that offers no Metadata and no Produce, and the client "
        f"goes no further than ApiVersions, {times(one.count)}",
        "Let bootstrap.servers name brokers, by a port of listeners that is not in controller.listener.names. "
        "Admin clients that mean the controllers name them by bootstrap.controllers.",
        severity="error",
        numbers={"address": server},
        explains=symptoms("client", one.named("client"), "connection_churn"),
    )
