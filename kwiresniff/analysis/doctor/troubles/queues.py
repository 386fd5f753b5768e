"""Produce requests that wait behind others of their connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.body_entities import throttle_ms_of
from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import duration
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.model import Connection, Exchange

#: ``linger.ms`` of Kafka's producers since 4.0.
LINGER_NS: Final = 5_000_000
#: Fewer requests give no average.
ENOUGH: Final = 20
#: Stands for the time in which a broker reads nothing of a client that it throttles: longer than any wait.
MUTED_NS: Final = 1 << 60
#: Connections with the longest time of a request that others queued behind.
MAX_CONNECTIONS = 20_000


class QueueTimes(CountingObserver):
    """``queued``: most Produce requests of a client waited behind its own requests on the same connection, longer than
    for the broker and longer than producers linger by default.

    A broker reads the next request of a connection when it has answered the one before. Not counted is what a quota
    mutes, and what waited behind a request that took the broker half as long. Numbers: ``mean_queued_ns`` and
    ``mean_broker_ns``. These requests are late by their time in the queue.
    """

    kinds: ClassVar[tuple[str, ...]] = ("queued",)
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._all = context.tally()
        self._broker_ns: dict[Case, int] = {}
        #: By connection, the longest time of a request since one was not queued.
        self._longest_ns: dict[int, int] = {}

    def exchange(self, exchange: Exchange) -> None:
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
        case = self.cases.case(client)
        case.add(*place_of(exchange), exchange.queued)
        case.note("brokers", [exchange.connection.broker])
        self._broker_ns[case] = self._broker_ns.get(case, 0) + (exchange.broker_ns or 0)

    def connection(self, connection: Connection) -> None:
        self._longest_ns.pop(connection.id, None)

    def observations(self) -> Iterator[Observation]:
        for client, _, case in self.cases:
            if case.count < max(ENOUGH, self._all.case(client).count // 2):
                continue
            numbers = {
                "mean_queued_ns": case.total // case.count,
                "mean_broker_ns": self._broker_ns[case] // case.count,
            }
            yield self.observed(client, "", case, Harm(requests_late=case.count, late_ns=case.total), **numbers)


@cause("own_queue", explains=("queued",))
def own_queue(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`own_queue` (info): a producer's requests wait behind its own on the same connection, longer than for the broker
    and longer than ``linger.ms`` is by default (5 ms), 20 of them or more. A broker serves one request of a connection
    at a time; where it does that in 5 ms, nothing is slow. What a quota mutes is `throttled`; what waits behind one
    slow request is `slow` with it.
    """
    queued_ns, broker_ns = one.numbers["mean_queued_ns"], one.numbers["mean_broker_ns"]
    return told(
        one,
        f"{'nothing is slow: ' * (broker_ns <= LINGER_NS)}Produce waits {duration(queued_ns)} on average "
        f"behind the client's own requests, of which a broker serves one at a time on a connection, in "
        f"{duration(broker_ns)}",
        "Nothing is to be mended at the brokers. For less delay send fewer and larger requests "
        "(linger.ms, batch.size), or have fewer in flight (max.in.flight.requests.per.connection).",
        severity="info",
    )
