"""The flow table: the half stream and the connection that the segments of each flow belong to."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.base.light_typing import TYPE_CHECKING, ClassVar
from kwiresniff.session.connection import ConnectionAnalyzer
from kwiresniff.session.endpoint import Endpoint
from kwiresniff.stream.half_stream import HalfStream

if TYPE_CHECKING:
    from kwiresniff.stream.buffer_owner import BufferOwner


class FlowTable:
    """Two entries a connection, one for each of its directions.

    ``open`` has those of connections that are simply open: a segment of one of them that neither begins nor ends
    anything need not come by here. ``transient`` has those whose connection is opening or ending: all their segments
    come by here.
    """

    STATE: ClassVar[tuple[str, ...]] = ("open", "transient")
    __slots__ = STATE

    def __init__(self) -> None:
        self.open: dict[bytes, Endpoint] = {}
        self.transient: dict[bytes, Endpoint] = {}

    def find(self, flow: bytes) -> Endpoint | None:
        """The entry of a flow, None where there is none."""
        return self.open.get(flow) or self.transient.get(flow)

    def add(self, connection: ConnectionAnalyzer) -> Endpoint:
        """Adds both directions of a connection, as open; returns the entry of its client, as far as that is known."""
        client, broker = connection.client, connection.broker
        added = Endpoint(client, broker, connection)
        for one in (added, Endpoint(broker, client, connection)):
            self.open[one.half.flow] = one
            self.transient.pop(one.half.flow, None)
        return added

    def move_to_open(self, half: HalfStream) -> None:
        """Notes that the connection of a half stream is open."""
        _move(self.transient, self.open, half)

    def move_to_transient(self, half: HalfStream) -> None:
        """Notes that the connection of a half stream is opening or ending."""
        _move(self.open, self.transient, half)

    def remove(self, connection: ConnectionAnalyzer) -> None:
        """Removes the entries of a connection; those of another on the same flows stay."""
        for half in (connection.client, connection.broker):
            for table in (self.open, self.transient):
                one = table.get(half.flow)
                if one is not None and one.half is half:
                    del table[half.flow]

    def forget(self, flow: bytes, other_flow: bytes) -> None:
        """Stops following the connection with these flows."""
        for one in (flow, other_flow):
            self.open.pop(one, None)
            self.transient.pop(one, None)

    def connections(self) -> list[ConnectionAnalyzer]:
        """Every connection once, those that are open first."""
        ends = [*self.open.values(), *self.transient.values()]
        return list({id(one.connection): one.connection for one in ends}.values())

    def owners(self) -> Iterator[BufferOwner]:
        """Everything that buffers bytes: connections, their half streams, and the connections inside TLS."""
        for connection in self.connections():
            for one in (connection, connection.carried):
                if one is not None:
                    yield Endpoint(one.client, one.broker, one)
                    yield Endpoint(one.broker, one.client, one)
                    yield one


def _move(table: dict[bytes, Endpoint], other: dict[bytes, Endpoint], half: HalfStream) -> None:
    """Move the entry of a half stream, if it is in ``table``, to the ``other``."""
    one = table.get(half.flow)
    if one is not None and one.half is half:
        other[half.flow] = table.pop(half.flow)
