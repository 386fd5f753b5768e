"""Events that wait until it is known which cluster they belong to.

Brokers that replicate or elect leaders do not tell their cluster's id, and clients ask for it once in five minutes.
What was counted before that cannot be taken apart again. So events are held back, all of them, in their order, as long
as there are several nodes and one of them may yet turn out to be of another cluster. The bound is in bytes: traffic
that is larger goes on as one cluster until something contradicts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Connection, ConnectionAttempt, Event, Exchange, ForwardingSink, Problem, Sink

#: Bytes of requests and responses that wait, with what their objects take: some seconds of a busy broker.
MAX_WAITING_BYTES = 32 << 20
#: An event with its objects, beside the bytes of its frames.
EVENT_BYTES: Final = 2_000


class HeldEvents(ForwardingSink):
    """Passes events on in the order in which they came, as soon as it is known which brokers are one cluster."""

    def __init__(self, next: Sink, clusters: Clusters, node_of: Callable[[Exchange], int]) -> None:
        """``node_of`` learns from an exchange and returns its node of ``clusters``."""
        super().__init__(next)
        clusters.is_ahead = True
        self._clusters = clusters
        self._node_of = node_of
        self._held: list[tuple[Event, int]] = []
        self._held_bytes = 0
        self._is_full = False

    def on_exchange(self, exchange: Exchange) -> None:
        node = self._node_of(exchange)
        if not self._clusters.is_watching or self._is_full:
            if self._held:
                self.release()
                self._clusters.recall(exchange, node)
            self.next.on_exchange(exchange)
            return
        size = EVENT_BYTES
        for message in (exchange.request, exchange.response):
            if message is not None and message.frame is not None:
                size += len(message.frame)
        self._hold(exchange, node, size)

    def on_connection(self, connection: Connection) -> None:
        if self._held:
            self._hold(connection)
        else:
            self.next.on_connection(connection)

    def on_attempt(self, attempt: ConnectionAttempt) -> None:
        if self._held:
            self._hold(attempt)
        else:
            self.next.on_attempt(attempt)

    def on_problem(self, problem: Problem) -> None:
        if self._held:
            self._hold(problem)
        else:
            self.next.on_problem(problem)

    def _hold(self, event: Event, node: int = 0, size: int = EVENT_BYTES) -> None:
        self._held.append((event, node))
        self._held_bytes += size
        if self._held_bytes > MAX_WAITING_BYTES:
            self._is_full = True
            self.release()

    def release(self) -> None:
        """Passes on all that waits; to be called when there is no more to come."""
        held, self._held, self._held_bytes = self._held, [], 0
        for event, node in held:
            if isinstance(event, Exchange):
                self._clusters.recall(event, node)
                self.next.on_exchange(event)
            elif isinstance(event, Connection):
                self.next.on_connection(event)
            elif isinstance(event, ConnectionAttempt):
                self.next.on_attempt(event)
            else:
                self.next.on_problem(event)
