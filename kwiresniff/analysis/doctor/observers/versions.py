"""Versions of requests that brokers refuse, by closing the connection or by UNSUPPORTED_VERSION."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, Unanswered, client_in
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import Case, client_text
from kwiresniff.analysis.doctor.observation import Observation
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.model import Connection, Exchange

#: Connections remembered on which the broker answered ApiVersions; the oldest are forgotten first.
MAX_ASKED = 20_000


class RefusedVersions(CountingObserver):
    """``version_refused``: a broker refused a version of a client's request.

    Notes: ``how``, ``software``, ``messages``, whether the client had ``asked`` for versions, and ``request``. Numbers:
    ``broker``, ``api_key``, ``api_version``, ``api``.
    """

    kinds = ("version_refused",)
    entities = ("client", "what")
    sentence = "{client} asked for {request}: the broker {how}, {times}"
    apis = frozenset({API_VERSIONS})
    judges = frozenset({"UNSUPPORTED_VERSION"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
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
            case = self._case(client_in(ending), connection, first, first.version, "closes the connection")
            case.add(first.packet, first.first_ns, until_ns=connection.closed_ns)
            software = connection.client_software
            if software:
                case.note("software", [f"{software.get('name')} {software.get('version')}".strip()])

    def failure(self, exchange: Exchange) -> None:
        """Answered with the error code."""
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
            broker, api_key, version, api = [*what.split(" "), "-1", "-1", ""][:4]  # of those counted together, nothing
            yield self.observed(
                client, what, case, broker=broker, api_key=int(api_key), api_version=int(version), api=api
            )
