"""Where requests wait before a broker reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.body_entities import throttle_ms_of
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.model import Connection, Exchange

#: ``linger.ms`` of Kafka's producers since 4.0: so long they wait on purpose, and nobody minds.
LINGER_NS: Final = 5_000_000
#: Requests of which the average says something.
ENOUGH: Final = 20
#: Stands for how long a broker takes no further request of a client that it throttles: longer than any wait.
MUTED_NS: Final = 1 << 60
#: Connections of which is remembered how long the requests took that others queued behind.
MAX_CONNECTIONS = 20_000


class QueueTimes(Observer):
    """``queued``: most Produce requests of a client waited behind its own requests on the same connection, longer than
    for the broker and longer than producers linger by default.

    A broker reads the next request of a connection when it has answered the one before. What a quota mutes is not
    counted, nor what waited behind a single request that took the broker half as long: that one is slow. Numbers:
    ``mean_queued_ns`` and ``mean_broker_ns`` of these requests. It makes them late.
    """

    kinds: ClassVar[tuple[str, ...]] = ("queued",)
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._all = context.tally()
        self._queued = context.tally()
        self._broker_ns: dict[Case, int] = {}
        #: By connection, the longest time that a request took the broker since one was not queued.
        self._longest_ns: dict[int, int] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Takes one that was queued and not throttled."""
        number, took_ns, response = exchange.connection.id, exchange.broker_ns or 0, exchange.response
        if response is not None and throttle_ms_of(response) > 0:
            took_ns = MUTED_NS
        before_ns = self._longest_ns.get(number, 0) if exchange.queued else 0
        if number in self._longest_ns or len(self._longest_ns) < MAX_CONNECTIONS:
            self._longest_ns[number] = max(before_ns, took_ns)
        client = client_of(exchange)
        self._all.case(client).count += 1
        if exchange.queued <= max(took_ns, 2 * before_ns, LINGER_NS) or exchange.waiting:
            return
        case = self._queued.case(client)
        case.add(*place_of(exchange), exchange.queued)
        case.note("brokers", [exchange.connection.broker])
        self._broker_ns[case] = self._broker_ns.get(case, 0) + (exchange.broker_ns or 0)

    def connection(self, connection: Connection) -> None:
        """Forgets one that has ended."""
        self._longest_ns.pop(connection.id, None)

    def observations(self) -> Iterator[Observation]:
        """One for each client."""
        for client, _, case in self._queued:
            if case.count < max(ENOUGH, self._all.case(client).count // 2):
                continue
            queued_ns, broker_ns = case.total // case.count, self._broker_ns[case] // case.count
            yield observation_of(
                "queued",
                case,
                [f"client:{client}"],
                {"mean_queued_ns": queued_ns, "mean_broker_ns": broker_ns},
                Harm(requests_late=case.count, late_ns=case.total),
            )
