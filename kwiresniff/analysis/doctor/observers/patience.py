"""Clients that give up before a broker answers: their request.timeout.ms ends what the broker still works on.

Such a client closes its connection, opens another one and asks again; the answer comes into a closed connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, patience_of
from kwiresniff.analysis.doctor.evidence import client_text, is_node
from kwiresniff.analysis.doctor.observation import Harm, Observation
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.selection import Selection, waited
from kwiresniff.analysis.doctor.wording import duration, times
from kwiresniff.base.time_units import OVERRUN_NS
from kwiresniff.model import Connection, Exchange

#: A client that leaves sooner was not waiting, it was closing.
WAITED_NS: Final = 1_000_000_000
#: So many times, after waits that differ by no more than this part of the longest, is a timeout.
OFTEN: Final = 3
ALIKE: Final = 0.25
#: Connections whose last long wait is remembered.
MAX_CONNECTIONS: Final = 5_000


class GivenUp(CountingObserver):
    """`gave_up`: a client closed its connection before the answer came, or while the broker held it back on purpose, 3
    times or more after about the same wait.

    By client and API. Numbers: ``api``, ``waited_ns`` and ``least_ns`` (the longest and the shortest that it waited),
    ``held_ns`` (for how long the broker may hold the answer back, or took).
    """

    kinds: ClassVar[tuple[str, ...]] = ("gave_up",)
    entities = ("client", "api")
    apis: ClassVar[frozenset[int] | None] = None
    selection: ClassVar[Selection] = waited(WAITED_NS)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._waits: dict[int, tuple[str, int, int, int, int]] = {}
        self._least: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], int] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Notes an answer that took long: its client may have closed the connection by then."""
        request, response, number = exchange.request, exchange.response, exchange.connection.id
        if request is None or response is None:
            return
        if number in self._waits or len(self._waits) < MAX_CONNECTIONS:
            held_ns = max(patience_of(exchange) - OVERRUN_NS, response.first_ns - request.last_ns)
            self._waits[number] = exchange.api, request.first_packet, request.last_ns, response.first_ns, held_ns

    def connection(self, connection: Connection) -> None:
        """Counts a connection that its client closed before the answer came."""
        wait = self._waits.pop(connection.id, None)
        if wait is not None and connection.closed_by == "client":
            api, packet, requested_ns, answered_ns, held_ns = wait
            if requested_ns + WAITED_NS <= connection.closed_ns < answered_ns:
                self._count(connection, api, packet, requested_ns, held_ns)

    def ending(self, ending: Ending) -> None:
        """Counts one that its client closed while the broker held the answer back."""
        first = ending.first
        if ending.reason == "closed by client" and WAITED_NS <= ending.waited_ns < first.patience_ns - OVERRUN_NS:
            self._count(ending.connection, first.api, first.packet, first.last_ns, first.patience_ns - OVERRUN_NS)

    def _count(self, connection: Connection, api: str, packet: int, requested_ns: int, held_ns: int) -> None:
        key = client_text(connection.client_id, connection.client), api
        waited_ns = connection.closed_ns - requested_ns
        case = self.cases.case(*key)
        case.add(packet, requested_ns, waited_ns, until_ns=connection.closed_ns)
        case.note("brokers", [connection.broker])
        case.note("clients", [key[0]])
        self._least[key] = min(waited_ns, self._least.get(key, waited_ns))
        self._held[key] = max(held_ns, self._held.get(key, 0))

    def observations(self) -> Iterator[Observation]:
        """By client and API; brokers among themselves are left out."""
        for client, api, case in self.cases:
            least_ns = self._least.get((client, api), 0)
            among_brokers = is_node(client) or "fetcher" in client.lower()
            if case.count < OFTEN or case.most - least_ns > ALIKE * case.most or among_brokers:
                continue
            text = f"{client} gave up on {api} {times(case.count)}, after {duration(case.most)} at most"
            harm, held_ns = Harm(requests_late=case.count, late_ns=case.total), self._held.get((client, api), 0)
            waits = {"waited_ns": case.most, "least_ns": least_ns, "held_ns": held_ns}
            yield self.observed(client, api, case, text, harm, api=api, **waits)
