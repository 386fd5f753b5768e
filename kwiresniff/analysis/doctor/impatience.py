"""Clients that give up before a broker may answer: request.timeout.ms is shorter than the wait that the request allows.

Such a client closes its connection, opens another one and asks again, and the answers come into closed connections.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, patience_of
from kwiresniff.analysis.doctor.errors import is_follower
from kwiresniff.analysis.doctor.evidence import client_text
from kwiresniff.analysis.doctor.network import is_node
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, as_clients, found
from kwiresniff.analysis.doctor.selection import waited
from kwiresniff.analysis.doctor.wording import duration, times
from kwiresniff.base.time_units import OVERRUN_NS
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.findings import Finding

#: A client that leaves sooner was not waiting, it was closing.
WAITED_NS = 1_000_000_000
#: So many times, after waits that differ by no more than this part of the longest, is a timeout.
OFTEN = 3
ALIKE = 0.25
#: Connections whose last long wait is remembered.
MAX_CONNECTIONS = 5_000


class ImpatienceRule(Rule):
    """Clients whose timeout ends requests that the broker holds back on purpose, or answers later."""

    codes = ("request_timeout",)
    apis = None
    selection = waited(WAITED_NS)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._waits: dict[int, tuple[str, int, int, int, int]] = {}
        self._least: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], int] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Notes an answer that took long: its client may have closed the connection by then."""
        request, response = exchange.request, exchange.response
        number = exchange.connection.id
        if request is not None and response is not None and (
            number in self._waits or len(self._waits) < MAX_CONNECTIONS
        ):  # fmt: skip
            held_ns = max(patience_of(exchange) - OVERRUN_NS, response.first_ns - request.last_ns)
            self._waits[number] = exchange.api, request.first_packet, request.last_ns, response.first_ns, held_ns

    def connection(self, connection: Connection) -> None:
        """A connection that its client closed before the answer came."""
        wait = self._waits.pop(connection.id, None)
        if wait is not None and connection.closed_by == "client":
            api, packet, requested_ns, answered_ns, held_ns = wait
            if requested_ns + WAITED_NS <= connection.closed_ns < answered_ns:
                self._count(connection, api, packet, requested_ns, held_ns)

    def ending(self, ending: Ending) -> None:
        """One that its client closed while the broker held the answer back."""
        first = ending.first
        if ending.reason == "closed by client" and WAITED_NS <= ending.waited_ns < first.patience_ns - OVERRUN_NS:
            self._count(ending.connection, first.api, first.packet, first.last_ns, first.patience_ns - OVERRUN_NS)

    def _count(self, connection: Connection, api: str, packet: int, requested_ns: int, held_ns: int) -> None:
        key = client_text(connection.client_id, connection.client), api
        waited_ns = connection.closed_ns - requested_ns
        case = self._cases.case(*key)
        case.add(packet, requested_ns, waited_ns, until_ns=connection.closed_ns)
        case.note("brokers", [connection.broker])
        case.note("clients", [key[0]])
        self._least[key] = min(waited_ns, self._least.get(key, waited_ns))
        self._held[key] = max(held_ns, self._held.get(key, 0))

    def findings(self) -> Iterator[Finding]:
        """By client and API."""
        for client, api, case in self._cases:
            if is_node(client) or is_follower(case):
                continue
            least, held_ns = self._least.get((client, api), 0), self._held.get((client, api), 0)
            if case.count < OFTEN or case.most - least > ALIKE * case.most:
                continue
            yield found(
                "request_timeout",
                "warning",
                client,
                f"gives up on {api} after {duration(case.most)} and closes its connection, {times(case.count)}: "
                f"the broker may take {duration(held_ns)}, and answers into closed connections",
                "request.timeout.ms of the client (socket.timeout.ms of librdkafka) must be longer than what it lets "
                "the broker wait: fetch.max.wait.ms of a consumer, the timeout of a request for replicas.",
                case,
                {"api": api, "waited_ns": case.most, "held_ns": held_ns},
                clients=[client],
                explains={
                    "unanswered": as_clients(client),
                    "slow": as_clients(client),
                    "connection_churn": as_clients(client),
                    "metadata_storm": as_clients(client),
                },
                rank=INCIDENT,
            )
