"""Requests that wait for their response.

Brokers answer the requests of one connection in order (protocol guide, "Network"), and a client that reuses a
correlation id while it is outstanding therefore gets the older answer first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from kwiresniff.model import Exchange

#: Requests outstanding on one connection. Clients send 5 (Java) to some 1,000 (librdkafka) before they wait.
MAX_PENDING: Final = 10_000
#: Bytes of large requests held on one connection while they wait: five of Java's largest usual ones (``batch.size``
#: and ``max.request.size`` at 10 MB) and some room. Smaller ones are bounded by their number.
MAX_PENDING_BYTES = 64 << 20
LARGE_BYTES: Final = 65536


def oldest(found: Exchange | deque[Exchange]) -> Exchange:
    """The oldest of the requests outstanding under one id."""
    return found[0] if isinstance(found, deque) else found


class Pending:
    """Outstanding requests of one connection.

    ``by_id`` maps a correlation id to its request, or to several in order while it is reused. The usual case, an id
    of its own, is stored and taken by the connection itself without a call.
    """

    __slots__ = ("_gone", "by_id", "reused")

    def __init__(self) -> None:
        self.by_id: dict[int, Exchange | deque[Exchange]] = {}
        self._gone = 0  # taken from the front since the table was made
        self.reused = 0  # requests beyond the first of each id

    def add_reused(self, exchange: Exchange) -> None:
        """Remember a request whose correlation id is outstanding already."""
        older = self.by_id[exchange.correlation_id]
        if isinstance(older, deque):
            older.append(exchange)
        else:
            self.by_id[exchange.correlation_id] = deque((older, exchange))
        self.reused += 1

    def held_bytes(self) -> int:
        """Bytes of frames held."""
        waiting = (one for found in self.by_id.values() for one in (found if isinstance(found, deque) else (found,)))
        return sum(len(one.request.frame) for one in waiting if one.request and one.request.frame)

    def take_oldest(self) -> Exchange:
        """Remove and return the oldest request, as far as ids were not reused."""
        correlation_id = next(iter(self.by_id))
        self._gone += 1
        if self._gone > 64 + len(self.by_id) // 8:
            # The first of a dict is found by passing over the places of all that were before it.
            self._gone = 0
            self.by_id = dict(self.by_id.items())
        return self.first_of(correlation_id, self.by_id.pop(correlation_id))

    def first_of(self, correlation_id: int, found: Exchange | deque[Exchange]) -> Exchange:
        """The oldest of what was found (and removed) under an id; the others stay outstanding."""
        if not isinstance(found, deque):
            return found
        first = found.popleft()
        self.reused -= 1
        self.by_id[correlation_id] = found if len(found) > 1 else found[0]
        return first

    def overtaken_by(self, correlation_id: int, answers: Callable[[Exchange], bool]) -> Iterator[Exchange]:
        """Remove and yield the requests older than the one that a response with this id answers, if there is one.

        That is the newest with the id of those for which ``answers`` says that it can be.
        """
        found = self.by_id.get(correlation_id)
        if found is None:
            return
        same = list(found) if isinstance(found, deque) else [found]
        fitting = [index for index, exchange in enumerate(same) if answers(exchange)]
        if not fitting:
            return
        while next(iter(self.by_id)) != correlation_id:
            yield self.take_oldest()
        for _ in range(fitting[-1]):
            yield self.first_of(correlation_id, self.by_id.pop(correlation_id))

    def drain(self) -> Iterator[Exchange]:
        """Every outstanding request; the table is empty afterwards."""
        while self.by_id:
            yield self.take_oldest()
