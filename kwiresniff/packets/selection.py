"""Which bytes of which connections chosen exchanges need, and what is said of each in the capture that is written."""

from __future__ import annotations

from dataclasses import dataclass, field

from kwiresniff.base.flows import flow_between
from kwiresniff.errors import ExportError
from kwiresniff.model import Connection, Exchange, Message
from kwiresniff.packets.comments import comment_of, finding_comment
from kwiresniff.packets.stretches import Stretches
from kwiresniff.results.findings import Finding

#: Stretches of bytes, of all connections: they take 64 MB. Neighbouring exchanges are one stretch.
MAX_STRETCHES = 4_000_000
#: Exchanges with a comment on their first packet: comments take some 60 MB.
MAX_COMMENTS = 200_000
#: Bytes of the length in front of each frame.
_LENGTH_BYTES = 4


class Extent:
    """The sequence numbers of request and response (or None) and their ``last_packet``; ``taken`` if selected."""

    __slots__ = ("connection", "last_packet", "request", "response", "taken")

    def __init__(self, exchange: Exchange) -> None:
        self.connection = exchange.connection
        self.request = _place(exchange.request)
        self.response = _place(exchange.response)
        self.last_packet = max(one.last_packet for one in (exchange.request, exchange.response) if one is not None)
        self.taken = False


def _place(message: Message | None) -> tuple[int, int] | None:
    if message is None or message.end_seq < 0:
        return None
    return message.end_seq - message.size_bytes - _LENGTH_BYTES, message.end_seq


@dataclass(slots=True, eq=False)
class ChosenConnection:
    """A connection with chosen exchanges: client's flow, stretches of both directions, ``last_packet``."""

    connection: Connection
    flow: bytes
    requests: Stretches = field(default_factory=Stretches)
    responses: Stretches = field(default_factory=Stretches)
    last_packet: int = 0


class Selection:
    """The exchanges that were chosen. ``exchanges`` counts them, ``comments`` are on packets, by their references."""

    def __init__(self) -> None:
        self.exchanges = 0
        self.comments: dict[int, list[bytes]] = {}
        self.connections: dict[int, ChosenConnection] = {}

    def choose(self, exchange: Exchange) -> None:
        """Chooses an exchange, and adds a comment on it. Raises ExportError where there are too many."""
        self.exchanges += 1
        self.take(Extent(exchange))
        first = exchange.request or exchange.response
        if first is not None and self.exchanges <= MAX_COMMENTS:
            self.comments.setdefault(first.first_packet, []).append(comment_of(exchange).encode())

    def add_finding(self, finding: Finding, *, named: bool) -> None:
        """Adds a comment on a finding to the packets that show it; ``named`` allows names in it."""
        for packet, _ in finding.evidence:
            self.comments.setdefault(packet, []).append(finding_comment(finding, named=named).encode())

    def take(self, extent: Extent) -> None:
        """Takes the bytes of an exchange. Raises ExportError where they are in too many places."""
        if extent.taken:
            return
        extent.taken = True
        chosen = self._of(extent.connection)
        if extent.request is not None:
            chosen.requests.add(*extent.request)
        if extent.response is not None:
            chosen.responses.add(*extent.response)
        chosen.last_packet = max(chosen.last_packet, extent.last_packet)

    def take_opening(self, connection: Connection, requests: tuple[int, int], responses: tuple[int, int]) -> None:
        """Takes the bytes that a connection begins with, by either side."""
        chosen = self._of(connection)
        chosen.requests.add(*requests)
        chosen.responses.add(*responses)

    def _of(self, connection: Connection) -> ChosenConnection:
        chosen = self.connections.get(connection.id)
        if chosen is None:
            flow = flow_between(connection.client, connection.broker)
            chosen = self.connections[connection.id] = ChosenConnection(connection, flow)
        elif self.exchanges % 4096 == 0:
            self.check()
        return chosen

    def close(self) -> None:
        """Puts the places in order; nothing is chosen any more. Raises ExportError where they are too many."""
        self.check()
        for one in self.connections.values():
            one.requests.close()
            one.responses.close()

    def check(self) -> None:
        """Raises ExportError where the exchanges lie in too many places."""
        count = sum(one.requests.count + one.responses.count for one in self.connections.values())
        if count > MAX_STRETCHES:
            raise ExportError(
                f"the chosen exchanges lie in more than {MAX_STRETCHES:,} places; "
                "choose fewer with -Y, --since or --limit"
            )
