"""Waits of clients that were sent away from the old leader of a partition, until the new one serves them."""

from __future__ import annotations

from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.leader_table import Partition
from kwiresniff.analysis.doctor.quorum import LEADER_CODES
from kwiresniff.analysis.doctor.rule import Context
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.model import Exchange, FetchedTopics

#: Waits of clients for the new leaders of partitions.
MAX_WAITING = 5_000
#: A client that was served for so long and is sent away again waits anew, for the leader after the next change.
SERVED_NS = 1_000_000_000


class Wait:
    """A client that was sent away by ``broker``, and when it was served; -1 while it is not."""

    __slots__ = ("broker", "case", "longest_ns", "recovered_ns", "stale_errors")

    def __init__(self, case: Case, broker: str) -> None:
        self.case = case
        self.broker = broker
        self.recovered_ns = -1
        self.longest_ns = 0
        self.stale_errors = 0


class LeaderWaits:
    """All waits, each with its client and partition. ``unserved`` counts those that have not ended."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.waits: list[tuple[str, Partition, Wait]] = []
        self._newest: dict[tuple[str, Partition], Wait] = {}
        self.unserved = 0

    def begin(self, client: str, partition: Partition, exchange: Exchange, leader: int | None) -> bool:
        """Notes that a client was sent away in ``exchange``; False where there is no room for it.

        ``leader`` is the node that leads the partition, as far as that is known.
        """
        wait = self._newest.get((client, partition))
        broker = exchange.connection.broker
        if wait is None or 0 <= wait.recovered_ns < place_of(exchange)[1] - SERVED_NS:
            size = 10 * ENTRY_BYTES + text_bytes(client, partition[1])
            if len(self.waits) >= MAX_WAITING or not self.context.budget.admit(size):
                return False
            wait = self._newest[client, partition] = Wait(self.context.case(), broker)
            self.waits.append((client, partition, wait))
            self.unserved += 1
        elif wait.recovered_ns >= 0:
            wait.recovered_ns = -1
            self.unserved += 1
        wait.case.add(*place_of(exchange))
        wait.case.note("apis", [exchange.api])
        wait.case.note("errors", {name: None for _, _, name, _ in exchange.errors if name in LEADER_CODES})
        node = self.context.cluster.node_at(broker)
        wait.stale_errors += leader is not None and node is not None and leader != node
        return True

    def end(self, exchange: Exchange) -> None:
        """Ends the waits of a client for the partitions of a Produce or Fetch that succeeds."""
        body = exchange.request.body if exchange.request is not None else None
        if not body:
            return
        cluster, client = self.context.cluster.of(exchange.connection.broker), client_of(exchange)
        field = "topic_data" if exchange.api_key == PRODUCE else "topics"
        for topic in body.get(field) or ():
            name = clipped(self.context.topic_of(topic))
            for one in topic.get("partition_data") or topic.get("partitions") or ():
                partition = one.get("index", one.get("partition", -1))
                self._end(client, (cluster, name, partition), exchange)
        if exchange.fetched is not None:
            self._end_of_session(client, cluster, exchange, exchange.fetched)

    def _end_of_session(self, client: str, cluster: str, exchange: Exchange, fetched: FetchedTopics) -> None:
        """Ends the waits of a client for partitions of its fetch session, which may have thousands."""
        unserved = [of for (who, of), wait in self._newest.items() if who == client and wait.recovered_ns < 0]
        if not unserved:
            return
        topics = {clipped(self.context.topic_name(name) or name) for name in fetched.topics}
        numbers = set(fetched.partitions)
        for partition in unserved:
            if partition[0] == cluster and partition[1] in topics and partition[2] in numbers:
                self._end(client, partition, exchange)

    def _end(self, client: str, partition: Partition, exchange: Exchange) -> None:
        wait = self._newest.get((client, partition))
        if wait is not None and wait.recovered_ns < 0:
            wait.recovered_ns = place_of(exchange)[1]
            wait.longest_ns = max(wait.longest_ns, wait.recovered_ns - wait.case.first_ns)
            self.unserved -= 1
