"""Members that leave: whom a group has left, what they had read by then, and what is written that nobody reads.

A group's members are those of its newest generation, as its leader is told them (JoinGroup), and all that send
heartbeats. A member leaves by LeaveGroup, by a heartbeat with a negative epoch (KIP-848), or by closing the connection
to its coordinator without coming back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import clock, counted, duration, listed
from kwiresniff.analysis.groups import subscribed_topics
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import request_place
from kwiresniff.analysis.topic_parts import message_parts, parts_of
from kwiresniff.base.api_keys import (
    FETCH,
    HEARTBEAT,
    HEARTBEAT_PROTOCOLS,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    PRODUCE,
    SYNC_GROUP,
)
from kwiresniff.base.batch_layout import CODEC_NAMES
from kwiresniff.base.field_values import field_number, field_text
from kwiresniff.digest import PartitionDigest
from kwiresniff.model import Body, Connection, Exchange

#: Members of all groups together, and of a group topics and clients that have left, that are remembered.
MAX_MEMBERS = 10_000
MAX_TOPICS = 100
MAX_LEFT = 100
#: Partitions of a reader whose first offset is remembered, to see whether a commit is behind it.
MAX_PARTITIONS = 50
#: Before it has read for so long, a consumer with Kafka's defaults commits nothing (``auto.commit.interval.ms``).
COMMIT_INTERVAL_NS: Final = 5_000_000_000
#: For how long a member that fell silent may come back: ``group.consumer.session.timeout.ms`` of brokers, where the
#: member does not say it itself.
SESSION_MS: Final = 45_000


class _Reader:
    """A client in a group: what it has read since it joined, and how often it left with that."""

    __slots__ = ("case", "codecs", "firsts", "group", "progressed", "read_ns", "records")

    def __init__(self) -> None:
        self.group = ""
        self.case: Case | None = None
        self.join()

    def join(self) -> None:
        self.read_ns = 0
        self.records = 0
        self.codecs: dict[str, None] = {}
        self.firsts: dict[tuple[str, int], int] = {}
        self.progressed = False


class _Group:
    """A group: its members by their ids, its topics, who left it for good, and since when nobody is in it."""

    __slots__ = ("case", "empty_ns", "last", "members", "patience_ms", "topics", "vanished", "written")

    def __init__(self, case: Case) -> None:
        self.members: dict[str, str] = {}
        self.topics: dict[str, None] = {}
        self.patience_ms = 0
        self.case = case
        self.empty_ns = 0
        self.last: dict[str, None] = {}
        self.vanished: dict[str, None] = {}
        self.written = 0


class Departures(Observer):
    """``group_deserted``: all members of a group have left, and its topics are written; ``left_at_first_records``: a
    member left soon after its first records, and committed nothing behind them.

    Numbers of the first: ``records`` written since, ``lasted_ns``, ``patience_ns`` (the session timeout), ``members``
    that left, those of them that ``vanished`` without doing so; of the second: ``codecs`` of what it was given,
    ``longest_ns`` until it left, whether it ``is_gone``, or ``went_on`` later. Nobody in a group costs something once
    members that fell silent would have had to be back.
    """

    kinds: ClassVar[tuple[str, ...]] = ("group_deserted", "left_at_first_records")
    apis: ClassVar[frozenset[int] | None] = frozenset({
        PRODUCE, FETCH, JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP, OFFSET_COMMIT, *HEARTBEAT_PROTOCOLS,
    })  # fmt: skip

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._groups: Subjects[str, _Group] = context.subjects(lambda: _Group(context.case()), 8)
        self._readers: Subjects[str, _Reader] = context.subjects(_Reader, 8, MAX_MEMBERS)
        self._on: dict[int, tuple[str, str]] = {}
        #: The groups without members, by their topics.
        self._watched: dict[str, list[_Group]] = {}

    def exchange(self, exchange: Exchange) -> None:
        """What members say of their group, what they read, and what is written to its topics when they have gone."""
        api_key = exchange.api_key
        if api_key == PRODUCE:
            if self._watched and not exchange.errors:
                self._count_written(exchange)
            return
        if api_key == FETCH:
            if self._readers:
                self._read(exchange)
            return
        request = exchange.request.body if exchange.request is not None else None
        answer = exchange.response.body if exchange.response is not None else None
        if not request or exchange.errors or (answer is None and api_key != LEAVE_GROUP):
            return
        epoch = request.get("member_epoch")
        if api_key == LEAVE_GROUP:
            for one in request.get("members") or [request]:
                self._leave(exchange, field_text(request.get("group_id")), field_text(one.get("member_id")))
        elif isinstance(epoch, int) and epoch < 0:
            self._leave(exchange, field_text(request.get("group_id")), field_text(request.get("member_id")))
        else:
            self._member(exchange, request, answer or {})

    def connection(self, connection: Connection) -> None:
        """A member whose connection to its coordinator its client closes has left, unless it comes back."""
        known = self._on.pop(connection.id, None)
        if known is not None and connection.closed_by == "client":
            group = self._groups.get(known[0])
            if group is not None and known[1] in group.members:
                client = group.members[known[1]]
                self._gone(group, known[1], connection.closed_packet, connection.closed_ns)
                if client in group.last:
                    group.vanished[client] = None

    # -- who is in ------------------------------------------------------------------------------------------------

    def _member(self, exchange: Exchange, request: Body, answer: Body) -> None:
        member_id = clipped(field_text(answer.get("member_id")) or field_text(request.get("member_id")))
        group_id = clipped(field_text(request.get("group_id")))
        group = self._groups.of(group_id)
        if not member_id or group is None:
            return
        client = client_of(exchange)
        joins = exchange.api_key == JOIN_GROUP or request.get("member_epoch") == 0
        if joins:
            self._joined(exchange, group, request, answer)
        if group.members.get(member_id) != client:
            if not self.context.has_room(self._on, MAX_MEMBERS, member_id, client, entries=3):
                return
            group.members[member_id] = client
            group.last.pop(client, None)
            group.vanished.pop(client, None)
            self._begin(group_id, client)
        self._on[exchange.connection.id] = group_id, member_id
        if exchange.api_key == OFFSET_COMMIT:
            self._commit(client, request)
        if group.empty_ns:
            self._return(group)

    def _joined(self, exchange: Exchange, group: _Group, request: Body, answer: Body) -> None:
        group.patience_ms = field_number(request.get("session_timeout_ms")) or SESSION_MS
        for topic in subscribed_topics(request):
            self._about(group, topic)
        members = answer.get("members")
        if members:  # the leader is told all of them
            ids = [clipped(field_text(one.get("member_id"))) for one in members[:MAX_MEMBERS]]
            group.members = {
                one: group.members.get(one, "")
                for one in ids
                if one in group.members or self.context.budget.admit(ENTRY_BYTES + text_bytes(one))
            }

    def _begin(self, group_id: str, client: str) -> None:
        reader = self._readers.of(client)
        if reader is not None:
            reader.group = group_id
            reader.join()

    def _about(self, group: _Group, topic: str) -> None:
        topic = clipped(topic)
        if topic in group.topics or len(group.topics) >= MAX_TOPICS:
            return
        if self.context.budget.admit(3 * ENTRY_BYTES + text_bytes(topic)):
            group.topics[topic] = None

    # -- what they read -------------------------------------------------------------------------------------------

    def _read(self, exchange: Exchange) -> None:
        reader = self._readers.get(client_of(exchange))
        if reader is None:
            return
        if reader.progressed or (reader.read_ns and not self._is_soon(reader, exchange)):
            return  # what it reads from here on does not matter
        budget = self.context.budget
        for topic, part in self.context.brought(exchange):
            if not reader.read_ns and exchange.response is not None:
                reader.read_ns = exchange.response.first_ns
            reader.records += part.records
            reader.codecs.update(dict.fromkeys(_codecs(part)))
            place = topic, part.index
            if place not in reader.firsts and len(reader.firsts) < MAX_PARTITIONS and budget.admit(2 * ENTRY_BYTES):
                reader.firsts[place] = part.first_offset
            group = self._groups.get(reader.group)
            if group is not None:
                self._about(group, topic)

    def _is_soon(self, reader: _Reader, exchange: Exchange) -> bool:
        response = exchange.response
        return response is not None and response.first_ns - reader.read_ns < COMMIT_INTERVAL_NS

    def _commit(self, client: str, request: Body) -> None:
        reader = self._readers.get(client)
        if reader is None or reader.progressed:
            return
        for topic in parts_of(request):
            name = clipped(self.context.topic_in(topic))
            for part in topic.partitions:
                if part.offset > reader.firsts.get((name, part.index), part.offset):
                    reader.progressed = True
                    return

    def _count_written(self, exchange: Exchange) -> None:
        for topic in message_parts(exchange.request):
            groups = self._watched.get(clipped(self.context.topic_in(topic)))
            if groups:
                records = sum(part.records for part in topic.partitions)
                for group in groups:
                    group.written += records

    # -- who has left ---------------------------------------------------------------------------------------------

    def _leave(self, exchange: Exchange, group_id: str, member_id: str) -> None:
        group = self._groups.get(clipped(group_id))
        if group is not None and clipped(member_id) in group.members:
            self._gone(group, clipped(member_id), *request_place(exchange))

    def _gone(self, group: _Group, member_id: str, packet: int, ns: int) -> None:
        client = group.members.pop(member_id)
        if client and self.context.has_room(group.last, MAX_LEFT, entries=2):
            group.last[client] = None
        group.case.add(packet, ns)
        reader = self._readers.get(client)
        if reader is not None and reader.records and not reader.progressed and ns - reader.read_ns < COMMIT_INTERVAL_NS:
            if reader.case is None:
                reader.case = self.context.case()
            reader.case.add(packet, ns, ns - reader.read_ns)
            reader.case.note("codecs", reader.codecs)
            reader.case.note("topics", dict.fromkeys(topic for topic, _ in reader.firsts))
        if not group.members:
            group.empty_ns, group.written = ns, 0
            for topic in group.topics:
                self._watched.setdefault(topic, []).append(group)

    def _return(self, group: _Group) -> None:
        group.empty_ns = 0
        for topic in group.topics:
            groups = self._watched.get(topic, [])
            if group in groups:
                groups.remove(group)
            if not groups:
                self._watched.pop(topic, None)

    # -- what was seen --------------------------------------------------------------------------------------------

    def observations(self) -> Iterator[Observation]:
        """Groups without members by group, members that left with their first records by client."""
        for client, reader in self._readers.items():
            case = reader.case
            if case is None:
                continue
            codecs, group = case.noted("codecs"), self._groups.get(reader.group)
            yield observation_of(
                "left_at_first_records",
                case,
                {f"client:{client}", f"group:{reader.group}"},
                {
                    "codecs": codecs,
                    "longest_ns": case.most,
                    "is_gone": group is not None and client in group.last,
                    "went_on": reader.progressed,
                },
            )
        for group_id, group in self._groups.items():
            if group.empty_ns and group.written:
                yield self._deserted(group_id, group)

    def _deserted(self, group_id: str, group: _Group) -> Observation:
        topics, lasted_ns = list(group.topics), max(self.context.end_ns - group.empty_ns, 0)
        patience_ns = (group.patience_ms or SESSION_MS) * 1_000_000
        return Observation(
            kind="group_deserted",
            about=frozenset([f"group:{group_id}", *(f"topic:{one}" for one in topics)])
            | {f"client:{one}" for one in group.last},
            text=f"group {group_id} has had no members since {clock(group.empty_ns)}, and "
            f"{counted(group.written, 'record')} were written to {listed(topics)} in the {duration(lasted_ns)} since",
            first_ns=group.empty_ns,
            last_ns=self.context.end_ns,
            count=group.case.count,
            # As soon as that a member may come back, as after a restart.
            harm=Harm(records_unread=group.written, seconds_down=lasted_ns / 1e9)
            if lasted_ns > patience_ns
            else HARMLESS,
            evidence=tuple(group.case.evidence),
            numbers={
                "group": group_id,
                "topics": topics,
                "members": list(group.last),
                "vanished": [one for one in group.last if one in group.vanished],
                "records": group.written,
                "lasted_ns": lasted_ns,
                "patience_ns": patience_ns,
            },
        )


def _codecs(part: PartitionDigest) -> list[str]:
    """The names of the codecs of a partition's batches."""
    if part.codecs is not None:
        return part.codecs
    return [CODEC_NAMES[part.codec]] if part.codec < len(CODEC_NAMES) else []
