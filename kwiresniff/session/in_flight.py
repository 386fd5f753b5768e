"""In-flight requests: those without a response yet.

Brokers answer the requests of one connection in order (protocol guide, "Network"), and a client that reuses a
correlation id while it is outstanding therefore gets the older answer first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from kwiresniff.model import Exchange
from kwiresniff.stream.buffer_budget import EXCHANGE_BYTES

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Requests outstanding on one connection. Clients send 5 (Java) to some 1,000 (librdkafka) before they wait.
MAX_IN_FLIGHT: Final = 10_000
#: Memory of requests that wait on one connection: five of 10 MB (``max.request.size``) and some room.
MAX_IN_FLIGHT_BYTES: Final = 64 << 20

#: Below this there are not too many of them, by number or memory.
MANY_IN_FLIGHT_BYTES: Final = min(MAX_IN_FLIGHT * EXCHANGE_BYTES, MAX_IN_FLIGHT_BYTES)

#: Correlation id -> its request, or several in order while the id is reused.
Outstanding: TypeAlias = "dict[int, Exchange | deque[Exchange]]"


def request_bytes(exchange: Exchange) -> i64:
    """The memory of a waiting request in bytes; a byte of its client id counts four, its length escaped."""
    size: i64 = EXCHANGE_BYTES
    request, client_id = exchange.request, exchange.client_id
    if request is not None and request.frame is not None:
        size += len(request.frame)
    return size if client_id is None else size + 4 * len(client_id)


class InFlightRequests:
    """Requests in flight by correlation id, a deque for a reused one; ``bytes`` is their memory. Requests with ids of
    their own are stored and taken without a call.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_gone", "by_id", "bytes", "reused")
    __slots__ = STATE

    def __init__(self) -> None:
        self.by_id: Outstanding = {}
        self._gone = 0  # taken from the front since the table was made
        self.bytes: i64 = 0
        self.reused = 0  # requests beyond the first of each id

    def oldest_ns(self) -> int:
        """When the first byte of the oldest request came, in nanoseconds since 1970; 0 where there is none."""
        if not self.by_id:
            return 0
        found = next(iter(self.by_id.values()))
        oldest = found[0] if isinstance(found, deque) else found
        return 0 if oldest.request is None else oldest.request.first_ns

    def add_reused(self, exchange: Exchange) -> None:
        """Adds a request whose correlation id is in flight already."""
        older = self.by_id[exchange.correlation_id]
        if isinstance(older, deque):
            older.append(exchange)
        else:
            self.by_id[exchange.correlation_id] = deque((older, exchange))
        self.reused += 1

    def pop_oldest(self) -> Exchange:
        """Remove and return the oldest request, as far as ids were not reused."""
        correlation_id = next(iter(self.by_id))
        self._gone += 1
        if self._gone > 64 + len(self.by_id) // 8:
            # The first of a dict is found by passing over the places of all that were before it.
            self._gone = 0
            self.by_id = dict(self.by_id.items())
        exchange = self.first_of(correlation_id, self.by_id.pop(correlation_id))
        self.bytes -= request_bytes(exchange)
        return exchange

    def first_of(self, correlation_id: int, found: Exchange | deque[Exchange]) -> Exchange:
        """The oldest of the requests ``found`` under a correlation id; its memory is still counted."""
        if not isinstance(found, deque):
            return found
        first = found.popleft()
        self.reused -= 1
        self.by_id[correlation_id] = found if len(found) > 1 else found[0]
        return first

    def may_overtake(self, correlation_id: int) -> bool:
        """Whether a response with this id may answer a request that is not the oldest."""
        found = self.by_id.get(correlation_id)
        return found is not None and (isinstance(found, deque) or next(iter(self.by_id)) != correlation_id)

    def overtaken_by(self, correlation_id: int, answers: Callable[[Exchange], bool]) -> Iterator[Exchange]:
        """Removes and yields requests older than the newest one that a response with this id ``answers``."""
        found = self.by_id.get(correlation_id)
        if found is None:
            return
        same = list(found) if isinstance(found, deque) else [found]
        fitting = [index for index, exchange in enumerate(same) if answers(exchange)]
        if not fitting:
            return
        while next(iter(self.by_id)) != correlation_id:
            yield self.pop_oldest()
        for _ in range(fitting[-1]):
            exchange = self.first_of(correlation_id, self.by_id.pop(correlation_id))
            self.bytes -= request_bytes(exchange)
            yield exchange

    def drain(self) -> Iterator[Exchange]:
        """Every outstanding request; the table is empty afterwards."""
        while self.by_id:
            yield self.pop_oldest()
