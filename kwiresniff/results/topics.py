"""The traffic of topics: who produces, who consumes, how far behind consumers are."""

from __future__ import annotations

from typing import Final, NamedTuple

from kwiresniff.base.address_names import Name
from kwiresniff.results.stats import LatencySummary


class TopicFlow(NamedTuple):
    """Records one way, into a topic or out of it.

    ``size_bytes`` are those of record batches as they go over the wire, headers included. ``records`` counts a
    compressed message set of before Kafka 0.11 as one, since only its content shows how many it has.
    """

    requests: int
    batches: int
    records: int
    size_bytes: int


NO_FLOW: Final = TopicFlow(0, 0, 0, 0)


class TopicClient(NamedTuple):
    """A client that produces to a topic or consumes from it: one client id from one address.

    ``role`` is ``producer``, ``consumer``, ``share consumer`` (KIP-932) or ``replica`` (a broker that follows).
    ``unanswered`` counts Produce requests without a response that were to have one: whether their records were written
    is not known. ``acks`` are the values of its requests (-1 is all). ``idempotent`` says whether its batches carry a
    producer id.
    ``groups`` are the groups that the same client speaks for on any connection. ``lag`` is the high watermark less the
    position, summed over the ``partitions`` where both are known, None where they are known of none.
    ``produce_to_consume`` is the time from the answer to a Produce until the answer to a Fetch that carries its batch,
    ``record_age`` that from the timestamp of the oldest record of a partition until the answer that carries it.
    ``flow`` of a producer is what brokers took, with what they did not answer; ``refused`` is what they answered with
    an error, ``repeated`` what they had taken already: batches of an idempotent producer that it sent again.
    ``brokers`` are ``(address, bytes of all batches that went there or came from there)``, the most bytes first.
    ``names`` are what its address is called.
    """

    role: str
    client_id: str | None
    software: tuple[str | None, str | None]
    principal: str | None
    address: str
    flow: TopicFlow
    errors: int
    unanswered: int
    compression: tuple[tuple[str, int], ...]
    acks: tuple[int, ...]
    idempotent: bool
    transactional_ids: tuple[str, ...]
    groups: tuple[str, ...]
    partitions: tuple[int, ...]
    lag: int | None
    produce_to_consume: LatencySummary | None
    first_ns: int
    last_ns: int
    refused: TopicFlow = NO_FLOW
    repeated: TopicFlow = NO_FLOW
    brokers: tuple[tuple[str, int], ...] = ()
    names: tuple[Name, ...] = ()
    record_age: LatencySummary | None = None


class TopicPartition(NamedTuple):
    """One partition. ``high_watermark`` is the greatest offset that any response has had, None where none had one."""

    partition: int
    high_watermark: int | None
    produced: TopicFlow
    consumed: TopicFlow


class TopicGroup(NamedTuple):
    """The commits of a group: ``partitions`` as ``(partition, committed offset, lag)``, the lag None where the
    high watermark is not known."""

    group: str
    partitions: tuple[tuple[int, int, int | None], ...]
    lag: int | None


class Topic(NamedTuple):
    """A topic. ``topic_id`` is None before Kafka 2.8 and where none was seen; ``name`` is the id where no name was.

    ``seconds`` is the time between the first and the last exchange of the captures, for rates. ``errors`` are
    ``(name of the code, how often)``, the most frequent first. ``produced`` is what brokers took; ``refused`` and
    ``repeated`` are those of its producers. ``cluster`` is None where all brokers are taken for one cluster.
    """

    name: str
    topic_id: str | None
    partitions: tuple[TopicPartition, ...]
    produced: TopicFlow
    consumed: TopicFlow
    producers: tuple[TopicClient, ...]
    consumers: tuple[TopicClient, ...]
    groups: tuple[TopicGroup, ...]
    errors: tuple[tuple[str, int], ...]
    lag: int | None
    produce_to_consume: LatencySummary | None
    seconds: float
    first_ns: int
    last_ns: int
    refused: TopicFlow = NO_FLOW
    repeated: TopicFlow = NO_FLOW
    cluster: str | None = None
    record_age: LatencySummary | None = None
