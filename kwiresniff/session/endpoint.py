"""The entry of one flow in the connection table."""

from __future__ import annotations

from typing import ClassVar

from kwiresniff.session.connection import ConnectionAnalyzer
from kwiresniff.stream.half_stream import HalfStream


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
