"""The index of the exchanges of captures, as columns of numbers: 86 bytes an exchange and the names that they have.

It is made of parts that a reading process sends while it reads (``kwiresniff.index.index_sink``).
"""

from __future__ import annotations

from array import array
from typing import Any, Final, NamedTuple

from kwiresniff.capture.packet_places import Place
from kwiresniff.index.columns import Narrow, NarrowPart
from kwiresniff.model import OUTCOMES, UNKNOWN_NS, Connection, Exchange, Message
from kwiresniff.session.delays import LONG_POLL, REBALANCE, THROTTLED
from kwiresniff.session.topic_ids import SavedTopics

#: Bits of a number that fits a column.
MASK_63: Final = (1 << 63) - 1
#: Flags of a row.
REQUEST: Final = 1
RESPONSE: Final = 2
PROBLEMS: Final = 4
NEGOTIATION: Final = 8
#: The number of the reason of a deliberate wait begins at this bit.
WAIT_SHIFT: Final = 4
WAITS: Final = ("", LONG_POLL, REBALANCE, THROTTLED)

#: The narrow columns, in the order in which ``IndexPart.narrow`` has them.
NARROW: Final = (
    "request_ns", "wait_ns", "response_ns", "queued", "held", "path", "request_packets", "response_first",
    "response_packets", "request_bytes", "response_bytes", "connection", "client_id", "names", "errors",
)  # fmt: skip


def number_of(exchange: Exchange) -> int:
    """A number of an exchange by its first packet and its correlation id, which other readings of the same packets give
    it, too.
    """
    first = exchange.request or exchange.response
    return ((first.first_packet if first is not None else 0) << 32 | exchange.correlation_id & 0xFFFFFFFF) & MASK_63


class ConnectionEnds(NamedTuple):
    """What an index keeps of a connection; see ``Connection``."""

    id: int
    client: str
    broker: str
    proxied: dict[str, Any] | None


class IndexPart(NamedTuple):
    """Rows of an index, and what has come since the part before: values, and connections. ``left_out`` exchanges found
    no room so far.
    """

    started_ns: bytes
    packets: bytes
    correlation_ids: bytes
    apis: bytes
    outcomes: bytes
    flags: bytes
    narrow: list[NarrowPart]
    values: list[object]
    connections: list[ConnectionEnds]
    left_out: int


class Indexed(NamedTuple):
    """A part of the index, and what has been read so far: the ``fraction`` of all bytes."""

    part: IndexPart
    places: list[Place]
    topics: SavedTopics | None
    fraction: float
    problems: tuple[str, ...]
    problem_count: int
    done: bool
    #: Requests without a response so far, and when the oldest was sent (nanoseconds since 1970).
    in_flight: tuple[int, int] = (0, 0)


class ExchangeIndex:
    """Rows are counted from 0 in the order in which exchanges were complete. ``left_out`` exchanges found no room.

    Times are in nanoseconds: ``started_ns`` of the first byte since 1970, ``wait_ns`` between request and response
    (negative where the capture has them the other way round; 0 where one is missing). ``packets`` are packet
    references of the first packet; ``request_packets``, ``response_first`` and ``response_packets`` are added to it:
    last packet of the request, first and last of the response. ``apis`` are API keys and versions in turn.
    ``client_id``, ``names`` (topics and groups) and ``errors`` (their names) are numbers of ``values``.
    """

    def __init__(self) -> None:
        self.started_ns = array("q")
        self.packets = array("q")
        self.correlation_ids = array("i")
        self.apis = array("h")
        self.outcomes = array("B")
        self.flags = array("B")
        self.request_ns = Narrow()
        self.wait_ns = Narrow()
        self.response_ns = Narrow()
        self.queued = Narrow()
        self.held = Narrow()
        self.path = Narrow()
        self.request_packets = Narrow()
        self.response_first = Narrow()
        self.response_packets = Narrow()
        self.request_bytes = Narrow()
        self.response_bytes = Narrow()
        self.connection = Narrow()
        self.client_id = Narrow()
        self.names = Narrow()
        self.errors = Narrow()
        self.values: list[object] = [None]
        self.connections: dict[int, Connection] = {}
        self.left_out = 0

    def __len__(self) -> int:
        return len(self.started_ns)

    def extend(self, part: IndexPart) -> None:
        """Adds a part."""
        for column, data in (
            (self.packets, part.packets),
            (self.correlation_ids, part.correlation_ids),
            (self.apis, part.apis),
            (self.outcomes, part.outcomes),
            (self.flags, part.flags),
        ):
            column.frombytes(data)
        for narrow, rows in zip(self._narrow(), part.narrow, strict=True):
            narrow.extend(rows)
        self.values += part.values
        for ends in part.connections:
            connection = self.connections[ends.id] = Connection(ends.id, ends.client, ends.broker)
            connection.proxied = ends.proxied
        self.left_out = part.left_out
        self.started_ns.frombytes(part.started_ns)  # last: the length is that of whole rows

    def exchange(self, row: int) -> Exchange:
        """The exchange of a row as far as the index has it: no bodies, and of errors and problems nothing."""
        flags = self.flags[row]
        packet: int = self.packets[row]
        first_ns: int = self.started_ns[row]
        request = response = None
        sent_ns = first_ns
        if flags & REQUEST:
            sent_ns += self.request_ns.get(row)
            request = Message(
                packet, first_ns, packet + self.request_packets.get(row), sent_ns, self.request_bytes.get(row), None
            )
        if flags & RESPONSE:
            answered_ns = sent_ns + self.wait_ns.get(row)
            response = Message(
                packet + self.response_first.get(row),
                answered_ns,
                packet + self.response_packets.get(row),
                answered_ns + self.response_ns.get(row),
                self.response_bytes.get(row),
                None,
            )
        client_id = self.values[self.client_id.get(row)]
        exchange = Exchange(
            self.connections[self.connection.get(row)],
            self.apis[2 * row],
            self.apis[2 * row + 1],
            self.correlation_ids[row],
            client_id if client_id is None or isinstance(client_id, str) else str(client_id),
            request,
            response,
        )
        exchange.outcome = OUTCOMES[self.outcomes[row]]
        exchange.queued, exchange.held, exchange.path = self.queued.get(row), self.held.get(row), self.path.get(row)
        exchange.waiting = WAITS[flags >> WAIT_SHIFT]
        return exchange

    def names_of(self, row: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The topics and the groups of a row."""
        found = self.values[self.names.get(row)]
        if not isinstance(found, tuple):
            return (), ()
        return (found[0], found[1]) if len(found) == 2 else (found, ())

    def errors_of(self, row: int) -> tuple[str, ...]:
        """The names of the errors of a row, each once."""
        found = self.values[self.errors.get(row)]
        return found if isinstance(found, tuple) else ()

    def latency_ns(self, row: int) -> int:
        """The latency of a row, ``UNKNOWN_NS`` where there is none."""
        if self.flags[row] & (REQUEST | RESPONSE) != REQUEST | RESPONSE:
            return UNKNOWN_NS
        wait_ns = self.wait_ns.get(row)
        return wait_ns if wait_ns >= 0 else UNKNOWN_NS

    def number_of(self, row: int) -> int:
        """The number of the exchange of a row, as the function of this name has it."""
        return (self.packets[row] << 32 | self.correlation_ids[row] & 0xFFFFFFFF) & MASK_63

    def _narrow(self) -> list[Narrow]:
        return [getattr(self, name) for name in NARROW]
