"""Versions of requests that brokers refuse, by closing the connection or by UNSUPPORTED_VERSION."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.cluster import NEW_RELEASE, taken_since
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, Unanswered, client_in, release_of
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import MAX_MESSAGE_CHARS, Case, client_text, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import broker_says, listed
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.errors import SchemaError
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.findings import scope_of
from kwiresniff.schema import versions_in

#: Connections remembered with an answer to ApiVersions; the oldest are dropped first.
MAX_ASKED = 20_000
_NOT_ENABLED: Final = (
    "Enable it at the brokers (kafka-features upgrade, and group.coordinator.rebalance.protocols where that is set), "
    "or let the client use what is enabled (group.protocol=classic)."
)
_DOES_NOT_LISTEN: Final = (
    "; it asks for ApiVersions and does not go by the answer, so its versions are fixed in its code or its settings "
    "(api_version, broker.version.fallback)"
)
_DOES_NOT_ASK: Final = ", or let it ask for ApiVersions (no fixed api_version or broker.version.fallback)"


class RefusedVersions(CountingObserver):
    """``version_refused``: a broker refused a version of a client's request.

    Notes: ``how``, ``software``, ``messages``, whether the client had ``asked`` for versions, and ``request``. Numbers:
    ``broker``, ``api_key``, ``api_version``, ``api``.
    """

    kinds = ("version_refused",)
    entities = ("client", "what")
    apis = frozenset({API_VERSIONS})
    judges = frozenset({"UNSUPPORTED_VERSION"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._asked: dict[int, None] = {}

    def exchange(self, exchange: Exchange) -> None:
        if exchange.response is not None and not exchange.errors:
            self._asked[exchange.connection.id] = None
            if len(self._asked) > MAX_ASKED:
                del self._asked[next(iter(self._asked))]

    def ending(self, ending: Ending) -> None:
        if ending.reason == "version refused":
            first, connection = ending.first, ending.connection
            case = self._case(client_in(ending), connection, first, first.version, "closes the connection")
            case.add(first.packet, first.first_ns, until_ns=connection.closed_ns)
            software = connection.client_software
            if software:
                case.note("software", [f"{software.get('name')} {software.get('version')}".strip()])

    def failure(self, exchange: Exchange) -> None:
        if exchange.api_key == API_VERSIONS or exchange.request is None:
            return
        if any(name == "UNSUPPORTED_VERSION" for _, _, name, _ in exchange.errors):
            client, version = client_text(exchange.client_id, exchange.connection.client), exchange.api_version
            case = self._case(client, exchange.connection, exchange, version, "answers UNSUPPORTED_VERSION")
            case.add(exchange.request.first_packet, exchange.request.first_ns)
            case.note("messages", {one.message: None for one in error_places(exchange, self.context) if one.message})

    def _case(
        self, client: str, connection: Connection, request: Unanswered | Exchange, version: int, how: str
    ) -> Case:
        case = self.cases.case(client, f"{connection.broker} {request.api_key} {version} {request.api}")
        case.note("request", [f"{request.api} v{version}"])
        case.note("how", [how])
        case.note("asked", ["yes" if connection.id in self._asked else "no"])
        return case

    def observations(self) -> Iterator[Observation]:
        for client, what, case in self.cases:
            broker, api_key, version, api = [*what.split(" "), "-1", "-1", ""][:4]  # empty of those counted together
            yield self.observed(
                client, what, case, broker=broker, api_key=int(api_key), api_version=int(version), api=api
            )


@cause("unsupported_version", explains=("version_refused",))
def unsupported_version(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`unsupported_version` (error): the broker refuses a version, by closing the connection or by the error code; with
    the versions that its release takes, as `audit` would say, and whether the client had asked for them and does not go
    by the answer; of a broker that was not asked for its versions those since 4.0, unless it has answered older ones.
    """
    broker, api_key, version = (one.numbers[name] for name in ("broker", "api_key", "api_version"))
    offer = context.cluster.offer(broker)
    release = release_of(offer)
    span = _versions(release, api_key) or offer.get(api_key)
    refuses, takes = "which it does not take", ""
    if not offer and (span := taken_since(NEW_RELEASE, api_key)) is not None:
        refuses = "which brokers do not take any more"
        takes = f"; from Kafka {NEW_RELEASE} on they take v{span[0]} and newer"
    elif span is not None:
        takes = f"; {f'Kafka {release}' if release else 'the broker'} takes v{span[0]} to v{span[1]}"
    software = f" ({listed(one.noted('software'))})" if one.noted("software") else ""
    remedy = (
        f"Update the client{software}{_DOES_NOT_LISTEN if one.noted('asked') == ['yes'] else _DOES_NOT_ASK}. All "
        f"that would break: kwiresniff audit --target {release or NEW_RELEASE}."
    )
    if span is not None and span[0] <= version <= span[1]:
        refuses, takes, remedy = "which it offers but has not enabled", "", _NOT_ENABLED
    messages = [clipped(text, MAX_MESSAGE_CHARS) for text in one.noted("messages")]
    follows = ("unanswered", "closed_by_broker", "old_message_format", "connection_churn")
    return told(
        one,
        f"asks {context.cluster.broker_text(broker)} for {listed(one.noted('request'))}, {refuses}: it "
        f"{listed(one.noted('how'))}{takes}",
        remedy,
        severity="error",
        numbers={
            "broker": broker,
            "api": one.numbers["api"],
            "api_version": version,
            "takes": list(span) if span is not None else None,
            "release": release or None,
            **({"error_messages": messages} if messages else {}),
        },
        details=tuple(broker_says(messages)),
        scope=scope_of("broker", [broker]),
        explains=symptoms("client", one.named("client"), *follows),
    )


def _versions(release: str, api_key: int) -> tuple[int, int] | None:
    try:
        return versions_in(release).get(api_key) if release else None
    except SchemaError:
        return None
