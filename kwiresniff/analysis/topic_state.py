"""What is remembered of a topic while traffic goes by: flows, partitions, clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from kwiresniff.analysis.latency import Histogram
from kwiresniff.analysis.memory_budget import NUMBER_BYTES, MemoryBudget
from kwiresniff.base.batch_layout import CODEC_NAMES
from kwiresniff.digest import PartitionDigest
from kwiresniff.results.topics import TopicFlow

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Batches of a partition that were produced and not yet seen by every consumer: a second of a busy partition.
MAX_AWAITED: Final = 1_024
#: Base offset and time of a batch.
BATCH_BYTES: Final = 2 * NUMBER_BYTES

#: Batches of an idempotent producer that are told again by their sequences: as many as brokers remember of each
#: (KIP-98), because clients have no more in flight. They take so many bytes with the producer's id and epoch.
MAX_SEQUENCES: Final = 5
SEQUENCES_BYTES: Final = 600
#: Bytes of a producer's id and epoch.
_ID_BYTES: Final = 10

#: Buckets of each of a client's histograms for which there is room in its row, and for which more is asked at a time.
ROW_BUCKETS = 16
MORE_BUCKETS = 16

#: Client id, address, software, principal: who somebody is, on however many connections.
Identity: TypeAlias = tuple[str | None, str, tuple[str | None, str | None], str | None]


class RowHistogram(Histogram):
    """A histogram in a client's row; ``room`` is the number of buckets for which there is room."""

    __slots__ = ("room",)

    def __init__(self) -> None:
        super().__init__()
        self.room = ROW_BUCKETS


class Flow:
    """Counts of one way; see ``TopicFlow``."""

    __slots__ = ("batches", "records", "requests", "size_bytes")

    def __init__(self) -> None:
        self.requests = self.batches = self.records = self.size_bytes = 0

    def add(self, part: PartitionDigest) -> None:
        self.batches += part.batches
        self.records += part.records
        self.size_bytes += part.size_bytes

    def merge(self, other: Flow) -> None:
        self.requests += other.requests
        self.batches += other.batches
        self.records += other.records
        self.size_bytes += other.size_bytes

    def result(self) -> TopicFlow:
        return TopicFlow(self.requests, self.batches, self.records, self.size_bytes)


class PartitionState:
    """The state of a partition, from the messages of all clients.

    ``sequences`` are the last that it took of each idempotent producer, by its id and epoch.
    """

    __slots__ = ("awaited", "awaited_ns", "consumed", "high_watermark", "produced", "sequences")

    def __init__(self) -> None:
        self.produced = Flow()
        self.consumed = Flow()
        self.high_watermark = -1
        self.awaited: list[int] = []  # base offsets of batches produced, ascending, and when that was answered
        self.awaited_ns: list[int] = []
        self.sequences: dict[bytes, list[bytes]] = {}

    def knows(self, producer: bytes) -> bool:
        """Whether a batch with this id, epoch and base sequence of a producer is among the last that were taken."""
        return producer[_ID_BYTES:] in self.sequences.get(producer[:_ID_BYTES], ())

    def has_taken(self, producer: bytes, budget: MemoryBudget) -> bool:
        """Whether a batch with this id, epoch and base sequence of a producer was taken before; it has been, now."""
        who, sequence = producer[:_ID_BYTES], producer[_ID_BYTES:]
        known = self.sequences.get(who)
        if known is None:
            if not budget.admit(SEQUENCES_BYTES):
                return False
            known = self.sequences[who] = []
        if sequence in known:
            return True
        known.append(sequence)
        if len(known) > MAX_SEQUENCES:
            del known[0]
        return False

    def written(self, base_offset: int, ns: int, budget: MemoryBudget) -> None:
        """Notes a batch that was appended, with its response at ``ns``."""
        if (self.awaited and base_offset <= self.awaited[-1]) or not budget.admit(BATCH_BYTES):
            return
        self.awaited.append(base_offset)
        self.awaited_ns.append(ns)
        if len(self.awaited) > 2 * MAX_AWAITED:
            del self.awaited[:MAX_AWAITED], self.awaited_ns[:MAX_AWAITED]
            budget.release(MAX_AWAITED * BATCH_BYTES)


class ClientPartition:
    """A partition that a client has to do with: ``position`` is the offset that it fetches next, since ``fetched_ns``;
    both are -1 where it has not fetched from it. ``state`` is that of all clients."""

    __slots__ = ("fetched_ns", "index", "position", "state")

    def __init__(self, index: int, state: PartitionState) -> None:
        self.index: i64 = index
        self.state = state
        self.position: i64 = -1
        self.fetched_ns = -1


class ClientState:
    """A producer or consumer of one topic.

    ``waits`` are times from produce to consume, ``ages`` those from a record's timestamp to its delivery.
    ``batches`` counts those of each codec, by its number, ``named_batches`` those of which its name alone is known;
    ``brokers`` counts the bytes of all batches, taken or not, by the broker's address;
    ``last_partition`` is the one of its ``partitions`` that was asked for last: mostly the next one, too.
    """

    __slots__ = (
        "acks", "ages", "batches", "brokers", "errors", "first_ns", "flow", "idempotent", "last_ns", "last_partition",
        "named_batches", "partitions", "refused", "repeated", "role", "transactional_ids", "turn", "unanswered",
        "waits",
    )  # fmt: skip

    def __init__(self, role: str, first_ns: int) -> None:
        self.role = role
        self.flow = Flow()
        self.refused = Flow()
        self.repeated = Flow()
        self.errors = 0
        self.unanswered = 0
        self.batches = [0] * len(CODEC_NAMES)
        self.named_batches: dict[str, int] = {}
        self.brokers: dict[str, int] = {}
        self.acks: list[int] = []
        self.idempotent = False
        self.transactional_ids: dict[str, None] = {}
        self.partitions: dict[int, ClientPartition] = {}
        self.last_partition: ClientPartition | None = None
        self.waits = RowHistogram()
        self.ages = RowHistogram()
        self.first_ns = first_ns
        self.last_ns = first_ns
        self.turn = 0  # of the exchange that ``last_ns`` is of

    def known(self, index: i64) -> ClientPartition | None:
        """One of its partitions, if it has to do with it."""
        last = self.last_partition
        if last is not None and last.index == index:
            return last
        return self.partitions.get(index)

    def compression(self) -> dict[str, int]:
        """The batches by the names of their codecs."""
        counted = dict(self.named_batches)
        for name, count in zip(CODEC_NAMES, self.batches, strict=True):
            if count:
                counted[name] = counted.get(name, 0) + count
        return counted


class Sender:
    """Who sends the requests of a connection to ``broker``: ``identity``, from what the connection says of its client's
    ``software``.

    ``client`` is the one that it was found to be last, of that ``role`` and ``topic``. ``topics`` are those of the
    ``node`` of clusters that it speaks to (``identity.clusters``).
    """

    __slots__ = (
        "broker", "client", "client_id", "connection_id", "identity", "node", "principal", "role", "software", "topic",
        "topics",
    )  # fmt: skip

    def __init__(
        self,
        connection_id: int,
        broker: str,
        identity: Identity,
        software: dict[str, str] | None,
        node: int,
        topics: dict[str, TopicState],
    ) -> None:
        self.node = node
        self.topics = topics
        self.connection_id = connection_id
        self.broker = broker
        self.identity = identity
        self.client_id, _, _, self.principal = identity
        self.software = software
        self.role = ""
        self.topic: TopicState | None = None
        self.client: ClientState | None = None

    def is_by(
        self,
        connection_id: int,
        client_id: str | None,
        software: dict[str, str] | None,
        principal: str | None,
        node: int,
    ) -> bool:
        """Whether it is who a connection says of itself now, and speaks to this node."""
        if self.connection_id != connection_id or self.software is not software or self.node != node:
            return False
        return (self.client_id is client_id or self.client_id == client_id) and (
            self.principal is principal or self.principal == principal
        )


class Poll:
    """What the fetches of a session ask for: its topics, with the clients that ask for those of them that are known.

    ``known`` is how many topics were known when that was looked up, ``unknown`` are those of the session that were not.
    ``requests`` have been made since, the last one at ``last_ns`` in exchange ``turn``, and are counted for the clients
    later.
    """

    __slots__ = ("clients", "known", "last_ns", "requests", "turn", "unknown")

    def __init__(self) -> None:
        self.requests = 0
        self.last_ns = -1
        self.turn = 0
        self.known = -1
        self.unknown: dict[str, None] = {}
        self.clients: dict[str, ClientState] = {}

    def settle(self) -> None:
        """Counts the requests for each client."""
        if self.requests:
            for client in self.clients.values():
                self._give(client)
            self.requests = 0

    def drop(self, name: str) -> None:
        """Removes a topic that the session has forgotten: its client gets the requests made until now."""
        self.unknown.pop(name, None)
        client = self.clients.pop(name, None)
        if client is not None:
            self._give(client)

    def _give(self, client: ClientState) -> None:
        client.flow.requests += self.requests
        if self.turn > client.turn:
            client.last_ns, client.turn = self.last_ns, self.turn


class TopicState:
    """What is known of a topic at one node of clusters, under one of its two names, the name itself or its id.

    ``committed`` has the offset, and in which exchange it was named. ``siblings`` are the states at other nodes of what
    may be the same cluster, as they were known at ``version``.
    """

    __slots__ = (
        "clients", "committed", "errors", "first_ns", "last_ns", "name", "node", "partitions", "siblings", "version",
    )  # fmt: skip

    def __init__(self, name: str, first_ns: int, node: int = 0) -> None:
        self.name = name
        self.node = node
        self.siblings: list[TopicState] = []
        self.version = -1
        self.partitions: dict[int, PartitionState] = {}
        self.clients: dict[tuple[str, Identity], ClientState] = {}
        self.committed: dict[str, dict[int, tuple[int, int]]] = {}  # by group and partition
        self.errors: dict[str, int] = {}
        self.first_ns = first_ns
        self.last_ns = first_ns
