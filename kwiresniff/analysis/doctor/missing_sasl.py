"""Clients that do not authenticate where a listener requires it."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import INCIDENT
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, client_in
from kwiresniff.analysis.doctor.rule import Rule, as_brokers, as_clients, found
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.results.findings import Finding


class MissingSaslRule(Rule):
    """Clients without SASL on a listener that requires it.

    `sasl_wanted` (error): a client that does not authenticate on a listener that wants SASL: closed after the first
    request that is not ApiVersions.
    """

    codes = ("sasl_wanted",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()

    def ending(self, ending: Ending) -> None:
        """Closed after the first request that is not ApiVersions."""
        if ending.reason != "SASL wanted":
            return
        case = self._cases.case(client_in(ending), ending.connection.broker)
        case.add(ending.first.packet, ending.first.first_ns, until_ns=ending.connection.closed_ns)
        case.note("requests", [f"{ending.first.api} v{ending.first.version}"])
        if ending.connection.exchanges.keys() > {"unanswered"}:
            case.note("answered", ["ApiVersions"])

    def findings(self) -> Iterator[Finding]:
        """By client and broker; what another client got answered there without SASL speaks against it."""
        for client, broker, case in self._cases:
            if broker in self.context.cluster.unauthenticated:
                continue
            requests = listed(case.noted("requests"))
            answers = "answers ApiVersions and " if case.noted("answered") else ""
            yield found(
                "sasl_wanted",
                "error",
                client,
                f"does not authenticate, and {self.context.cluster.broker_text(broker)} wants SASL: it {answers}"
                f"closes the connection after {requests}, {times(case.count)}",
                "Set security.protocol (SASL_PLAINTEXT or SASL_SSL), sasl.mechanism and credentials of the client as "
                "the listener has them, or use the port of a listener without SASL.",
                case,
                {"broker": broker, "requests": case.noted("requests")},
                clients=[client],
                brokers=[broker],
                explains={
                    "unanswered": as_clients(client),
                    "connection_churn": as_brokers(broker),
                    "metadata_storm": as_clients(client),
                    "closed_by_broker": as_clients(client),
                },
                rank=INCIDENT,
            )
