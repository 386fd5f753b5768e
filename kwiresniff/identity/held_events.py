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
from kwiresniff.model import Event, Exchange

#: Bytes of requests and responses that wait, with what their objects take: some seconds of a busy broker.
MAX_WAITING_BYTES: Final = 32 << 20
#: An event with its objects, beside the bytes of its frames.
EVENT_BYTES: Final = 2_000


class HeldEvents:
    """Passes events on in the order in which they came, as soon as it is known which brokers are one cluster."""

    def __init__(
        self, clusters: Clusters, node_of: Callable[[Exchange], int], pass_on: Callable[[Event], None]
    ) -> None:
        """``node_of`` learns from an exchange and returns its node of ``clusters``."""
        self._clusters = clusters
        self._node_of = node_of
        self._pass_on = pass_on
        self._held: list[tuple[Event, int]] = []
        self._held_bytes = 0
        self._is_full = False

    def take(self, event: Event) -> None:
        """Takes an event, and passes on what need not wait."""
        if self._is_full:
            self._pass_on(event)
            return
        size, node = EVENT_BYTES, 0
        if isinstance(event, Exchange):
            node = self._node_of(event)
            for message in (event.request, event.response):
                if message is not None and message.frame is not None:
                    size += len(message.frame)
        if not self._clusters.is_watching:
            self.release()
            self._pass_on(event)
            return
        self._held.append((event, node))
        self._held_bytes += size
        if self._held_bytes > MAX_WAITING_BYTES:
            self._is_full = True
            self.release()

    def release(self) -> None:
        """Passes on all that waits: there is no more to come."""
        held, self._held, self._held_bytes = self._held, [], 0
        for event, node in held:
            if isinstance(event, Exchange):
                self._clusters.recall(event, node)
            self._pass_on(event)
