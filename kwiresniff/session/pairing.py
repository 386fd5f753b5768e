"""Requests that wait for their response.

Brokers answer the requests of one connection in order (protocol guide, "Network"), and a client that reuses a
correlation id while it is outstanding therefore gets the older answer first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from kwiresniff.model import Exchange

#: Requests outstanding on one connection. Clients send 5 (Java) to some 1,000 (librdkafka) before they wait.
MAX_PENDING = 10_000


class Pending:
    """Outstanding requests of one connection by correlation id; ``by_id`` is read by the response search."""

    __slots__ = ("by_id", "count")

    def __init__(self) -> None:
        self.by_id: dict[int, Exchange | deque[Exchange]] = {}
        self.count = 0

    def add(self, exchange: Exchange) -> Exchange | None:
        """Remember a request; returns the oldest one when there are too many, which is then forgotten."""
        by_id = self.by_id
        older = by_id.get(exchange.correlation_id)
        if older is None:
            by_id[exchange.correlation_id] = exchange
        elif isinstance(older, deque):
            older.append(exchange)
        else:
            by_id[exchange.correlation_id] = deque((older, exchange))
        self.count += 1
        if self.count > MAX_PENDING:
            return self.take(next(iter(by_id)))
        return None

    def take(self, correlation_id: int) -> Exchange | None:
        """The oldest outstanding request with that correlation id, removed; None when there is none."""
        found = self.by_id.pop(correlation_id, None)
        if found is None:
            return None
        self.count -= 1
        if isinstance(found, deque):
            first = found.popleft()
            self.by_id[correlation_id] = found if len(found) > 1 else found[0]
            return first
        return found

    def drain(self) -> Iterator[Exchange]:
        """Every outstanding request, oldest first as far as ids were not reused; the table is empty afterwards."""
        while self.by_id:
            exchange = self.take(next(iter(self.by_id)))
            if exchange is not None:
                yield exchange
