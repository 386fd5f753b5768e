"""Topic first: who produces and who consumes, rates, errors, lag, and the time from produce to consume.

Sources: the protocol guide (Produce, Fetch, OffsetCommit, OffsetFetch, TxnOffsetCommit), KIP-227 (an incremental Fetch
names a partition when its position changes), KIP-516 (topic ids), KIP-932 (share groups).

Bounded: what is remembered of topics, partitions, clients, groups and batches takes at most ``MAX_REMEMBERED_BYTES``;
what finds no room is counted in ``left_out``. Of batches whose consumption is awaited each partition has the last
``topic_state.MAX_AWAITED``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from kwiresniff.analysis.clients import host_of
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, NUMBER_BYTES, MemoryBudget, text_bytes
from kwiresniff.analysis.names import groups_of
from kwiresniff.analysis.record_counts import base_of, batches_in, end_of, records_in
from kwiresniff.analysis.topic_state import ClientState, Identity, PartitionState, TopicState
from kwiresniff.analysis.topic_summary import TopicSummary
from kwiresniff.answers.topics import Topic
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, OFFSET_FETCH, PRODUCE, SHARE_FETCH, TXN_OFFSET_COMMIT
from kwiresniff.base.known_ids import ZERO_UUID
from kwiresniff.model import Body, Exchange, TopicNames

#: Names, rows and numbers of everything: ten thousand topics of a hundred partitions each.
MAX_REMEMBERED_BYTES = 64 << 20
#: A topic, a client or a partition beside its names; the histogram of a client is most of it.
ROW_BYTES = 3_000
PARTITION_BYTES = 1_000
#: Different values of ``acks`` that are told of a client: there are three (-1, 0, 1), and those of broken clients.
MAX_ACKS = 8

_TOPIC_NAMES = ("name", "topic", "topic_name")
_PARTITIONS = ("partition_data", "partition_responses", "partitions")
_INDEXES = ("index", "partition", "partition_index")
_ROLES = ("producer", "consumer", "share consumer", "replica")


class TopicTraffic:
    """Collects from exchanges whose bodies are decoded, batch headers included."""

    def __init__(self, topic_name: TopicNames | None = None) -> None:
        self.left_out = 0
        self._topic_name = topic_name
        self._topics: dict[str, TopicState] = {}
        self._ids: dict[str, None] = {}  # of those keys, the topic ids
        self._groups: dict[Identity, dict[str, None]] = {}
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
        fetched = exchange.fetched
        if fetched is not None and exchange.response is not None:
            # What an incremental fetch does not name, because nothing has changed, was asked for all the same.
            told = {_key_of(member) for member in _structs(response, ("responses",))}
            for name in fetched.topics:
                known = self._topics.get(name)
                client = self._client(known, role, exchange, ns) if known is not None and name not in told else None
                if client is not None:
                    client.flow.requests += 1

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

    def _arrived(
        self, client: ClientState, index: int, partition: PartitionState, batches: list[Body], ns: int
    ) -> None:
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

    def _carried(self, client: ClientState, index: int, batches: list[Body]) -> None:
        self._reads(client, index)
        client.flow.add(batches)
        for batch in batches:
            codec = str(batch.get("compression", "none"))
            client.compression[codec] = client.compression.get(codec, 0) + 1
            producer_id = batch.get("producer_id", -1)
            client.idempotent |= isinstance(producer_id, int) and producer_id >= 0

    def _reads(self, client: ClientState, index: int) -> bool:
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

    def _topics_in(self, body: Body, ns: int) -> Iterator[tuple[tuple[str, Body], TopicState]]:
        """The topics of a body, each with its key here and the structure that names it."""
        for member in _structs(body, ("topics", "topic_data", "responses")):
            key = _key_of(member)
            if key is None:
                continue
            topic = self._topics.get(key)
            if topic is None:
                if not self._admit(ROW_BYTES + text_bytes(key)):
                    continue
                topic = self._topics[key] = TopicState(ns)
                if not any(isinstance(member.get(name), str) for name in _TOPIC_NAMES):
                    self._ids[key] = None
            topic.last_ns = max(topic.last_ns, ns)
            yield (key, member), topic

    def _partitions_in(self, topic: TopicState, member: Body) -> Iterator[tuple[int, Body, PartitionState]]:
        for part in _structs(member, _PARTITIONS):
            index = next((part[name] for name in _INDEXES if isinstance(part.get(name), int)), None)
            if index is None:
                continue
            partition = topic.partitions.get(index)
            if partition is None:
                if not self._admit(PARTITION_BYTES):
                    continue
                partition = topic.partitions[index] = PartitionState()
            yield index, part, partition

    def _client(self, topic: TopicState, role: str, exchange: Exchange, ns: int) -> ClientState | None:
        key = (role, identity_of(exchange))
        client = topic.clients.get(key)
        if client is None:
            client_id, address, _, principal = key[1]
            if not self._admit(ROW_BYTES + text_bytes(client_id, address, principal)):
                return None
            client = topic.clients[key] = ClientState(role, ns)
        client.last_ns = ns
        return client

    # -- the answer ---------------------------------------------------------------------------------------------

    def topics(self) -> list[Topic]:
        """Every topic, the one with most bytes first. A topic that was named by its id before its name was known is
        one topic."""
        merged: dict[str, tuple[str | None, list[TopicState]]] = {}
        for key, topic in self._topics.items():
            is_id = key in self._ids
            name = (self._topic_name(key) if is_id and self._topic_name is not None else None) or key
            topic_id, parts = merged.get(name, (None, []))
            merged[name] = (key if is_id else topic_id, [*parts, topic])
        seconds = max(self._last_ns - self._first_ns, 0) / 1e9
        found = [
            TopicSummary(name, topic_id, parts, self._groups).result(seconds)
            for name, (topic_id, parts) in merged.items()
        ]
        return sorted(found, key=lambda one: (-one.produced.size_bytes - one.consumed.size_bytes, one.name))


def identity_of(exchange: Exchange) -> Identity:
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
    return topic_id if isinstance(topic_id, str) and topic_id != ZERO_UUID else None


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
