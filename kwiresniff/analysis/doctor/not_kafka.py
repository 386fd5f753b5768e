"""Servers that are asked for Kafka and answer with something else: a wrong port, a web server, a proxy."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.evidence import clipped
from kwiresniff.analysis.doctor.rule import INCIDENT, Context, Rule, as_brokers, found
from kwiresniff.analysis.doctor.wording import times
from kwiresniff.base.flows import host_of
from kwiresniff.model import Problem
from kwiresniff.results.findings import Finding, scope_of

TLS = "tls"


class NotKafkaRule(Rule):
    """Clients that dial what is no broker; TLS has a rule of its own."""

    codes = ("not_kafka_answer",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()

    def problem(self, problem: Problem) -> None:
        """A server answered Kafka with another protocol."""
        details = problem.details or {}
        if problem.code != "not_kafka_answer" or details.get("protocol") == TLS:
            return
        server, protocol = str(details.get("server") or ""), clipped(str(details.get("protocol") or ""))
        case = self._cases.case(server, protocol)
        case.add(problem.packet or 0, problem.timestamp_ns or 0)
        case.count += max(int(details.get("connections") or 1) - 1, 0)
        case.note("hosts", [host_of(str(details.get("client") or ""))])

    def findings(self) -> Iterator[Finding]:
        """By server."""
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
