"""Versions of requests that brokers refuse."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import INCIDENT
from kwiresniff.analysis.doctor.cluster import NEW_RELEASE, taken_since
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, client_in, release_of
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import MAX_MESSAGE_CHARS, Case, client_text, clipped
from kwiresniff.analysis.doctor.rule import Rule, as_clients, found
from kwiresniff.analysis.doctor.wording import broker_says, listed
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.errors import SchemaError
from kwiresniff.model import Exchange
from kwiresniff.results.findings import Finding
from kwiresniff.schema import versions_in

#: Requests whose refusal is remembered by API and version.
MAX_REFUSED = 2_000
#: Connections remembered on which the broker answered ApiVersions; the oldest are forgotten first.
MAX_ASKED = 20_000
_NOT_ENABLED = (
    "Enable it at the brokers (kafka-features upgrade, and group.coordinator.rebalance.protocols where that is set), "
    "or let the client use what is enabled (group.protocol=classic)."
)


class VersionRule(Rule):
    """Versions of requests that a broker refuses, by closing the connection or by UNSUPPORTED_VERSION.

    `unsupported_version` (error): the broker refuses a version, by closing the connection or by the error code; with
    the versions that its release takes, as `audit` would say, and whether the client had asked for them and does not go
    by the answer; of a broker that was not asked for its versions those since 4.0, unless it has answered older ones.
    """

    codes = ("unsupported_version",)
    apis = frozenset({API_VERSIONS})
    judges = frozenset({"UNSUPPORTED_VERSION"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._refused: dict[str, tuple[int, str, int]] = {}
        self._asked: dict[int, None] = {}

    def exchange(self, exchange: Exchange) -> None:
        """The broker has said which versions it takes."""
        if exchange.response is not None and not exchange.errors:
            self._asked[exchange.connection.id] = None
            if len(self._asked) > MAX_ASKED:
                del self._asked[next(iter(self._asked))]

    def ending(self, ending: Ending) -> None:
        """Closed on a request of a version that the broker does not offer."""
        if ending.reason == "version refused":
            first, connection = ending.first, ending.connection
            case = self._case(client_in(ending), connection.broker, first.api_key, first.api, first.version)
            case.add(first.packet, first.first_ns, until_ns=connection.closed_ns)
            case.note("how", ["closes the connection"])
            self._note_asked(case, connection.id)
            software = connection.client_software
            if software:
                case.note("software", [f"{software.get('name')} {software.get('version')}".strip()])

    def failure(self, exchange: Exchange) -> None:
        """Answered with the error code."""
        if exchange.api_key == API_VERSIONS or exchange.request is None:
            return
        if any(name == "UNSUPPORTED_VERSION" for _, _, name, _ in exchange.errors):
            client = client_text(exchange.client_id, exchange.connection.client)
            broker = exchange.connection.broker
            case = self._case(client, broker, exchange.api_key, exchange.api, exchange.api_version)
            case.add(exchange.request.first_packet, exchange.request.first_ns)
            case.note("how", ["answers UNSUPPORTED_VERSION"])
            self._note_asked(case, exchange.connection.id)
            case.note(
                "messages", {place.message: None for place in error_places(exchange, self.context) if place.message}
            )

    def _note_asked(self, case: Case, connection: int) -> None:
        case.note("asked", ["yes" if connection in self._asked else "no"])

    def _case(self, client: str, broker: str, api_key: int, api: str, version: int) -> Case:
        what = f"{broker}\0{api} v{version}"
        if len(self._refused) < MAX_REFUSED:
            self._refused[what] = api_key, api, version
        return self._cases.case(client, what)

    def findings(self) -> Iterator[Finding]:
        """By client, broker and version."""
        for client, what, case in self._cases:
            broker, _, request = what.partition("\0")
            api_key, api, version = self._refused.get(what, (-1, request, -1))
            offer = self.context.cluster.offer(broker)
            release = release_of(offer)
            span_ = _versions(release, api_key) or offer.get(api_key)
            takes = ""
            refuses = "which it does not take"
            if not offer and (span_ := taken_since(NEW_RELEASE, api_key)) is not None:
                refuses = "which brokers do not take any more"
                takes = f"; from Kafka {NEW_RELEASE} on they take v{span_[0]} and newer"
            elif span_ is not None:
                who = f"Kafka {release}" if release else "the broker"
                takes = f"; {who} takes v{span_[0]} to v{span_[1]}"
            software = f" ({listed(case.noted('software'))})" if case.noted("software") else ""
            asked = case.noted("asked") == ["yes"]
            advice = (
                "; it asks for ApiVersions and does not go by the answer, so its versions are fixed in its code or its "
                "settings (api_version, broker.version.fallback)"
                if asked
                else ", or let it ask for ApiVersions (no fixed api_version or broker.version.fallback)"
            )
            remedy = (
                f"Update the client{software}{advice}. All that would break: kwiresniff audit --target "
                f"{release or NEW_RELEASE}."
            )
            if span_ is not None and span_[0] <= version <= span_[1]:
                refuses, takes = "which it offers but has not enabled", ""
                remedy = _NOT_ENABLED
            how = listed(case.noted("how")) or "refuses it"
            messages = [clipped(one, MAX_MESSAGE_CHARS) for one in case.noted("messages")]
            yield found(
                "unsupported_version",
                "error",
                client,
                f"asks {self.context.cluster.broker_text(broker)} for {request}, {refuses}: it {how}{takes}",
                remedy,
                case,
                {
                    "broker": broker,
                    "api": api,
                    "api_version": version,
                    "takes": list(span_) if span_ is not None else None,
                    "release": release or None,
                    **({"error_messages": messages} if messages else {}),
                },
                details=broker_says(messages),
                clients=[client],
                brokers=[broker],
                explains={
                    "unanswered": as_clients(client),
                    "closed_by_broker": as_clients(client),
                    "old_message_format": as_clients(client),
                    "connection_churn": as_clients(client),
                },
                rank=INCIDENT,
            )


def _versions(release: str, api_key: int) -> tuple[int, int] | None:
    try:
        return versions_in(release).get(api_key) if release else None
    except SchemaError:
        return None
