"""Clients that learn the brokers' addresses at a bootstrap address, leave it, and are not seen again.

aiokafka and kafka-python ask for the brokers alone (Metadata without topics), close the connection and dial those. They
send nothing more where these do not resolve or answer; a capture without the other brokers looks the same.
"""

from __future__ import annotations

from kwiresniff.analysis.doctor.bodies import request_body
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, clipped
from kwiresniff.analysis.places import place_of
from kwiresniff.model import Connection, Exchange

#: Exchanges up to that answer: ApiVersions and Metadata; with an authentication before them.
FIRST, AUTHENTICATED = 2, 7
#: A client that leaves so soon after the answer has learned where to go.
LEARNT_NS = 1_000_000_000
#: Connections whose clients were just told the brokers, and clients that did more than ask for them.
MAX_TOLD = 10_000
MAX_BUSY = 10_000
_NEVER = 0, 0


class Bootstraps:
    """The clients that left a bootstrap address, and those that did more than ask there."""

    def __init__(self, context: Context) -> None:
        self._context = context
        #: By connection: when the brokers were named to who asked for nothing else, and the exchanges until then.
        self._told: dict[int, tuple[int, int]] = {}
        self._left = context.tally()
        self._busy: set[tuple[str, str]] = set()

    def exchange(self, exchange: Exchange) -> None:
        connection = exchange.connection
        if _is_for_brokers(exchange) and not exchange.errors and len(self._told) < MAX_TOLD:
            self._told[connection.id] = place_of(exchange)[1], sum(connection.exchanges.values())

    def connection(self, connection: Connection, host: str) -> None:
        name = connection.client_id or ""
        told_ns, count = self._told.pop(connection.id, _NEVER) if self._told else _NEVER
        if not told_ns or not _is_nothing_else(connection, count):
            key = clipped(name), host
            if key not in self._busy and self._context.has_room(self._busy, MAX_BUSY, *key):
                self._busy.add(key)
        elif (
            connection.closed_by == "client"
            and connection.handshake_seen
            and connection.closed_ns < told_ns + LEARNT_NS
        ):
            case = self._left.case(f"{clipped(name)}\0{host}", connection.broker)
            case.add(connection.closed_packet, connection.closed_ns)

    def left(self, host: str, broker: str) -> dict[str, Case]:
        """The clients, by name, that left a bootstrap address and did nothing anywhere; one without a name may be any
        of them."""
        gone: dict[str, Case] = {}
        for subject, at, case in self._left:
            name, _, client = subject.partition("\0")
            if (client, at) == (host, broker) and (name, host) not in self._busy and ("", host) not in self._busy:
                gone[name] = case
        return gone


def _is_nothing_else(connection: Connection, count: int) -> bool:
    """Whether a connection had no more than it takes to learn the brokers: ``count`` exchanges, the last of which may
    not have been counted yet."""
    total, first = sum(connection.exchanges.values()), AUTHENTICATED if connection.sasl is not None else FIRST
    return total <= count + 1 and total <= first + connection.exchanges.get("error", 0)


def _is_for_brokers(exchange: Exchange) -> bool:
    """Whether a Metadata request asks for no topic: an empty list, which before version 1 meant all of them."""
    return exchange.api_version > 0 and request_body(exchange).get("topics") == []
