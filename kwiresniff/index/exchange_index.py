"""The index of the exchanges of captures, as columns of numbers: 86 bytes an exchange and the names that they have.

A reading process fills one and sends its ``IndexPart``s; whoever shows it adds these to an index of its own.

Written for mypyc: each exchange of a capture passes ``add``.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kwiresniff.index.columns import Narrow, NarrowPart, ValueTable
from kwiresniff.model import OUTCOMES, UNKNOWN_NS, Connection, Exchange, Message
from kwiresniff.session.delays import LONG_POLL, REBALANCE, THROTTLED

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Exchanges in an index: some 900 MB of memory. Further ones are counted.
MAX_EXCHANGES: Final = 10_000_000

_OUTCOME_NUMBERS: Final = {name: number for number, name in enumerate(OUTCOMES)}

#: Flags of a row.
REQUEST: Final = 1
RESPONSE: Final = 2
PROBLEMS: Final = 4
NEGOTIATION: Final = 8
#: The number of the reason of a deliberate wait begins at this bit.
WAIT_SHIFT: Final = 4
WAITS: Final = ("", LONG_POLL, REBALANCE, THROTTLED)

_NARROW: Final = (
    "request_ns", "wait_ns", "response_ns", "queued", "held", "path", "request_packets", "response_first",
    "response_packets", "request_bytes", "response_bytes", "connection", "client_id", "names", "errors",
)  # fmt: skip


class IndexPart(NamedTuple):
    """Rows of an index, and what has come to its tables: values, and connections by the members of their ``STATE``."""

    started_ns: bytes
    packets: bytes
    correlation_ids: bytes
    apis: bytes
    outcomes: bytes
    flags: bytes
    narrow: list[NarrowPart]
    values: list[object]
    connections: list[dict[str, Any]]
    left_out: int


class Have(NamedTuple):
    """How much of an index somebody has: rows and values."""

    rows: int = 0
    values: int = 1


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
        self.values = ValueTable()
        self.connections: dict[int, Connection] = {}
        self.left_out = 0
        self._changed: dict[int, Connection] = {}

    def __len__(self) -> int:
        return len(self.started_ns)

    def add(self, exchange: Exchange, topics: tuple[str, ...], groups: tuple[str, ...]) -> None:
        """Adds an exchange; ``topics`` and ``groups`` are those that a list shows."""
        if len(self.started_ns) >= MAX_EXCHANGES:
            self.left_out += 1
            return
        request, response = exchange.request, exchange.response
        first = request if request is not None else response
        if first is None:
            return
        flags = 0
        packet: i64 = first.first_packet
        request_ns: i64 = 0
        wait_ns: i64 = 0
        request_packets: i64 = 0
        request_bytes: i64 = 0
        if request is not None:
            flags |= REQUEST
            request_ns = request.last_ns - request.first_ns
            request_packets = request.last_packet - packet
            request_bytes = request.size_bytes
        response_ns: i64 = 0
        response_first: i64 = 0
        response_packets: i64 = 0
        response_bytes: i64 = 0
        if response is not None:
            flags |= RESPONSE
            response_ns = response.last_ns - response.first_ns
            response_first = response.first_packet - packet
            response_packets = response.last_packet - packet
            response_bytes = response.size_bytes
            if request is not None:
                wait_ns = response.first_ns - request.last_ns
        if exchange.problems:
            flags |= PROBLEMS
        if exchange.is_negotiation:
            flags |= NEGOTIATION
        if exchange.waiting:
            flags |= WAITS.index(exchange.waiting) << WAIT_SHIFT
        self.started_ns.append(first.first_ns)
        self.packets.append(packet)
        self.correlation_ids.append(exchange.correlation_id)
        self.apis.append(exchange.api_key)
        self.apis.append(exchange.api_version)
        self.outcomes.append(_OUTCOME_NUMBERS[exchange.outcome])
        self.flags.append(flags)
        self.request_ns.add(request_ns)
        self.wait_ns.add(wait_ns)
        self.response_ns.add(response_ns)
        self.queued.add(exchange.queued)
        self.held.add(exchange.held)
        self.path.add(exchange.path)
        self.request_packets.add(request_packets)
        self.response_first.add(response_first)
        self.response_packets.add(response_packets)
        self.request_bytes.add(request_bytes)
        self.response_bytes.add(response_bytes)
        connection = exchange.connection
        if connection.id not in self.connections:
            self.connections[connection.id] = self._changed[connection.id] = connection
        self.connection.add(connection.id)
        values = self.values
        self.client_id.add(values.number(exchange.client_id))
        self.names.add(values.number((topics, groups)) if topics or groups else 0)
        self.errors.add(values.number(_error_names(exchange)) if exchange.errors else 0)

    def end_connection(self, connection: Connection) -> None:
        """Takes what is known of a connection at its end."""
        if connection.id in self.connections:
            self._changed[connection.id] = connection

    def since(self, have: Have) -> IndexPart:
        """What has come since somebody had so much; call it again with the ``have`` that ``size`` gave then."""
        row = have.rows
        changed, self._changed = self._changed, {}
        return IndexPart(
            self.started_ns[row:].tobytes(),
            self.packets[row:].tobytes(),
            self.correlation_ids[row:].tobytes(),
            self.apis[2 * row :].tobytes(),
            self.outcomes[row:].tobytes(),
            self.flags[row:].tobytes(),
            [column.since(row) for column in self._narrow()],
            self.values.values[have.values :],
            [{name: getattr(one, name) for name in Connection.STATE} for one in changed.values()],
            self.left_out,
        )

    @property
    def size(self) -> Have:
        """How much there is."""
        return Have(len(self.started_ns), len(self.values.values))

    def extend(self, part: IndexPart) -> None:
        """Adds what another index gave by ``since``."""
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
        self.values.values += part.values
        for state in part.connections:
            connection = self.connections.setdefault(state["id"], Connection(0, "", ""))
            for name, value in state.items():
                setattr(connection, name, value)
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
        client_id = self.values.values[self.client_id.get(row)]
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
        found = self.values.values[self.names.get(row)]
        if not isinstance(found, tuple):
            return (), ()
        return (found[0], found[1]) if len(found) == 2 else (found, ())

    def errors_of(self, row: int) -> tuple[str, ...]:
        """The names of the errors of a row, each once."""
        found = self.values.values[self.errors.get(row)]
        return found if isinstance(found, tuple) else ()

    def latency_ns(self, row: int) -> int:
        """The latency of a row, ``UNKNOWN_NS`` where there is none."""
        if self.flags[row] & (REQUEST | RESPONSE) != REQUEST | RESPONSE:
            return UNKNOWN_NS
        wait_ns = self.wait_ns.get(row)
        return wait_ns if wait_ns >= 0 else UNKNOWN_NS

    def _narrow(self) -> list[Narrow]:
        return [getattr(self, name) for name in _NARROW]


def _error_names(exchange: Exchange) -> tuple[str, ...]:
    """The names of the errors, each once."""
    if len(exchange.errors) == 1:
        return (exchange.errors[0][2],)
    return tuple(dict.fromkeys([name for _, _, name, _ in exchange.errors]))
