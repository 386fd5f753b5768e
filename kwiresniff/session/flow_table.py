"""The flow table: the half stream and the connection that the segments of each flow belong to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from kwiresniff.session.attempt import Attempt
from kwiresniff.session.connection import ConnectionAnalyzer
from kwiresniff.stream.half_stream import HalfStream

if TYPE_CHECKING:
    from kwiresniff.stream.buffer_owner import BufferOwner


class Endpoint:
    """One half stream of a connection, its peer, and the connection."""

    STATE: ClassVar[tuple[str, ...]] = ("connection", "half", "peer")
    __slots__ = STATE

    def __init__(self, half: HalfStream, peer: HalfStream, connection: ConnectionAnalyzer) -> None:
        self.half = half
        self.peer = peer
        self.connection = connection

    def begin(self, data: bool) -> bool:
        """Have the half stream ready for a segment, with ``data`` or without; False when it has ended."""
        if self.half.closed:
            return False
        if data:
            self.connection.start()
        return True

    def held_bytes(self) -> int:
        """Memory that the half stream holds."""
        return self.half.held_bytes()

    def release(self) -> None:
        """Releases that memory."""
        self.half.release(self.connection)


class FlowTable:
    """Two entries a connection, one for each of its directions.

    ``open`` has those of connections that are simply open: a segment of one of them that neither begins nor ends
    anything need not come by here. ``transient`` has those whose connection is opening or ending: all their segments
    come by here. Both entries of a connection are there, or none. ``attempts`` has those that are no connections yet,
    by the flow of their SYN.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_silent", "attempts", "open", "transient")
    __slots__ = STATE

    def __init__(self) -> None:
        self.open: dict[bytes, Endpoint] = {}
        self.transient: dict[bytes, Endpoint] = {}
        self.attempts: dict[bytes, Attempt] = {}
        self._silent: deque[tuple[int, bytes]] = deque()  # (since when, flow) of all, as they last were sorted

    def find(self, flow: bytes) -> Endpoint | None:
        """The entry of a flow, None where there is none."""
        return self.open.get(flow) or self.transient.get(flow)

    def add(self, connection: ConnectionAnalyzer, *, opening: bool) -> Endpoint:
        """Adds both directions of a connection that is opening or open; returns its client's entry."""
        client, broker = connection.client, connection.broker
        added = Endpoint(client, broker, connection)
        table = self.transient if opening else self.open
        table[client.flow] = added
        table[broker.flow] = Endpoint(broker, client, connection)
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

    def __len__(self) -> int:
        """The number of connections and attempts."""
        return (len(self.open) + len(self.transient)) // 2 + len(self.attempts)

    def longest_idle(self) -> bytes:
        """A flow of the connection or attempt silent longest; all are sorted again when those sorted before have
        spoken.
        """
        silent = self._silent
        while True:
            if not silent:
                silent.extend(sorted(self._silences()))
            since_ns, flow = silent.popleft()
            if self._last_ns(flow) == since_ns:
                return flow

    def _silences(self) -> list[tuple[int, bytes]]:
        """Since when each connection and attempt has been silent, and a flow of it."""
        connections = [(one.last_ns(), one.client.flow) for one in self.connections()]
        return connections + [(one.last_ns, one.flow) for one in self.attempts.values()]

    def _last_ns(self, flow: bytes) -> int:
        """When something was last seen of the connection or attempt with this flow; -1 where there is none."""
        attempt = self.attempts.get(flow)
        if attempt is not None:
            return attempt.last_ns
        one = self.find(flow)
        return -1 if one is None else one.connection.last_ns()

    def owners(self) -> Iterator[BufferOwner]:
        """Everything that buffers bytes: connections, their half streams, and the connections inside TLS."""
        for connection in self.connections():
            for one in (connection, connection.carried):
                if one is not None and one.started:
                    yield Endpoint(one.client, one.broker, one)
                    yield Endpoint(one.broker, one.client, one)
                    yield one


def _move(table: dict[bytes, Endpoint], other: dict[bytes, Endpoint], half: HalfStream) -> None:
    """Move the entry of a half stream, if it is in ``table``, to the ``other``."""
    one = table.get(half.flow)
    if one is not None and one.half is half:
        other[half.flow] = table.pop(half.flow)
