"""Servers that are asked for Kafka and answer with something else (a wrong port, a web server, a proxy), and brokers
that are sent something else: by a scraper of metrics, a health check, a client of another service.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff.analysis.doctor.cause import ERROR, INCIDENT
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import clipped
from kwiresniff.analysis.doctor.rule import Rule, as_brokers, found
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.base.flows import host_of
from kwiresniff.model import Problem
from kwiresniff.results.findings import Finding, scope_of

TLS = "tls"
#: Protocols by another name than ``session.signatures`` gives them.
NAMES = {
    "http": "HTTP",
    "text": "lines of text",
    "zookeeper": "ZooKeeper's protocol",
}
_SENDER = (
    "Give it the address and port of the service that it is meant for; the broker closes each of these connections and "
    "logs a receive of an invalid size."
)
_SENDERS = {
    "http": "Find the process on that host: a scraper of metrics, a health check or a browser that is meant for "
    "another port (a JMX exporter, REST proxy, Connect, Schema Registry). The broker closes each of these connections "
    "and logs a receive of an invalid size.",
    "zookeeper": "Give it the address of ZooKeeper (port 2181), or retire the check where the cluster runs on KRaft.",
}


class NotKafkaRule(Rule):
    """Clients that dial what is no broker, and brokers that others dial; TLS has a rule of its own.

    `not_kafka_answer` (error): a server that is asked for Kafka answers with another protocol: a wrong port, a web
    server.

    `not_kafka_client` (warning): a broker that answers Kafka in the capture is sent another protocol: HTTP by a scraper
    of metrics or a health check, Redis, ZooKeeper's four-letter words; with the hosts that do so. What is not
    recognised has no finding: it may be Kafka of which the capture has too little.
    """

    codes = ("not_kafka_answer", "not_kafka_client")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._clients = context.tally()

    def problem(self, problem: Problem) -> None:
        """A server answered Kafka with another protocol, or was sent another one and speaks Kafka."""
        details = problem.details or {}
        if problem.code == "not_kafka" and details.get("speaks_kafka"):
            self._count_clients(problem, details)
        if problem.code != "not_kafka_answer" or details.get("protocol") == TLS:
            return
        server, protocol = str(details.get("server") or ""), clipped(str(details.get("protocol") or ""))
        case = self._cases.case(server, protocol)
        case.add(problem.packet or 0, problem.timestamp_ns or 0)
        case.count += max(int(details.get("connections") or 1) - 1, 0)
        case.note("hosts", [host_of(str(details.get("client") or ""))])

    def _count_clients(self, problem: Problem, details: dict[str, Any]) -> None:
        clients: dict[str, int] = details.get("clients") or {}
        case = self._clients.case(str(details.get("server") or ""), clipped(str(details.get("protocol") or "")))
        case.add(problem.packet or 0, problem.timestamp_ns or 0)
        case.count += max(int(details.get("connections") or 1) - 1, 0)
        case.note("hosts", clients)

    def _strangers(self) -> Iterator[Finding]:
        """Brokers that are sent another protocol, by broker and protocol."""
        for server, protocol, case in self._clients:
            hosts = case.noted("hosts")
            name = NAMES.get(protocol, protocol)
            yield found(
                "not_kafka_client",
                "warning",
                listed(hosts),
                f"sends {name} to {self.context.cluster.broker_text(server)}, a broker, which takes none, "
                f"{times(case.count)}",
                _SENDERS.get(protocol, _SENDER),
                case,
                {"server": server, "protocol": protocol, "hosts": hosts},
                brokers=[server],
                scope=scope_of("host", hosts),
                rank=ERROR,
            )

    def findings(self) -> Iterator[Finding]:
        """By server."""
        yield from self._strangers()
        for server, protocol, case in self._cases:
            hosts = case.noted("hosts")
            yield found(
                "not_kafka_answer",
                "error",
                server,
                f"is asked for Kafka by {', '.join(hosts)} and answers with {protocol}, {times(case.count)}: it is no "
                "broker",
                "Give the client the address and port of a broker (bootstrap.servers); see what listens there, or what "
                "stands in between.",
                case,
                {"server": server, "protocol": protocol},
                brokers=[server],
                scope=scope_of("host", hosts),
                explains={code: as_brokers(server) for code in ("unanswered", "closed_by_broker", "connection_churn")},
                rank=INCIDENT,
            )
