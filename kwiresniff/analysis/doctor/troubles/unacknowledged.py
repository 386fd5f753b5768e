"""Records without acknowledgement (``acks=0``).

A broker can only refuse them by closing the connection. How many were lost shows in the high watermarks that consumers
are given: the log grows by as many records as it stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.cause import WASTE, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, client_text
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import clock, listed, times
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, NUMBER_BYTES
from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.model import Connection, Exchange

#: A broker that refuses such records closes the connection within this time.
AT_ONCE_NS: Final = 500_000_000
#: Fewer connections that are closed after such records may be a coincidence.
OFTEN_REFUSED: Final = 3
#: Answers to consumers in a row by which the log lacks records; in some of them records are still in flight.
LOOKS: Final = 10
#: Partitions that are remembered.
MAX_PARTITIONS = 5_000
#: Memory of the last such records on a connection.
_UNASKED_BYTES: Final = ENTRY_BYTES + CONTAINER_BYTES + 3 * NUMBER_BYTES


class _Log:
    """A partition with such records: the first high watermark, the records sent since and by whom, and how many it
    lacked at the latest answers."""

    __slots__ = ("begin", "clients", "lacks", "lost", "sent")

    def __init__(self) -> None:
        self.begin = -1
        self.sent = self.lost = 0
        self.clients: dict[str, None] = {}
        self.lacks: deque[int] = deque(maxlen=LOOKS)

    def look(self, high_watermark: int) -> None:
        """Takes in a high watermark; a lower one is that of another log."""
        if self.begin < 0 or high_watermark < self.begin:
            self.begin, self.sent, self.lost = high_watermark, 0, 0
            self.lacks.clear()
            return
        self.lacks.append(self.sent - (high_watermark - self.begin))
        if len(self.lacks) == LOOKS:
            self.lost = max(min(self.lacks), 0)


class UnacknowledgedWrites(Observer):
    """``unacknowledged_writes``: a client produces with ``acks=0``; ``closed_after_write``: a broker closes connections
    at once after such records.

    Numbers of the first: ``lost`` (records that the logs of ``partitions`` lack, where a broker closed the connection
    of a client that went on: ``closed_by``, at ``closed_ns``); of the second: ``broker``, ``largest_request_bytes``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("unacknowledged_writes", "closed_after_write")
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE, FETCH})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._writes, self._closed = context.tally(), context.tally()
        #: By connection, the time and the size of the last such request.
        self._unasked: dict[int, tuple[int, int]] = {}
        self._logs: Subjects[tuple[str, str, int], _Log] = context.subjects(_Log, 4 + LOOKS, MAX_PARTITIONS)

    def exchange(self, exchange: Exchange) -> None:
        if exchange.api_key == PRODUCE:
            self._write(exchange)
        elif self._logs and not exchange.errors:
            cluster_id = self.context.cluster.of(exchange.connection.broker)
            for name, part in self.context.parts(exchange.response):
                log = self._logs.get((cluster_id, name, part.index))
                if log is not None and part.high_watermark >= 0:
                    log.look(part.high_watermark)

    def _write(self, exchange: Exchange) -> None:
        request, cluster_id = exchange.request, self.context.cluster.of(exchange.connection.broker)
        if request is None:
            return
        unasked = (request.digest.acks if request.digest is not None else (request.body or {}).get("acks")) == 0
        if not unasked and not self._logs:
            return
        client = client_of(exchange)
        for name, part in self.context.parts(request):
            key = cluster_id, name, part.index
            log = self._logs.of(key) if unasked else self._logs.get(key)
            if log is not None and not exchange.errors:
                log.sent += part.records
                log.clients.update({client: None} if unasked else {})
        if not unasked:
            return
        case = self._writes.case(client)
        case.add(request.first_packet, request.first_ns)
        number = exchange.connection.id
        if number in self._unasked or self.context.budget.admit(_UNASKED_BYTES):
            self._unasked[number] = request.last_ns, request.size_bytes

    def connection(self, connection: Connection) -> None:
        """Counts a connection that a broker closes at once after such records."""
        unasked = self._unasked.pop(connection.id, None)
        if unasked is None:
            return
        self.context.budget.release(_UNASKED_BYTES)
        asked_ns, size_bytes = unasked
        if connection.closed_by != "broker" or connection.closed_ns - asked_ns > AT_ONCE_NS:
            return
        case = self._closed.case(client_text(connection.client_id, connection.client), connection.broker)
        # Connections that are closed at one moment are those of a broker that stops.

        if abs(connection.closed_ns - case.last_ns) > AT_ONCE_NS:
            case.add(connection.closed_packet or connection.first_packet, connection.closed_ns, size_bytes)

    def observations(self) -> Iterator[Observation]:
        for client, _, case in self._writes:
            yield self._written(client, case)
        for client, broker, case in self._closed:
            if case.count:
                about = [f"client:{client}", f"broker:{broker}"]
                numbers = {"broker": broker, "largest_request_bytes": case.most}
                yield observation_of("closed_after_write", case, about, numbers)

    def _written(self, client: str, case: Case) -> Observation:
        # A client that writes no more may have closed it first.
        closed = [
            (one.first_ns, broker)
            for name, broker, one in self._closed
            if name == client and one.count and one.first_ns < case.last_ns
        ]
        lacking = {key: log.lost for key, log in self._logs.items() if client in log.clients and log.lost and closed}
        numbers = {
            "lost": sum(lacking.values()),
            "partitions": [f"{topic}-{index}" for _, topic, index in lacking],
            "closed_by": [broker for _, broker in closed],
            "closed_ns": min((ns for ns, _ in closed), default=0),
        }
        about = [f"client:{client}", *[f"topic:{topic}" for _, topic, _ in lacking]]
        return observation_of("unacknowledged_writes", case, about, numbers, Harm(records_lost=sum(lacking.values())))


@cause("acks_0", explains=("unacknowledged_writes",))
def no_acknowledgement(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`acks_0` (info; warning where a broker closed a connection under it, error where the logs lack records): records
    sent without acknowledgement. Lost are at least those that were sent since a consumer was told the end of the log,
    and by which that has not moved at ten looks in a row.
    """
    numbers, lost = one.numbers, one.numbers["lost"]
    title = "produces without acknowledgement (acks=0)"
    if numbers["closed_by"]:
        brokers = listed([context.cluster.broker_text(broker) for broker in numbers["closed_by"]])
        known = f"at least {lost:,} records of {listed(numbers['partitions'])} are lost"
        known = known if lost else "what it had sent may be lost"
        title += f", and {brokers} closed the connection under it at {clock(numbers['closed_ns'])}: {known}"
    return told(
        one,
        title,
        "Records can be lost without anybody knowing, each time that a broker is restarted or a leader moves. Use "
        "acks=all where they matter.",
        severity="error" if lost else "warning" if numbers["closed_by"] else "info",
        rank=WASTE if not lost else 0,
    )


@cause("acks_0_refused", explains=("closed_after_write", "unacknowledged_writes"))
def unheard_writes(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`acks_0_refused` (error): a broker closes connections at once after records without acknowledgement, 3 times or
    more, which is how it refuses them.
    """
    client, broker = one.name("client"), one.name("broker")
    return told(
        one,
        f"writes with acks=0, and {context.cluster.broker_text(broker)} closes the connection after "
        f"it, {times(one.count)}: that is how it refuses what nobody waits for, and those records are lost",
        "Set acks=1 or all, and the answer says why: records larger than max.message.bytes, a right "
        "that is missing, a partition that it does not lead.",
        severity="error",
        stands=one.count >= OFTEN_REFUSED,
        explains=symptoms("client", [client], "acks_0", "connection_churn"),
    )
