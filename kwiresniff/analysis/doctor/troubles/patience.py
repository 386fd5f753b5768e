"""Clients that close their connection before the answer is there: request.timeout.ms is too short, or it is too large.

Such a client opens another connection and asks again, and gets the same answer.
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
from kwiresniff.analysis.doctor.wording import duration, listed, times
from kwiresniff.base.time_units import OVERRUN_NS
from kwiresniff.model import Connection, Exchange, Problem

#: So many waits that differ by no more than this part of the longest are a timeout.
OFTEN: Final = 3
ALIKE: Final = 0.25
#: Connections whose last long wait is remembered.
MAX_CONNECTIONS = 5_000
#: Answers that are about as large, down to this part of the largest; smaller ones are below any limit of clients.
AS_LARGE: Final = 0.9
LARGE_BYTES: Final = 10_000
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
        self._waited: dict[tuple[str, str], tuple[int, int]] = {}  # the shortest wait, and how long it may be held

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
        least_ns, most_ns = self._waited.get(key, (waited_ns, 0))
        if key in self._waited or self.context.has_room(self._waited, MAX_CONNECTIONS, *key, entries=2):
            self._waited[key] = min(waited_ns, least_ns), max(held_ns, most_ns)

    def observations(self) -> Iterator[Observation]:
        """By client and API, without those between brokers."""
        for client, api, case in self.cases:
            least_ns, held_ns = self._waited.get((client, api), (0, 0))
            among_brokers = is_node(client) or "fetcher" in client.lower()
            if case.count < OFTEN or case.most - least_ns > ALIKE * case.most or among_brokers:
                continue
            harm = Harm(requests_late=case.count, late_ns=case.total)
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


class AnswersBrokenOff(CountingObserver):
    """`answers_broken_off`: a client closed its connection within a second after an answer had begun, 3 times or more,
    each time an answer of about the same size.

    By client and broker. Numbers: ``size_bytes``, ``present_bytes`` at most.
    """

    kinds = ("answers_broken_off",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        #: By connection, packet and time of the begin, size, and bytes that are there.
        self._begun: dict[int, tuple[int, int, int, int]] = {}
        self._sizes: dict[tuple[str, str], tuple[int, int]] = {}  # the least size, and the most bytes that came

    def problem(self, problem: Problem) -> None:
        details = problem.details or {}
        size, number = details.get("size_bytes") or 0, details.get("connection", 0)
        if problem.code == "incomplete_response" and size >= LARGE_BYTES and len(self._begun) < MAX_CONNECTIONS:
            place = problem.packet or 0, problem.timestamp_ns or 0
            self._begun[number] = (*place, size, details.get("present_bytes") or 0)

    def connection(self, connection: Connection) -> None:
        packet, begun_ns, size, present = self._begun.pop(connection.id, (0, 0, 0, 0))
        if connection.closed_by != "client" or not 0 <= connection.closed_ns - begun_ns < SLOW_NS:
            return
        key = client_text(connection.client_id, connection.client), connection.broker
        case = self.cases.case(*key)
        case.add(packet, begun_ns, size, until_ns=connection.closed_ns)
        least, most = self._sizes.get(key, (size, 0))
        if key in self._sizes or self.context.has_room(self._sizes, MAX_CONNECTIONS, *key, entries=2):
            self._sizes[key] = min(least, size), max(most, present)

    def observations(self) -> Iterator[Observation]:
        for client, broker, case in self.cases:
            least, present = self._sizes.get((client, broker), (0, 0))
            if case.count >= OFTEN and least >= AS_LARGE * case.most:
                harm = Harm(seconds_down=case.seconds)
                yield self.observed(client, broker, case, harm, size_bytes=case.most, present_bytes=present)


@cause("answer_too_large", explains=("answers_broken_off", "partition_not_read"))
def large_answer(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`answer_too_large` (error): a client closes its connection as soon as an answer of about the same size begins, 3
    times or more: it takes none as large, asks again, and never gets on. Brokers send the first batch of a fetch
    whatever its size, even where it is larger than `fetch.max.bytes`. Must not be seen: that the client waited for the
    rest. A client that has no memory for the answer looks the same.
    """
    numbers, client = one.numbers, one.name("client")
    unread = [
        each for each in observed.about([f"client:{client}"], "partition_not_read") if each.last_ns >= one.first_ns
    ]
    where = listed([name for each in unread for name in each.numbers["partitions"]], 3)
    return told(
        one,
        f"closes its connection as soon as an answer of {numbers['size_bytes']:,} bytes begins, {times(one.count)} in "
        f"{duration(one.last_ns - one.first_ns)}, and asks again: it takes none as large"
        f"{f'; it does not get on in {where}' if where else ''}",
        "Raise the size of answers that it takes: receive.message.max.bytes of librdkafka, BrokerMaxReadBytes of "
        "franz-go, MaxResponseSize of sarama, or the memory of its process. A record is as large as max.message.bytes "
        "of its topic allows.",
        explained=(one, *unread),
        explains=symptoms(
            "client", [client], "unanswered", "connection_churn", "metadata_storm", "consumer_lag", "slow_transfer"
        ),
    )
