"""Topic first: who produces and who consumes, rates, errors, lag, and the time from produce to consume.

Sources: the protocol guide (Produce, Fetch, OffsetCommit, OffsetFetch, TxnOffsetCommit), KIP-227 (an incremental Fetch
names a partition when its position changes), KIP-516 (topic ids), KIP-932 (share groups).

Bounded: what is remembered of topics, partitions, clients, groups and batches takes at most ``MAX_REMEMBERED_BYTES``;
what finds no room is counted in ``left_out``. Of batches whose consumption is awaited each partition has the last
``MAX_AWAITED``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from kwiresniff.analysis.clients import host_of
from kwiresniff.analysis.latency import Histogram
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, NUMBER_BYTES, MemoryBudget, text_bytes
from kwiresniff.analysis.names import groups_of
from kwiresniff.answers.topics import Topic, TopicClient, TopicFlow, TopicGroup, TopicPartition
from kwiresniff.model import Body, Exchange, TopicNames

PRODUCE, FETCH, OFFSET_COMMIT, OFFSET_FETCH, TXN_OFFSET_COMMIT, SHARE_FETCH = 0, 1, 8, 9, 28, 78

#: Names, rows and numbers of everything: ten thousand topics of a hundred partitions each.
MAX_REMEMBERED_BYTES = 64 << 20
#: A topic, a client or a partition beside its names; the histogram of a client is most of it.
ROW_BYTES = 3_000
PARTITION_BYTES = 1_000
#: Base offset and time of a batch.
BATCH_BYTES = 2 * NUMBER_BYTES
#: Batches of a partition that were produced and not yet seen by every consumer: a second of a busy partition.
MAX_AWAITED = 1_024

#: Different values of ``acks`` that are told of a client: there are three (-1, 0, 1), and those of broken clients.
MAX_ACKS = 8

_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_TOPIC_NAMES = ("name", "topic", "topic_name")
_PARTITIONS = ("partition_data", "partition_responses", "partitions")
_INDEXES = ("index", "partition", "partition_index")
_ROLES = ("producer", "consumer", "share consumer", "replica")


class _Flow:
    """Counts of one way; see ``TopicFlow``."""

    __slots__ = ("batches", "records", "requests", "size_bytes")

    def __init__(self) -> None:
        self.requests = self.batches = self.records = self.size_bytes = 0

    def add(self, batches: list[Body]) -> None:
        for batch in batches:
            self.batches += 1
            self.records += records_in(batch)
            self.size_bytes += batch.get("size_bytes") or 0

    def merge(self, other: _Flow) -> None:
        for name in _Flow.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def result(self) -> TopicFlow:
        return TopicFlow(self.requests, self.batches, self.records, self.size_bytes)


class _Partition:
    """What is known of a partition, whoever told it."""

    __slots__ = ("awaited", "awaited_ns", "consumed", "high_watermark", "produced")

    def __init__(self) -> None:
        self.produced = _Flow()
        self.consumed = _Flow()
        self.high_watermark = -1
        self.awaited: list[int] = []  # base offsets of batches produced, ascending, and when that was answered
        self.awaited_ns: list[int] = []

    def written(self, base_offset: int, ns: int, budget: MemoryBudget) -> None:
        """A batch has been appended, and answered at ``ns``."""
        if (self.awaited and base_offset <= self.awaited[-1]) or not budget.admit(BATCH_BYTES):
            return
        self.awaited.append(base_offset)
        self.awaited_ns.append(ns)
        if len(self.awaited) > 2 * MAX_AWAITED:
            del self.awaited[:MAX_AWAITED], self.awaited_ns[:MAX_AWAITED]
            budget.release(MAX_AWAITED * BATCH_BYTES)


class _Client:
    """A producer or consumer of one topic."""

    __slots__ = (
        "acks", "compression", "errors", "first_ns", "flow", "idempotent", "last_ns", "partitions", "positions", "role",
        "transactional_ids", "waits",
    )  # fmt: skip

    def __init__(self, role: str, first_ns: int) -> None:
        self.role = role
        self.flow = _Flow()
        self.errors = 0
        self.compression: dict[str, int] = {}
        self.acks: dict[int, None] = {}
        self.idempotent = False
        self.transactional_ids: dict[str, None] = {}
        self.partitions: dict[int, None] = {}
        self.positions: dict[int, tuple[int, int]] = {}  # by partition, the offset that is fetched next, and since when
        self.waits = Histogram()
        self.first_ns = first_ns
        self.last_ns = first_ns


#: Client id, address, software, principal: who somebody is, on however many connections.
_Identity = tuple[str | None, str, tuple[str | None, str | None], str | None]


class _Topic:
    """What is known of a topic under one of its two names, the name itself or its id."""

    __slots__ = ("clients", "committed", "errors", "first_ns", "last_ns", "partitions")

    def __init__(self, first_ns: int) -> None:
        self.partitions: dict[int, _Partition] = {}
        self.clients: dict[tuple[str, _Identity], _Client] = {}
        self.committed: dict[str, dict[int, int]] = {}  # group -> partition -> offset
        self.errors: dict[str, int] = {}
        self.first_ns = first_ns
        self.last_ns = first_ns


class TopicTraffic:
    """Collects from exchanges whose bodies are decoded, batch headers included."""

    def __init__(self, topic_name: TopicNames | None = None) -> None:
        self.left_out = 0
        self._topic_name = topic_name
        self._topics: dict[str, _Topic] = {}
        self._ids: dict[str, None] = {}  # of those keys, the topic ids
        self._groups: dict[_Identity, dict[str, None]] = {}
        self._budget = MemoryBudget(MAX_REMEMBERED_BYTES)
        self._first_ns = -1
        self._last_ns = -1

    def exchange(self, exchange: Exchange) -> None:
        """Take in an exchange."""
        first = exchange.request or exchange.response
        last = exchange.response or exchange.request
        if first is None or last is None:
            return
        self._first_ns = first.first_ns if self._first_ns < 0 else min(self._first_ns, first.first_ns)
        self._last_ns = max(self._last_ns, last.last_ns)
        request = (exchange.request.body if exchange.request else None) or {}
        response = (exchange.response.body if exchange.response else None) or {}
        if exchange.api_key == PRODUCE:
            self._produce(exchange, request, response, last.last_ns)
        elif exchange.api_key == FETCH:
            self._fetch(exchange, request, response, last.last_ns)
        elif exchange.api_key == SHARE_FETCH:
            self._consumed(exchange, "share consumer", response, last.last_ns)
        elif exchange.api_key in (OFFSET_COMMIT, TXN_OFFSET_COMMIT):
            self._commits(str(request.get("group_id", "")), request, exchange)
        elif exchange.api_key == OFFSET_FETCH:
            for group in _structs(response, ("groups",)) or [{**response, "group_id": request.get("group_id", "")}]:
                self._commits(str(group.get("group_id", "")), group, exchange)
        self._errors(exchange, response)
        if request:
            self._speaks_for(exchange, request)

    # -- what the APIs say --------------------------------------------------------------------------------------

    def _produce(self, exchange: Exchange, request: Body, response: Body, ns: int) -> None:
        written: dict[tuple[str, int], int] = {}
        for key, topic in self._topics_in(request, ns):
            client = self._client(topic, "producer", exchange, ns)
            if client is None:
                continue
            client.flow.requests += 1
            if len(client.acks) < MAX_ACKS:
                client.acks[request.get("acks", 0)] = None
            if name := request.get("transactional_id"):
                self._note(client.transactional_ids, str(name))
            for index, part, partition in self._partitions_in(topic, key[1]):
                batches = batches_in(part)
                partition.produced.requests += 1
                partition.produced.add(batches)
                self._carried(client, index, batches)
                written[key[0], index] = sum(map(records_in, batches))
        for key, topic in self._topics_in(response, ns):
            for index, part, partition in self._partitions_in(topic, key[1]):
                base_offset = part.get("base_offset", -1)
                if not part.get("error_code") and base_offset >= 0:
                    end = base_offset + written.get((key[0], index), 1)
                    partition.high_watermark = max(partition.high_watermark, end)
                    partition.written(base_offset, ns, self._budget)

    def _fetch(self, exchange: Exchange, request: Body, response: Body, ns: int) -> None:
        state = request.get("replica_state")
        replica_id = state.get("replica_id", -1) if isinstance(state, dict) else request.get("replica_id", -1)
        role = "replica" if isinstance(replica_id, int) and replica_id >= 0 else "consumer"
        for key, topic in self._topics_in(request, ns):
            client = self._client(topic, role, exchange, ns)
            for index, part, _ in self._partitions_in(topic, key[1]):
                if client is not None and self._reads(client, index):
                    client.positions[index] = part.get("fetch_offset", -1), ns
        self._consumed(exchange, role, response, ns)

    def _consumed(self, exchange: Exchange, role: str, response: Body, ns: int) -> None:
        for key, topic in self._topics_in(response, ns):
            client = self._client(topic, role, exchange, ns)
            if client is None:
                continue
            client.flow.requests += 1
            for index, part, partition in self._partitions_in(topic, key[1]):
                high_watermark = part.get("high_watermark", -1)
                partition.high_watermark = max(partition.high_watermark, high_watermark)
                batches = batches_in(part)
                if not batches:
                    continue
                self._carried(client, index, batches)
                if role == "replica":
                    continue
                partition.consumed.requests += 1
                partition.consumed.add(batches)
                self._arrived(client, index, partition, batches, ns)

    def _arrived(self, client: _Client, index: int, partition: _Partition, batches: list[Body], ns: int) -> None:
        """Batches have come to a consumer: it goes on behind them, and what was awaited has its time."""
        first, end = base_of(batches[0]), end_of(batches[-1])
        if first < 0 or client.role != "consumer":
            return
        start = max(first, client.positions.get(index, (first, 0))[0])
        if index in client.partitions:
            client.positions[index] = max(end, start), ns
        awaited = partition.awaited
        for at in range(bisect_left(awaited, start), len(awaited)):
            if awaited[at] >= end:
                break
            client.waits.add(ns - partition.awaited_ns[at])

    def _carried(self, client: _Client, index: int, batches: list[Body]) -> None:
        self._reads(client, index)
        client.flow.add(batches)
        for batch in batches:
            codec = str(batch.get("compression", "none"))
            client.compression[codec] = client.compression.get(codec, 0) + 1
            producer_id = batch.get("producer_id", -1)
            client.idempotent |= isinstance(producer_id, int) and producer_id >= 0

    def _reads(self, client: _Client, index: int) -> bool:
        """Note that a client has to do with a partition; False where there is no room for that."""
        if index not in client.partitions:
            if not self._admit(2 * ENTRY_BYTES + 3 * NUMBER_BYTES):
                return False
            client.partitions[index] = None
        return True

    def _commits(self, group: str, body: Body, exchange: Exchange) -> None:
        last = exchange.response or exchange.request
        assert last is not None
        for key, topic in self._topics_in(body, last.last_ns):
            offsets = topic.committed.get(group)
            if offsets is None:
                if not self._admit(ENTRY_BYTES + CONTAINER_BYTES + text_bytes(group)):
                    continue
                offsets = topic.committed[group] = {}
            for index, part, _ in self._partitions_in(topic, key[1]):
                offset = part.get("committed_offset", -1)
                if not isinstance(offset, int) or offset < 0 or part.get("error_code"):
                    continue
                if index in offsets or self._admit(ENTRY_BYTES + 2 * NUMBER_BYTES):
                    offsets[index] = offset

    def _errors(self, exchange: Exchange, response: Body) -> None:
        for path, _, code_name, _ in exchange.errors:
            key = topic_of_path(response, path)
            topic = self._topics.get(key) if key is not None else None
            if topic is None or not (code_name in topic.errors or self._admit(ENTRY_BYTES + text_bytes(code_name))):
                continue
            topic.errors[code_name] = topic.errors.get(code_name, 0) + 1
            for role in _ROLES:
                if (client := topic.clients.get((role, identity_of(exchange)))) is not None:
                    client.errors += 1

    def _speaks_for(self, exchange: Exchange, request: Body) -> None:
        """The groups that a member names; an admin client asks for many, in arrays, and speaks for none."""
        groups = groups_of(request, deep=False) if "member_id" in request else []
        for group in groups:
            identity = identity_of(exchange)
            known = self._groups.get(identity)
            if known is None:
                if not self._admit(ENTRY_BYTES + CONTAINER_BYTES + text_bytes(identity[0], identity[1])):
                    return
                known = self._groups[identity] = {}
            self._note(known, group)

    # -- what is remembered -------------------------------------------------------------------------------------

    def _admit(self, size: int) -> bool:
        if self._budget.admit(size):
            return True
        self.left_out += 1
        return False

    def _note(self, names: dict[str, None], name: str) -> None:
        if name not in names and self._admit(ENTRY_BYTES + text_bytes(name)):
            names[name] = None

    def _topics_in(self, body: Body, ns: int) -> Iterator[tuple[tuple[str, Body], _Topic]]:
        """The topics of a body, each with its key here and the structure that names it."""
        for member in _structs(body, ("topics", "topic_data", "responses")):
            key = _key_of(member)
            if key is None:
                continue
            topic = self._topics.get(key)
            if topic is None:
                if not self._admit(ROW_BYTES + text_bytes(key)):
                    continue
                topic = self._topics[key] = _Topic(ns)
                if not any(isinstance(member.get(name), str) for name in _TOPIC_NAMES):
                    self._ids[key] = None
            topic.last_ns = max(topic.last_ns, ns)
            yield (key, member), topic

    def _partitions_in(self, topic: _Topic, member: Body) -> Iterator[tuple[int, Body, _Partition]]:
        for part in _structs(member, _PARTITIONS):
            index = next((part[name] for name in _INDEXES if isinstance(part.get(name), int)), None)
            if index is None:
                continue
            partition = topic.partitions.get(index)
            if partition is None:
                if not self._admit(PARTITION_BYTES):
                    continue
                partition = topic.partitions[index] = _Partition()
            yield index, part, partition

    def _client(self, topic: _Topic, role: str, exchange: Exchange, ns: int) -> _Client | None:
        key = (role, identity_of(exchange))
        client = topic.clients.get(key)
        if client is None:
            client_id, address, _, principal = key[1]
            if not self._admit(ROW_BYTES + text_bytes(client_id, address, principal)):
                return None
            client = topic.clients[key] = _Client(role, ns)
        client.last_ns = ns
        return client

    # -- the answer ---------------------------------------------------------------------------------------------

    def topics(self) -> list[Topic]:
        """Every topic, the one with most bytes first. A topic that was named by its id before its name was known is
        one topic."""
        merged: dict[str, tuple[str | None, list[_Topic]]] = {}
        for key, topic in self._topics.items():
            is_id = key in self._ids
            name = (self._topic_name(key) if is_id and self._topic_name is not None else None) or key
            topic_id, parts = merged.get(name, (None, []))
            merged[name] = (key if is_id else topic_id, [*parts, topic])
        seconds = max(self._last_ns - self._first_ns, 0) / 1e9
        found = [
            _Summary(name, topic_id, parts, self._groups).result(seconds) for name, (topic_id, parts) in merged.items()
        ]
        return sorted(found, key=lambda one: (-one.produced.size_bytes - one.consumed.size_bytes, one.name))


class _Summary:
    """One topic, from what is known under its name and under its id."""

    def __init__(
        self, name: str, topic_id: str | None, parts: list[_Topic], groups: dict[_Identity, dict[str, None]]
    ) -> None:
        self._name, self._topic_id = name, topic_id
        self._parts, self._groups = parts, groups
        self._high_watermarks: dict[int, int] = {}
        #: Of the members of a group that have fetched a partition, who did so last: (group, partition) -> (time, who).
        self._readers: dict[tuple[str, int], tuple[int, _Identity]] = {}
        for part in parts:
            for index, partition in part.partitions.items():
                known = self._high_watermarks.get(index, -1)
                self._high_watermarks[index] = max(known, partition.high_watermark)

    def result(self, seconds: float) -> Topic:
        clients: dict[tuple[str, _Identity], list[_Client]] = {}
        for part in self._parts:
            for key, client in part.clients.items():
                clients.setdefault(key, []).append(client)
        self._find_readers(clients)
        rows = [self._client(identity, found) for (_, identity), found in clients.items()]
        rows.sort(key=lambda row: (-row.flow.size_bytes, row.client_id or "", row.address))
        waits = Histogram()
        for found in clients.values():
            for client in found:
                waits.merge(client.waits)
        partitions = tuple(self._partition(index) for index in sorted(self._high_watermarks))
        errors: dict[str, int] = {}
        for part in self._parts:
            for code, count in part.errors.items():
                errors[code] = errors.get(code, 0) + count
        consumers = tuple(row for row in rows if row.role != "producer")
        lags = [row.lag for row in consumers if row.role == "consumer" and row.lag is not None]
        return Topic(
            name=self._name,
            topic_id=self._topic_id,
            partitions=partitions,
            produced=_sum([partition.produced for partition in partitions]),
            consumed=_sum([partition.consumed for partition in partitions]),
            producers=tuple(row for row in rows if row.role == "producer"),
            consumers=consumers,
            groups=self._committed(),
            errors=tuple(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
            lag=sum(lags) if lags else None,
            produce_to_consume=waits.summary(),
            seconds=seconds,
            first_ns=min(part.first_ns for part in self._parts),
            last_ns=max(part.last_ns for part in self._parts),
        )

    def _find_readers(self, clients: dict[tuple[str, _Identity], list[_Client]]) -> None:
        for (_, identity), found in clients.items():
            for group in self._groups.get(identity, ()):
                for client in found:
                    for index, (_, ns) in client.positions.items():
                        if ns >= self._readers.get((group, index), (-1, identity))[0]:
                            self._readers[group, index] = ns, identity

    def _still_reads(self, identity: _Identity, index: int) -> bool:
        """Whether no other member of the client's group has taken a partition over."""
        groups = self._groups.get(identity, ())
        return not groups or any(self._readers[group, index][1] == identity for group in groups)

    def _partition(self, index: int) -> TopicPartition:
        produced, consumed = _Flow(), _Flow()
        for part in self._parts:
            if (partition := part.partitions.get(index)) is not None:
                produced.merge(partition.produced)
                consumed.merge(partition.consumed)
        high_watermark = self._high_watermarks[index]
        return TopicPartition(
            index, high_watermark if high_watermark >= 0 else None, produced.result(), consumed.result()
        )

    def _lag(self, index: int, offset: int) -> int | None:
        high_watermark = self._high_watermarks.get(index, -1)
        return max(high_watermark - offset, 0) if high_watermark >= 0 and offset >= 0 else None

    def _client(self, identity: _Identity, found: list[_Client]) -> TopicClient:
        client_id, address, software, principal = identity
        flow, waits, lags = _Flow(), Histogram(), []
        compression: dict[str, int] = {}
        for client in found:
            flow.merge(client.flow)
            waits.merge(client.waits)
            for codec, count in client.compression.items():
                compression[codec] = compression.get(codec, 0) + count
            lags += [
                self._lag(index, offset)
                for index, (offset, _) in client.positions.items()
                if self._still_reads(identity, index)
            ]
        known = [lag for lag in lags if lag is not None]
        return TopicClient(
            role=found[0].role,
            client_id=client_id,
            software=software,
            principal=principal,
            address=address,
            flow=flow.result(),
            errors=sum(client.errors for client in found),
            compression=tuple(sorted(compression.items(), key=lambda item: (-item[1], item[0]))),
            acks=tuple(sorted({acks for client in found for acks in client.acks})),
            idempotent=any(client.idempotent for client in found) and found[0].role == "producer",
            transactional_ids=tuple(dict.fromkeys(one for client in found for one in client.transactional_ids)),
            groups=() if found[0].role in ("producer", "replica") else tuple(self._groups.get(identity, ())),
            partitions=tuple(sorted({index for client in found for index in client.partitions})),
            lag=sum(known) if known else None,
            produce_to_consume=waits.summary(),
            first_ns=min(client.first_ns for client in found),
            last_ns=max(client.last_ns for client in found),
        )

    def _committed(self) -> tuple[TopicGroup, ...]:
        committed: dict[str, dict[int, int]] = {}
        for part in self._parts:
            for group, offsets in part.committed.items():
                committed.setdefault(group, {}).update(offsets)
        rows = []
        for group, offsets in sorted(committed.items()):
            partitions = tuple((index, offset, self._lag(index, offset)) for index, offset in sorted(offsets.items()))
            known = [lag for _, _, lag in partitions if lag is not None]
            if partitions:
                rows.append(TopicGroup(group, partitions, sum(known) if known else None))
        return tuple(rows)


def _sum(flows: list[TopicFlow]) -> TopicFlow:
    return TopicFlow(
        sum(flow.requests for flow in flows),
        sum(flow.batches for flow in flows),
        sum(flow.records for flow in flows),
        sum(flow.size_bytes for flow in flows),
    )


def identity_of(exchange: Exchange) -> _Identity:
    """Who sent the request of an exchange, as far as its connection has told."""
    connection = exchange.connection
    software = connection.client_software or {}
    sasl = connection.sasl or {}
    return (
        exchange.client_id,
        host_of(connection.client),
        (software.get("name"), software.get("version")),
        sasl.get("principal"),
    )


def _structs(body: Body, names: tuple[str, ...]) -> list[Body]:
    """The structures of the first array among ``names`` that a body has."""
    for name in names:
        if isinstance(found := body.get(name), list):
            return [one for one in found if isinstance(one, dict)]
    return []


def _key_of(member: Body) -> str | None:
    """The name of the topic that a structure is about, else its id."""
    for name in _TOPIC_NAMES:
        if isinstance(found := member.get(name), str) and found:
            return found
    topic_id = member.get("topic_id")
    return topic_id if isinstance(topic_id, str) and topic_id != _NO_TOPIC_ID else None


def topic_of_path(body: Body, path: str) -> str | None:
    """The topic, by name or id, that the structure at or above ``responses[0].partition_responses[2].error_code`` is
    about."""
    value: Any = body
    found = None
    for step in path.split("."):
        name, _, index = step.partition("[")
        value = value.get(name) if isinstance(value, dict) else None
        if index and isinstance(value, list) and index.rstrip("]").isdecimal() and int(index[:-1]) < len(value):
            value = value[int(index[:-1])]
        if isinstance(value, dict):
            found = _key_of(value) or found
    return found


def batches_in(part: Body) -> list[Body]:
    """The record batches, or messages of before Kafka 0.11, of a partition that are whole."""
    records = part.get("records")
    batches = records if isinstance(records, list) else [records]
    return [batch for batch in batches if isinstance(batch, dict) and not batch.get("truncated")]


def records_in(batch: Body) -> int:
    """How many records a batch has; the marks of transactions are none."""
    if batch.get("is_control"):
        return 0
    count = batch.get("records_count")
    return count if isinstance(count, int) else 1


def base_of(batch: Body) -> int:
    """The offset of a batch's first record, -1 where it does not say."""
    offset = batch.get("base_offset", batch.get("offset", -1))
    return offset if isinstance(offset, int) else -1


def end_of(batch: Body) -> int:
    """The offset behind a batch's last record."""
    delta = batch.get("last_offset_delta", 0)
    return base_of(batch) + (delta if isinstance(delta, int) else 0) + 1
