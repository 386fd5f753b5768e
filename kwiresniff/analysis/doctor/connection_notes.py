"""Notes on connections on which brokers answer: what rules ask of them at every exchange is looked up once for all."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.evidence import Case, client_text
from kwiresniff.analysis.latency import Histogram
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.model import Connection, Exchange

#: Connections remembered.
MAX_CONNECTIONS = 20_000
#: The notes on one of them without the name of its client, in bytes of memory.
NOTES_BYTES: Final = ENTRY_BYTES + 200


class ConnectionNotes:
    """What is noted of a connection, with the client of its first response.

    ``answered_ns`` is when the last response came, ``before_ns`` when the one before it did. ``is_working`` says that
    its client got from bootstrapping to work, ``is_open`` that its broker is known to answer who has not authenticated.
    ``latencies`` are those of its broker and ``api_key``, the API that was spoken last; ``counted`` is what is counted
    of its client's requests of ``counted_api``, the last of which anything is.
    """

    __slots__ = (
        "answered_ns", "api_key", "before_ns", "client", "client_id", "counted", "counted_api", "is_open", "is_working",
        "latencies",
    )  # fmt: skip

    def __init__(self, client_id: str | None, client: str) -> None:
        self.client_id = client_id
        self.client = client
        self.answered_ns = 0
        self.before_ns = 0
        self.is_working = False
        self.is_open = False
        self.api_key = -1
        self.latencies: Histogram | None = None
        self.counted_api = -1
        self.counted: Case | None = None


class NotesByConnection:
    """The notes of an examination, until their connections end."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._on: dict[int, ConnectionNotes] = {}

    def of(self, exchange: Exchange) -> ConnectionNotes | None:
        """Notes on the connection of an exchange; None where there are too many."""
        number = exchange.connection.id
        found = self._on.get(number)
        if found is None and len(self._on) < MAX_CONNECTIONS:
            client = client_text(exchange.client_id, exchange.connection.client)
            if self._budget.admit(NOTES_BYTES + text_bytes(client)):
                found = self._on[number] = ConnectionNotes(exchange.client_id, client)
        return found

    def end(self, connection: Connection) -> int:
        """Forgets a connection; when the last response came on it, 0 where that is not known."""
        found = self._on.pop(connection.id, None)
        if found is None:
            return 0
        self._budget.release(NOTES_BYTES + text_bytes(found.client))
        return found.answered_ns
