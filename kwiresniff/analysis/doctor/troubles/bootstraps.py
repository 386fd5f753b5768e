"""Clients that learn the brokers' addresses at a bootstrap address, leave it, and are not seen again.

aiokafka and kafka-python ask for the brokers alone (Metadata without topics), close the connection, and dial what they
were told. Where that does not resolve, or nobody has the address, they send nothing more. So it looks as well where
they go to brokers that the capture does not have, which is why it is told with the doubt.
"""

from __future__ import annotations

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, clipped
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.model import Connection, Exchange

#: Exchanges up to that answer: ApiVersions and Metadata, before it an authentication.
FIRST, AUTHENTICATED = 2, 7
#: A client that leaves so soon after the answer has learnt where to go, and dials that at once.
LEARNT_NS = 1_000_000_000
#: Connections whose clients were just told the brokers, and clients that did more than ask for them.
MAX_TOLD = 10_000
MAX_BUSY = 10_000
_NEVER = 0, 0


class Bootstraps:
    """Who left a bootstrap address, and who did more than ask there."""

    def __init__(self, context: Context) -> None:
        self._context = context
        #: By connection: when the brokers were named to who wanted nothing else, and the exchanges until then.
        self._told: dict[int, tuple[int, int]] = {}
        self._left = context.tally()
        self._busy: set[tuple[str, str]] = set()

    def exchange(self, exchange: Exchange) -> None:
        """Notes a Metadata exchange that names the brokers to who wants nothing else."""
        connection = exchange.connection
        if _is_for_brokers(exchange) and not exchange.errors and len(self._told) < MAX_TOLD:
            self._told[connection.id] = place_of(exchange)[1], sum(connection.exchanges.values())

    def connection(self, connection: Connection, host: str) -> None:
        """Notes whether a client at ``host`` did more on a connection than ask, or left as soon as it was told."""
        name = connection.client_id or ""
        told_ns, count = self._told.pop(connection.id, _NEVER) if self._told else _NEVER
        if not told_ns or not _is_nothing_else(connection, count):
            if (name, host) not in self._busy:
                self._note_busy(clipped(name), host)
        elif (
            connection.closed_by == "client"
            and connection.handshake_seen
            and connection.closed_ns - told_ns < LEARNT_NS
        ):
            case = self._left.case(f"{clipped(name)}\0{host}", connection.broker)
            case.add(connection.closed_packet, connection.closed_ns)

    def _note_busy(self, name: str, host: str) -> None:
        room = len(self._busy) < MAX_BUSY and (name, host) not in self._busy
        if room and self._context.budget.admit(ENTRY_BYTES + text_bytes(name, host)):
            self._busy.add((name, host))

    def left(self, host: str, broker: str) -> dict[str, Case]:
        """The clients at a host that left a bootstrap address and did nothing anywhere, by name. One without a name
        may be any of them."""
        gone: dict[str, Case] = {}
        for subject, at, case in self._left:
            name, _, client = subject.partition("\0")
            if (client, at) == (host, broker) and (name, host) not in self._busy and ("", host) not in self._busy:
                gone[name] = case
        return gone


def _is_nothing_else(connection: Connection, count: int) -> bool:
    """Whether no more passed on a connection than it takes to be told the brokers: so many exchanges, of which the last
    may have been counted or not."""
    total, first = sum(connection.exchanges.values()), AUTHENTICATED if connection.sasl is not None else FIRST
    return total <= count + 1 and total <= first + connection.exchanges.get("error", 0)


def _is_for_brokers(exchange: Exchange) -> bool:
    """Whether a Metadata request asks for no topic: an empty list, which before version 1 meant all of them."""
    asked = exchange.request.body if exchange.request is not None else None
    return exchange.api_version > 0 and asked is not None and asked.get("topics") == []
