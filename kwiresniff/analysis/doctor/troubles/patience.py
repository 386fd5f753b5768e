"""Clients that close their connection before the broker answers, because request.timeout.ms is too short.

Such a client opens another connection and asks again; the answer arrives on a closed connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, patience_of
from kwiresniff.analysis.doctor.evidence import client_text, is_node
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed
from kwiresniff.analysis.doctor.observer import SLOW_NS, CountingObserver
from kwiresniff.analysis.doctor.wording import duration, times
from kwiresniff.base.time_units import OVERRUN_NS
from kwiresniff.model import Connection, Exchange

#: So many waits that differ by no more than this part of the longest are a timeout.
OFTEN: Final = 3
ALIKE: Final = 0.25
#: Connections whose last long wait is remembered.
MAX_CONNECTIONS: Final = 5_000
#: The setting by which clients let the broker wait, by API.
_SETTINGS: Final = {
    "Fetch": "fetch.max.wait.ms of the consumer",
    "JoinGroup": "max.poll.interval.ms of the members",
    "Produce": "what the replicas take to store it",
}


class GivenUp(CountingObserver):
    """`gave_up`: a client closed its connection before the answer came, or while the broker held it back on purpose, 3
    times or more after about the same wait.

    By client and API. Numbers: ``api``, ``waited_ns`` and ``least_ns`` (the longest and the shortest wait), ``held_ns``
    (for how long the broker held the answer back, or may do so).
    """

    kinds = ("gave_up",)
    entities = ("client", "api")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._waits: dict[int, tuple[str, int, int, int, int]] = {}
        self._least: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], int] = {}

    def slow(self, exchange: Exchange) -> None:
        """Notes an answer after a long wait, before which its client may have closed the connection."""
        request, response, number = exchange.request, exchange.response, exchange.connection.id
        if request is None or response is None or response.first_ns - request.last_ns < SLOW_NS:
            return
        if number in self._waits or len(self._waits) < MAX_CONNECTIONS:
            held_ns = max(patience_of(exchange) - OVERRUN_NS, response.first_ns - request.last_ns)
            self._waits[number] = exchange.api, request.first_packet, request.last_ns, response.first_ns, held_ns

    def connection(self, connection: Connection) -> None:
        wait = self._waits.pop(connection.id, None)
        if wait is not None and connection.closed_by == "client":
            api, packet, requested_ns, answered_ns, held_ns = wait
            if requested_ns + SLOW_NS <= connection.closed_ns < answered_ns:
                self._count(connection, api, packet, requested_ns, held_ns)

    def ending(self, ending: Ending) -> None:
        first = ending.first
        if ending.reason == "closed by client" and SLOW_NS <= ending.waited_ns < first.patience_ns - OVERRUN_NS:
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
        """By client and API, without those between brokers."""
        for client, api, case in self.cases:
            least_ns = self._least.get((client, api), 0)
            among_brokers = is_node(client) or "fetcher" in client.lower()
            if case.count < OFTEN or case.most - least_ns > ALIKE * case.most or among_brokers:
                continue
            harm, held_ns = Harm(requests_late=case.count, late_ns=case.total), self._held.get((client, api), 0)
            waits = {"waited_ns": case.most, "least_ns": least_ns, "held_ns": held_ns}
            yield self.observed(client, api, case, harm=harm, api=api, **waits)


@cause("request_timeout", explains=("gave_up",))
def short_timeout(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`request_timeout` (warning): a client closes its connection three times after about the same wait, before the
    answer came or while the broker held it back: ``request.timeout.ms`` is shorter than ``fetch.max.wait.ms``, for one.

    Seen must be three connections that the client closed a second or more after a request. Waits that differ by more
    than a quarter are no timeout, but a client that is stopped or restarted.
    """
    client, numbers = one.name("client"), one.numbers
    api, waited_ns, held_ns = numbers["api"], numbers["waited_ns"], numbers["held_ns"]
    than = _SETTINGS.get(api, "what the broker takes")
    return told(
        one,
        f"gives up on {api} after {duration(waited_ns)} and closes its connection, {times(one.count)}: "
        f"the broker may take {duration(held_ns)}, and answers into closed connections",
        "request.timeout.ms of the client (socket.timeout.ms of librdkafka) must be longer than what it "
        f"lets the broker wait: {than}.",
        supports=(f"its shortest wait was {duration(numbers['least_ns'])}",),
        numbers={"api": api, "waited_ns": waited_ns, "held_ns": held_ns},
        severity="warning",
        explains=symptoms("client", [client], "unanswered", "slow", "connection_churn", "metadata_storm"),
    )
