"""Topic first: who produces and who consumes, rates, errors, lag, and the time from produce to consume.

Sources: the protocol guide (Produce, Fetch, OffsetCommit, OffsetFetch, TxnOffsetCommit), KIP-227 (an incremental Fetch
names a partition when its position changes), KIP-516 (topic ids), KIP-932 (share groups).

Bounded, see ``topic_table``; of batches whose consumption is awaited each partition has the last
``topic_state.MAX_AWAITED``.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import ClassVar, Final

from kwiresniff.analysis.body_entities import groups_of_member, replica_id_of
from kwiresniff.analysis.cluster_evidence import cluster_of
from kwiresniff.analysis.followed_sessions import FollowedSessions
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, NUMBER_BYTES, text_bytes
from kwiresniff.analysis.topic_parts import parts_of, refused_parts, structs, topic_of_path
from kwiresniff.analysis.topic_state import (
    ClientState,
    Flow,
    Identity,
    PartitionState,
    Poll,
    Sender,
    TopicState,
)
from kwiresniff.analysis.topic_summary import TopicSummary
from kwiresniff.analysis.topic_table import TopicTable
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, OFFSET_FETCH, PRODUCE, SHARE_FETCH, TXN_OFFSET_COMMIT
from kwiresniff.base.field_values import field_text
from kwiresniff.base.needs import Needs
from kwiresniff.digest import PartitionDigest, TopicDigest
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Body, Exchange, FetchedTopics, Message, TopicNames
from kwiresniff.results.topics import Topic

#: Different values of ``acks`` that are kept of a client: there are three (-1, 0, 1), and those of broken clients.
MAX_ACKS: Final = 8

#: Nanoseconds of a millisecond, in which records have their timestamps.
MS: Final = 1_000_000
#: Most answers refuse nothing.
NONE_REFUSED: Final[dict[tuple[str, int], bool]] = {}

_ROLES = ("producer", "consumer", "share consumer", "replica")


class TopicTraffic:
    """Collects from exchanges whose bodies are decoded, batch headers included, or that have digests."""

    NEEDS: ClassVar[Needs] = Needs("bodies", sessions=True, clusters=True, digests=True)

    def __init__(self, topic_name: TopicNames | None = None, clusters: Clusters | None = None) -> None:
        """``clusters`` are those of other analyses of the same exchanges."""
        self._topic_name = topic_name
        self._clusters = clusters or Clusters()
        self._table = TopicTable(self._clusters)
        self._polls = FollowedSessions()  # by session, role and identity
        self._first_ns = -1
        self._last_ns = -1

    @property
    def left_out(self) -> int:
        """Names and rows that found no room."""
        return self._table.left_out

    def exchange(self, exchange: Exchange) -> None:
        """Take in an exchange."""
        request, response = exchange.request, exchange.response
        first, last = request or response, response or request
        if first is None or last is None:
            return
        if self._first_ns < 0 or first.first_ns < self._first_ns:
            self._first_ns = first.first_ns
        ns = last.last_ns
        if ns > self._last_ns:
            self._last_ns = ns
        self._table.turn += 1
        self._table.node = cluster_of(self._clusters, exchange)
        api_key = exchange.api_key
        if api_key == PRODUCE:
            self._produce(exchange, request, response, ns)
        elif api_key == FETCH:
            self._fetch(exchange, request, response, ns)
        elif api_key == SHARE_FETCH:
            # Of a ShareFetch no digest tells the partitions.
            self._consumed(self._table.sender(exchange), "share consumer", parts_of(_body(response)), ns)
        elif api_key in (OFFSET_COMMIT, TXN_OFFSET_COMMIT):
            asked = _body(request)
            self._commits(exchange, field_text(asked.get("group_id")), asked, ns)
        elif api_key == OFFSET_FETCH:
            answer = _body(response)
            for group in structs(answer, ("groups",)) or [{**answer, "group_id": _body(request).get("group_id", "")}]:
                self._commits(exchange, field_text(group.get("group_id")), group, ns)
        if exchange.errors and _may_name_topics(response):
            self._errors(exchange, _body(response))
        if api_key not in (PRODUCE, FETCH) and request is not None:
            is_named = request.digest is None or request.digest.groups is not None
            self._table.speaks_for(exchange, groups_of_member(_body(request)) if is_named else [])

    # -- what the APIs say --------------------------------------------------------------------------------------

    def _produce(self, exchange: Exchange, request: Message | None, response: Message | None, ns: int) -> None:
        table = self._table
        sender = table.sender(exchange)
        written: dict[PartitionState, int] = {}
        answered = _parts(response)
        refused = refused_parts(exchange, answered) if exchange.errors else NONE_REFUSED
        for named in _parts(request):
            topic = table.topic(named, sender, ns)
            client = table.client(topic, "producer", sender, ns) if topic is not None else None
            if topic is None or client is None:
                continue
            client.flow.requests += 1
            client.unanswered += exchange.outcome == "unanswered"
            self._note_producer(client, request)
            for part in named.partitions:
                partition = table.partition(topic, client, part.index)
                if partition is None:
                    continue
                again = refused.get((named.name, part.index))
                if again is None:
                    again = part.producer != b"" and self._has_taken(topic, partition, part)
                    flow = client.repeated if again else client.flow
                else:
                    flow = client.repeated if again else client.refused
                if flow is client.flow:
                    partition.produced.requests += 1
                    partition.produced.add(part)
                self._carried(client, sender.broker, partition, part, flow)
                written[partition] = part.records
        for named in answered:
            topic = table.topic(named, sender, ns)
            if topic is None:
                continue
            for part in named.partitions:
                partition = table.partition(topic, None, part.index)
                if partition is not None and part.offset >= 0:
                    end = part.offset + written.get(partition, 1)
                    partition.high_watermark = max(partition.high_watermark, end)
                    partition.written(part.offset, ns, table.budget)

    def _has_taken(self, topic: TopicState, partition: PartitionState, part: PartitionDigest) -> bool:
        """Whether a batch was taken before, by whichever broker led the partition then."""
        if partition.has_taken(part.producer, self._table.budget):
            return True
        return any(one.knows(part.producer) for one in self._table.siblings(topic, part.index))

    def _note_producer(self, client: ClientState, request: Message | None) -> None:
        if request is None:
            return
        digest = request.digest
        if digest is None:
            body = _body(request)
            acks = body.get("acks", 0)
            name = body.get("transactional_id")
        else:
            acks = digest.acks
            name = digest.transactional_ids[0] if digest.transactional_ids is not None else None
        if acks not in client.acks and len(client.acks) < MAX_ACKS:
            client.acks.append(acks)
        if name:
            self._table.note(client.transactional_ids, field_text(name))

    def _fetch(self, exchange: Exchange, request: Message | None, response: Message | None, ns: int) -> None:
        table = self._table
        sender = table.sender(exchange)
        role = "replica" if replica_id_of(request) >= 0 else "consumer"
        for named in _parts(request):
            topic = table.topic(named, sender, ns)
            if topic is None:
                continue
            client = table.client(topic, role, sender, ns)
            for part in named.partitions:
                partition = table.partition(topic, client, part.index)
                if partition is None or client is None:
                    continue
                known = table.note_partition(client, partition, part.index)
                if known is not None:
                    known.position, known.fetched_ns = part.offset, ns
        answered = _parts(response)
        self._consumed(sender, role, answered, ns)
        fetched = exchange.fetched
        if fetched is not None and response is not None:
            # What an incremental fetch does not name, because nothing has changed, was asked for all the same.
            poll = self._poll(exchange, sender, role, fetched, ns)
            poll.requests += 1
            poll.last_ns, poll.turn = ns, table.turn
            names = [named.name for named in answered]  # which have been counted already
            if len(names) > 1:
                names = list(dict.fromkeys(names))
            for name in names:
                named_too = poll.clients.get(name)
                if named_too is not None:
                    named_too.flow.requests -= 1

    def _poll(self, exchange: Exchange, sender: Sender, role: str, fetched: FetchedTopics, ns: int) -> Poll:
        """What a fetch asks for, with the client of each known topic.

        Most fetches of a session ask for the same as the one before, and those that do not mostly for more.
        """
        table = self._table
        followed = self._polls.of((fetched.session, role, sender.identity))
        poll: Poll | None = followed.state
        if poll is None:
            poll = followed.state = Poll()
        has_changed = followed.seen is not fetched.names
        if not has_changed and (not poll.unknown or table.count == poll.known):
            return poll
        new: list[str] = []
        if has_changed:
            for name, added in followed.changes(fetched.names):
                if added:
                    poll.unknown[name] = None
                    new.append(name)
                else:
                    poll.drop(name)
            for dropped in self._polls.weigh(followed):
                dropped.state.settle()
        for name in new if table.count == poll.known else list(poll.unknown):
            if name not in poll.unknown:
                continue
            known = table.named(name, sender.node)
            client = table.client(known[0], role, sender, ns) if known else None
            if client is not None:
                del poll.unknown[name]
                poll.clients[name] = client
                client.flow.requests -= poll.requests  # which were none of its own
        poll.known = table.count
        return poll

    def _settle(self) -> None:
        """Counts for each client what was counted for all of a session at once."""
        for followed in self._polls.known.values():
            followed.state.settle()

    def _consumed(self, sender: Sender, role: str, answered: list[TopicDigest], ns: int) -> None:
        table = self._table
        for named in answered:
            topic = table.topic(named, sender, ns)
            client = table.client(topic, role, sender, ns) if topic is not None else None
            if topic is None or client is None:
                continue
            client.flow.requests += 1
            for part in named.partitions:
                partition = table.partition(topic, client, part.index)
                if partition is None:
                    continue
                partition.high_watermark = max(partition.high_watermark, part.high_watermark)
                if not part.batches:
                    if role == "consumer":  # behind the marks of transactions it goes on as well
                        self._arrived(topic, client, partition, part, ns)
                    continue
                self._carried(client, sender.broker, partition, part, client.flow)
                if role == "replica":
                    continue
                partition.consumed.requests += 1
                partition.consumed.add(part)
                if part.oldest_ms >= 0:
                    table.measured(client.ages, ns - part.oldest_ms * MS)
                self._arrived(topic, client, partition, part, ns)

    def _arrived(
        self, topic: TopicState, client: ClientState, partition: PartitionState, part: PartitionDigest, ns: int
    ) -> None:
        """Batches have come to a consumer: it goes on behind them, and what was awaited has its time."""
        start, end = part.first_offset, part.end_offset
        if start < 0 or client.role != "consumer":
            return
        known = client.known(part.index)
        if known is not None:
            start = max(start, known.position)
            known.position, known.fetched_ns = max(end, start), ns
        self._waited(client, partition, start, end, ns)
        for sibling in self._table.siblings(topic, part.index):
            self._waited(client, sibling, start, end, ns)

    def _waited(self, client: ClientState, partition: PartitionState, start: int, end: int, ns: int) -> None:
        awaited = partition.awaited
        for at in range(bisect_left(awaited, start), len(awaited)):
            if awaited[at] >= end:
                break
            self._table.measured(client.waits, ns - partition.awaited_ns[at])

    def _carried(
        self, client: ClientState, broker: str, partition: PartitionState, part: PartitionDigest, flow: Flow
    ) -> None:
        """Batches of a partition have gone between a client and a broker; ``flow`` is what they count in."""
        self._table.note_partition(client, partition, part.index)
        self._table.note_bytes(client, broker, part.size_bytes)
        flow.add(part)
        if part.codecs is None:
            client.batches[part.codec] += part.batches
        else:
            for codec in part.codecs:
                client.named_batches[codec] = client.named_batches.get(codec, 0) + 1
        if part.is_idempotent:
            client.idempotent = True

    def _commits(self, exchange: Exchange, group: str, body: Body, ns: int) -> None:
        table = self._table
        sender = table.sender(exchange)
        for named in parts_of(body):
            topic = table.topic(named, sender, ns)
            if topic is None:
                continue
            offsets = topic.committed.get(group)
            if offsets is None:
                if not table.budget.admit_or_count(ENTRY_BYTES + CONTAINER_BYTES + text_bytes(group)):
                    continue
                offsets = topic.committed[group] = {}
            for part in named.partitions:
                if table.partition(topic, None, part.index) is None or part.offset < 0:
                    continue
                if part.index in offsets or table.budget.admit_or_count(ENTRY_BYTES + 2 * NUMBER_BYTES):
                    offsets[part.index] = part.offset, table.turn

    def _errors(self, exchange: Exchange, response: Body) -> None:
        table = self._table
        for path, _, code_name, _ in exchange.errors:
            key = topic_of_path(response, path)
            topics = table.named(key, table.node) if key is not None else []
            errors = topics[0].errors if topics else {}
            if not topics or not (
                code_name in errors or table.budget.admit_or_count(ENTRY_BYTES + text_bytes(code_name))
            ):
                continue
            errors[code_name] = errors.get(code_name, 0) + 1
            for role in _ROLES:
                found = [one.clients.get((role, table.identity(exchange))) for one in topics]
                if clients := [client for client in found if client is not None]:
                    clients[0].errors += 1

    # -- the answer ---------------------------------------------------------------------------------------------

    def topics(self) -> list[Topic]:
        """Every topic, the one with most bytes first. A topic that was named by its id before its name was known is
        one topic. Topics of one name in several clusters are several."""
        self._settle()
        table, clusters = self._table, self._clusters
        merged: dict[tuple[int, str], tuple[str | None, list[TopicState]]] = {}
        groups: dict[int, dict[Identity, dict[str, None]]] = {}
        for node, topics in table.topics.items():
            scope = clusters.scope(node)
            for identity, names in table.groups.get(node, {}).items():
                groups.setdefault(scope, {}).setdefault(identity, {}).update(names)
            for key, topic in topics.items():
                is_id = key in table.ids
                name = (self._topic_name(key) if is_id and self._topic_name is not None else None) or key
                topic_id, parts = merged.get((scope, name), (None, []))
                parts.append(topic)
                merged[scope, name] = (key if is_id else topic_id, parts)
        seconds = max(self._last_ns - self._first_ns, 0) / 1e9
        labels = clusters.labels()
        found = [
            TopicSummary(name, topic_id, parts, groups.get(scope, {})).result(seconds, labels.get(scope))
            for (scope, name), (topic_id, parts) in merged.items()
        ]
        return sorted(
            found, key=lambda one: (-one.produced.size_bytes - one.consumed.size_bytes, one.name, one.cluster or "")
        )


def _body(message: Message | None) -> Body:
    return (message.body if message is not None else None) or {}


def _may_name_topics(message: Message | None) -> bool:
    digest = message.digest if message is not None else None
    return digest is None or digest.topics is not None or digest.topic_ids is not None


def _parts(message: Message | None) -> list[TopicDigest]:
    """The topics of a Produce or Fetch, decoded or not."""
    if message is None:
        return []
    digest = message.digest
    if digest is None or digest.parts is None:
        return parts_of(message.body or {}) if digest is None else []
    parts = digest.parts
    for topic in parts:
        if not topic.name:
            return [named for named in parts if named.name]
    return parts
