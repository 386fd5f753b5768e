"""Record batches as producers send them, as logs store them, and as consumers get them.

Two batches of a producer without idempotence are the same when checksum, size and number of records are: the checksum
covers the records and their timestamps, not the offset (protocol guide, "Record Batch").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, TypeAlias

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.base.batch_layout import CODEC_NAMES
from kwiresniff.digest import PartitionDigest
from kwiresniff.model import Connection, Exchange, Message

#: Partitions by producer whose batches are remembered, and partitions whose readers and codecs are.
MAX_PARTITIONS = 5_000
#: Batches remembered of a producer's partition: ``max.in.flight.requests.per.connection`` and one more.
MAX_BATCHES = 6
#: Batches sent again that are remembered, and how often each is at most.
MAX_AGAIN = 1_000
MAX_SENT = 50
#: Clients wait so long before they send a batch again: ``retry.backoff.ms`` (100), less a fifth.
BACKOFF_NS: Final = 80_000_000
#: Connections of such producers remembered that the client closed.
MAX_CLOSED = 20_000
#: Consumers remembered of a partition, and ranges of offsets that were produced last.
MAX_READERS = 6
MAX_RANGES = 6
#: Memory entries of a topic whose consumers get another codec.
CODECS_ENTRIES: Final = 20
#: Client, topic and partition at a cluster.
_Sender: TypeAlias = tuple[str, str, str, int]
_Partition: TypeAlias = tuple[str, str, int]
#: Checksum, bytes and records of a batch.
_Batch: TypeAlias = tuple[int, int, int]


class _Sent:
    """A batch sent once, when it was answered (0: it was not), and the offset that it got (-1: not known)."""

    __slots__ = ("answered_ns", "broker", "connection", "first_ns", "offset", "packet", "refused")

    def __init__(self, exchange: Exchange, request: Message, answer: PartitionDigest | None) -> None:
        response = exchange.response
        self.packet = request.first_packet
        self.first_ns = request.first_ns
        self.answered_ns = response.first_ns if response is not None else 0
        self.offset = answer.offset if answer is not None else -1
        self.refused = answer is not None and answer.offset < 0
        self.broker = exchange.connection.broker
        self.connection = exchange.connection.id


class ResentBatches(Observer):
    """`batch_sent_again`: a producer without idempotence sent the same batch again, because it was refused or the
    answer took too long.

    By client and topic. Numbers: ``batches``, ``sent_again``, ``stored_again`` (batches with more than one offset),
    ``records_doubled``, ``given_up_ns`` (how long it waited at least before it closed the connection), ``longest_ns``
    (how long an answer took at most), ``readers`` (consumers that fetched a record again).
    """

    kinds: ClassVar[tuple[str, ...]] = ("batch_sent_again",)
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE, FETCH})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._recent: Subjects[_Sender, dict[_Batch, list[_Sent]]] = context.subjects(
            dict, 4 + 4 * MAX_BATCHES, MAX_PARTITIONS
        )
        self._again: dict[tuple[_Sender, _Batch], list[_Sent]] = {}
        self._readers: Subjects[_Partition, dict[str, list[int]]] = context.subjects(dict, 8, MAX_PARTITIONS)
        #: When clients closed connections on which they had sent batches, 0 where they have not.
        self._closed: dict[int, int] = {}

    def connection(self, connection: Connection) -> None:
        """Notes when the client closed it, unless the capture lacks what the broker sent."""
        if connection.id in self._closed and connection.closed_by == "client" and connection.packets[1]:
            self._closed[connection.id] = connection.closed_ns
        else:
            self._closed.pop(connection.id, None)

    def exchange(self, exchange: Exchange) -> None:
        if exchange.api_key == FETCH:
            self._fetch(exchange)
            return
        request = exchange.request
        if request is None:
            return
        for name, part, answer in self.context.written(exchange):
            if part.is_idempotent or part.crc < 0:
                continue
            sent = _Sent(exchange, request, answer)
            self._closed.setdefault(sent.connection, 0)
            if len(self._closed) > MAX_CLOSED:
                del self._closed[next(iter(self._closed))]
            sender = client_of(exchange), self.context.cluster.of(sent.broker), name, part.index
            self._add(sender, (part.crc, part.all_bytes, part.records), sent)

    def _add(self, sender: _Sender, batch: _Batch, sent: _Sent) -> None:
        recent = self._recent.of(sender)
        if recent is None:
            return
        known = recent.get(batch)
        if known is None:
            if len(recent) >= MAX_BATCHES:
                del recent[next(iter(recent))]
            recent[batch] = [sent]
        elif self.context.has_room(known, MAX_SENT, entries=2):
            known.append(sent)
            if len(self._again) < MAX_AGAIN:
                self._again[sender, batch] = known

    def _fetch(self, exchange: Exchange) -> None:
        client, cluster_id = client_of(exchange), self.context.cluster.of(exchange.connection.broker)
        for name, part in self.context.brought(exchange):
            readers = self._readers.of((cluster_id, name, part.index))
            if readers is None:
                continue
            read = readers.get(client)
            if read is not None:
                read[0], read[1] = min(read[0], part.first_offset), max(read[1], part.end_offset)
            elif len(readers) < MAX_READERS:
                readers[client] = [part.first_offset, part.end_offset]

    def observations(self) -> Iterator[Observation]:
        found: dict[tuple[str, str, str], list[tuple[_Sender, _Batch, list[_Sent]]]] = {}
        for (sender, batch), sent in self._again.items():
            tries = self._tries(sent)
            if len(tries) > 1:
                found.setdefault(sender[:3], []).append((sender, batch, tries))
        for (client, cluster_id, topic), again in found.items():
            yield self._observation(client, cluster_id, topic, again)

    def _observation(
        self, client: str, cluster_id: str, topic: str, again: list[tuple[_Sender, _Batch, list[_Sent]]]
    ) -> Observation:
        case = self.context.case()
        case.note("clients", [client])
        case.note("topics", [topic])
        doubled = stored = 0
        given_up: list[int] = []
        longest_ns = 0
        readers: dict[str, None] = {}
        for sender, (_, _, records), tries in again:
            for one in tries:
                case.add(one.packet, one.first_ns, until_ns=one.answered_ns)
                case.note("brokers", [one.broker])
                node = self.context.cluster.node_at(one.broker)
                case.note("nodes", [] if node is None else [str(node)])
                longest_ns = max(longest_ns, one.answered_ns - one.first_ns)
            given_up += [ns for one in tries[:-1] if (ns := self._given_up_ns(one))]
            case.note("partitions", [f"{topic}-{sender[3]}"])
            offsets = sorted({one.offset for one in tries if one.offset >= 0})
            stored += len(offsets) > 1
            doubled += records * max(len(offsets) - 1, 0)
            for client_, (first, end) in self._readers.get(sender[1:], {}).items():
                if sum(first <= offset < end for offset in offsets) > 1:
                    readers[client_] = None
        sent_again = case.count - len(again)
        unknown = sum(one.offset < 0 and not one.refused for _, _, tries in again for one in tries)
        numbers = {
            "batches": len(again),
            "sent_again": sent_again,
            "stored_again": stored,
            "records_doubled": doubled,
            "not_known": unknown,
            "given_up_ns": min(given_up, default=0),
            "longest_ns": longest_ns,
            "readers": list(readers),
        }
        about = [f"node:{cluster_id}/{node}" for node in case.noted("nodes")]
        about += [f"partition:{one}" for one in case.noted("partitions")]
        return observation_of("batch_sent_again", case, about, numbers, Harm(records_doubled=doubled))

    def _given_up_ns(self, one: _Sent) -> int:
        """How long the client waited until it closed the connection, 0 where it got the answer."""
        closed_ns = self._closed.get(one.connection, 0)
        return closed_ns - one.first_ns if closed_ns and not 0 < one.answered_ns < closed_ns else 0

    def _tries(self, sent: list[_Sent]) -> list[_Sent]:
        """The requests with the same batch that its producer sent because of the one before, in order.

        One that comes sooner than a client tries again is a copy in the capture, or another batch with the same records
        and time; after an answer there is another reason; the same offset means that it was stored once.
        """
        tries: list[_Sent] = []
        for one in sorted(sent, key=lambda each: each.first_ns):
            if tries:
                before = tries[-1]
                pending = before.refused or self._given_up_ns(before) > 0 or not 0 < before.answered_ns <= one.first_ns
                same = one.offset >= 0 and one.offset == before.offset
                if not pending or same or one.first_ns - before.first_ns < BACKOFF_NS:
                    continue
            tries.append(one)
        return tries


class _Codecs:
    """How often a topic had another codec for its consumers than from its producers, and how often the same."""

    __slots__ = ("case", "same")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.same = 0


class Recompression(Observer):
    """`recompressed`: consumers get batches with another codec than their producers sent them with, so that the leader
    decompresses and compresses each of them (``compression.type`` of the topic).

    By topic. Compared are batches of format 2 (Kafka 0.11) at the same offsets. Numbers: ``produced`` and ``fetched``
    (names of codecs), ``leaders``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("recompressed",)
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE, FETCH})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._produced: Subjects[_Partition, list[tuple[int, int, str]]] = context.subjects(
            list, 2 + MAX_RANGES, MAX_PARTITIONS
        )
        self._topics: Subjects[tuple[str, str], _Codecs] = context.subjects(
            lambda: _Codecs(context.case()), CODECS_ENTRIES
        )

    def exchange(self, exchange: Exchange) -> None:
        cluster_id = self.context.cluster.of(exchange.connection.broker)
        if exchange.api_key == FETCH:
            for name, part in self.context.brought(exchange):
                produced = self._produced.get((cluster_id, name, part.index))
                if produced:
                    self._compare(cluster_id, name, part, produced, exchange)
            return
        for name, part, answer in self.context.written(exchange):
            base = answer.offset if answer is not None and part.batches and part.crc >= 0 else -1
            ranges = self._produced.of((cluster_id, name, part.index)) if base >= 0 else None
            if ranges is not None:
                ranges.append((base, base + part.records, _codec_of(part)))
                del ranges[:-MAX_RANGES]

    def _compare(
        self, cluster_id: str, topic: str, part: PartitionDigest, ranges: list[tuple[int, int, str]], exchange: Exchange
    ) -> None:
        fetched, codecs = _codec_of(part), self._topics.get((cluster_id, topic))
        for first, end, produced in ranges:
            if not part.first_offset <= first < end <= part.end_offset or not produced or not fetched:
                continue
            if produced == fetched:
                if codecs is not None:
                    codecs.same += 1
                continue
            codecs = codecs or self._topics.of((cluster_id, topic))
            if codecs is None:
                return
            codecs.case.add(*place_of(exchange))
            codecs.case.note("brokers", [exchange.connection.broker])
            codecs.case.note("clients", [client_of(exchange)])
            codecs.case.note("produced", [produced])
            codecs.case.note("fetched", [fetched])

    def observations(self) -> Iterator[Observation]:
        """By topic: those with another codec in more than half of what was compared since the first."""
        for (_, topic), codecs in self._topics.items():
            if codecs.case.count <= codecs.same:
                continue
            produced, fetched = codecs.case.noted("produced"), codecs.case.noted("fetched")
            numbers = {"produced": produced, "fetched": fetched, "leaders": codecs.case.noted("brokers")}
            yield observation_of("recompressed", codecs.case, [f"topic:{topic}"], numbers)


def _codec_of(part: PartitionDigest) -> str:
    """The codec of a partition's batches, or an empty text where they have several."""
    if part.codecs is None:
        return CODEC_NAMES[part.codec]
    return part.codecs[0] if len(set(part.codecs)) == 1 else ""
