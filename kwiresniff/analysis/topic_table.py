"""All topics that traffic names, with their partitions and clients, in bounded memory.

What finds no room is counted in ``left_out``; nothing that is remembered is given up for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kwiresniff.analysis.latency import BUCKET_BYTES
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, NUMBER_BYTES, MemoryBudget, text_bytes
from kwiresniff.analysis.topic_state import (
    MORE_BUCKETS,
    ClientPartition,
    ClientState,
    Identity,
    PartitionState,
    RowHistogram,
    Sender,
    TopicState,
)
from kwiresniff.base.flows import host_of
from kwiresniff.digest import TopicDigest
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Exchange

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Names, rows and numbers of everything: ten thousand topics of a hundred partitions each.
MAX_REMEMBERED_BYTES = 64 << 20
#: A topic or a client beside its names; the histograms of a client are most of it.
ROW_BYTES = 4_500
#: A partition, and what is known of it for each of its clients.
PARTITION_BYTES = 1_000
CLIENT_PARTITION_BYTES = 320
#: Groups of a client, which its rows have under each of its topics.
MAX_GROUPS = 100
#: Connections of which it is remembered who speaks on them; one takes the place of another.
MAX_SENDERS: Final = 512


class TopicTable:
    """What is remembered, by the node of ``clusters`` and the topic's name, or its id where it was named by that
    (``ids``).

    ``turn`` counts the exchanges, which are not always in the order of their times; ``node`` is that of the exchange
    that is looked at. ``count`` is the number of topics, those of one name at several nodes included.
    """

    def __init__(self, clusters: Clusters | None = None) -> None:
        self.turn = 0
        self.node = 0
        self.clusters = clusters or Clusters()
        self.topics: dict[int, dict[str, TopicState]] = {}
        self.ids: dict[str, None] = {}
        self.groups: dict[int, dict[Identity, dict[str, None]]] = {}
        self.count = 0
        self.budget = MemoryBudget(MAX_REMEMBERED_BYTES)
        self._senders: list[Sender | None] = [None] * MAX_SENDERS  # by their connections' numbers

    @property
    def left_out(self) -> int:
        """Names and rows that found no room."""
        return self.budget.refused

    def note(self, names: dict[str, None], name: str) -> None:
        """Remember a name among others, if there is room."""
        if name not in names and self.budget.admit_or_count(ENTRY_BYTES + text_bytes(name)):
            names[name] = None

    def topic(self, named: TopicDigest, sender: Sender, ns: int) -> TopicState | None:
        """What is remembered of a topic that a message has named at ``ns``; None where there is no room for it."""
        name = named.name
        topic = sender.topic
        if topic is None or topic.name != name:
            topic = sender.topics.get(name)
        if topic is None:
            if not self.budget.admit_or_count(ROW_BYTES + text_bytes(name)):
                return None
            topic = sender.topics[name] = TopicState(name, ns, sender.node)
            self.count += 1
            if named.is_id:
                self.ids[name] = None
        if ns > topic.last_ns:
            topic.last_ns = ns
        return topic

    def siblings(self, topic: TopicState, index: int) -> list[PartitionState]:
        """A partition of the topic at other nodes, as far as they may be of the same cluster: its leader moves."""
        if len(self.topics) < 2:
            return []
        clusters = self.clusters
        version = clusters.version + self.count
        if topic.version != version:
            topic.version = version
            topic.siblings = [one for one in self.named(topic.name, topic.node) if one is not topic]
        return [one.partitions[index] for one in topic.siblings if index in one.partitions]

    def named(self, name: str, node: int) -> list[TopicState]:
        """The topic of a name at a node, first, and at others that may be of the same cluster."""
        own = self.topics.get(node, {}).get(name)
        found = [] if own is None else [own]
        if len(self.topics) > 1:
            clusters = self.clusters
            found += [
                topics[name]
                for other, topics in self.topics.items()
                if other != node and name in topics and clusters.scope(other) == clusters.scope(node)
            ]
        return found

    def partition(self, topic: TopicState, client: ClientState | None, index: i64) -> PartitionState | None:
        """One of its partitions, which a ``client`` of it asks for; None where there is no room for it."""
        last = client.last_partition if client is not None else None
        if last is not None and last.index == index:
            return last.state
        partition = topic.partitions.get(index)
        if partition is None:
            if not self.budget.admit_or_count(PARTITION_BYTES):
                return None
            partition = topic.partitions[index] = PartitionState()
        return partition

    def client(self, topic: TopicState, role: str, sender: Sender, ns: int) -> ClientState | None:
        """The client of the topic that ``sender`` is in a role; None where there is no room for it."""
        client = sender.client
        if client is not None and sender.topic is topic and sender.role == role:
            client.last_ns, client.turn = ns, self.turn
            return client
        key = (role, sender.identity)
        client = topic.clients.get(key)
        if client is None:
            client_id, address, _, principal = sender.identity
            if not self.budget.admit_or_count(ROW_BYTES + text_bytes(client_id, address, principal)):
                return None
            client = topic.clients[key] = ClientState(role, ns)
        sender.role, sender.topic, sender.client = role, topic, client
        client.last_ns, client.turn = ns, self.turn
        return client

    def note_partition(self, client: ClientState, partition: PartitionState, index: i64) -> ClientPartition | None:
        """Note that a client has to do with a partition; None where there is no room for that."""
        known = client.known(index)
        if known is None:
            if not self.budget.admit_or_count(CLIENT_PARTITION_BYTES):
                return None
            known = client.partitions[index] = ClientPartition(index, partition)
        client.last_partition = known
        return known

    def note_bytes(self, client: ClientState, broker: str, size_bytes: int) -> None:
        """Count bytes of batches that went between a client and a broker, if there is room for that."""
        known = client.brokers.get(broker)
        if known is not None or self.budget.admit_or_count(ENTRY_BYTES + NUMBER_BYTES):
            client.brokers[broker] = (known or 0) + size_bytes

    def measured(self, histogram: RowHistogram, ns: int) -> None:
        """Count a time, if there is room for the bucket that it may need."""
        if len(histogram.buckets) >= histogram.room:
            if not self.budget.admit_or_count(MORE_BUCKETS * BUCKET_BYTES):
                return
            histogram.room += MORE_BUCKETS
        histogram.add(ns)

    def speaks_for(self, exchange: Exchange, groups: list[str]) -> None:
        """The groups of which a member has sent the request of an exchange."""
        for group in groups:
            identity = self.identity(exchange)
            at_node = self.groups.setdefault(self.node, {})
            known = at_node.get(identity)
            if known is None:
                if not self.budget.admit_or_count(ENTRY_BYTES + CONTAINER_BYTES + text_bytes(identity[0], identity[1])):
                    return
                known = at_node[identity] = {}
            if len(known) < MAX_GROUPS:
                self.note(known, group)
            elif group not in known:
                self.budget.refused += 1

    def identity(self, exchange: Exchange) -> Identity:
        """The identity of the client that sent the request of an exchange, as far as its connection shows it."""
        return self.sender(exchange).identity

    def sender(self, exchange: Exchange) -> Sender:
        """Who sent the request of an exchange."""
        connection = exchange.connection
        software, sasl = connection.client_software, connection.sasl
        principal = None if sasl is None else sasl.get("principal")
        place: i64 = connection.id % MAX_SENDERS
        sender = self._senders[place]
        if sender is None or not sender.is_by(connection.id, exchange.client_id, software, principal, self.node):
            reported = software or {}
            named = (reported.get("name"), reported.get("version"))
            identity = (exchange.client_id, host_of(connection.client), named, principal)
            sender = self._senders[place] = Sender(
                connection.id,
                connection.broker,
                identity,
                software,
                self.node,
                self.topics.setdefault(self.node, {}),
            )
        return sender
