"""Members that leave their group, what they had read by then, and records that are written to a group without members.

Members are those of the newest generation, as JoinGroup names them to the leader, and all that send heartbeats. A
member leaves by LeaveGroup, by a heartbeat with a negative epoch (KIP-848), or by closing the connection to its
coordinator without coming back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.bodies import group_of, is_answered, request_body, response_body
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import clock, counted, duration, listed
from kwiresniff.analysis.groups import subscribed_topics
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import request_place
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

#: Members of all groups, topics of a group, and clients that have left a group, that are remembered.
MAX_MEMBERS = 10_000
MAX_TOPICS = 100
MAX_LEFT = 100
#: Partitions of a reader whose first offset is remembered.
MAX_PARTITIONS = 50
#: A consumer with Kafka's defaults commits nothing before (``auto.commit.interval.ms``).
COMMIT_INTERVAL_NS: Final = 5_000_000_000
#: How long a group waits for a silent member whose requests do not say it (``group.consumer.session.timeout.ms``).
SESSION_MS: Final = 45_000


class _Reader:
    """A client in a group: what it has read since it joined, and its departures soon after its first records."""

    __slots__ = ("case", "codecs", "firsts", "group", "progressed", "read_ns", "records")

    def __init__(self) -> None:
        self.case: Case | None = None
        self.join("")

    def join(self, group_id: str) -> None:
        self.group = group_id
        self.read_ns = 0
        self.records = 0
        self.codecs: dict[str, None] = {}
        self.firsts: dict[tuple[str, int], int] = {}
        self.progressed = False


class _Group:
    """A group: members by their ids, topics, clients that have left, and since when it has no members."""

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
    that left, those that ``vanished`` without a LeaveGroup; of the second: ``longest_ns`` until it left, whether it
    ``is_gone``, or ``went_on`` later; notes: ``codecs`` of what it was given. A group without members is harm once the
    session timeout is over.
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
        api_key = exchange.api_key
        if api_key == PRODUCE:
            if self._watched and not exchange.errors:
                self._count_written(exchange)
            return
        if api_key == FETCH:
            if self._readers:
                self._read(exchange)
            return
        request, answer = request_body(exchange), response_body(exchange)
        if not request or exchange.errors or not (is_answered(exchange) or api_key == LEAVE_GROUP):
            return
        epoch = request.get("member_epoch")
        if api_key == LEAVE_GROUP or (isinstance(epoch, int) and epoch < 0):
            for one in request.get("members") or [request]:
                self._leave(exchange, group_of(request), clipped(field_text(one.get("member_id"))))
        else:
            self._member(exchange, request, answer)

    def connection(self, connection: Connection) -> None:
        """A member whose connection to its coordinator its client closes has left, unless it comes back."""
        group_id, member_id = self._on.pop(connection.id, ("", ""))
        group = self._groups.get(group_id)
        if group is not None and member_id in group.members and connection.closed_by == "client":
            client = group.members[member_id]
            self._gone(group, member_id, connection.closed_packet, connection.closed_ns)
            if client in group.last:
                group.vanished[client] = None

    def _member(self, exchange: Exchange, request: Body, answer: Body) -> None:
        member_id = clipped(field_text(answer.get("member_id")) or field_text(request.get("member_id")))
        group_id = group_of(request)
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
            reader = self._readers.of(client)
            if reader is not None:
                reader.join(group_id)
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

    def _about(self, group: _Group, topic: str) -> None:
        topic = clipped(topic)
        if topic not in group.topics and self.context.has_room(group.topics, MAX_TOPICS, topic, entries=3):
            group.topics[topic] = None

    def _read(self, exchange: Exchange) -> None:
        reader = self._readers.get(client_of(exchange))
        if reader is None:
            return
        response = exchange.response
        if response is None or reader.progressed:
            return
        if reader.read_ns and response.first_ns - reader.read_ns >= COMMIT_INTERVAL_NS:
            return  # what it reads from here on does not matter
        for topic, part in self.context.brought(exchange):
            reader.read_ns = reader.read_ns or response.first_ns
            reader.records += part.records
            reader.codecs.update(dict.fromkeys(_codecs(part)))
            place = topic, part.index
            if place not in reader.firsts and self.context.has_room(reader.firsts, MAX_PARTITIONS, entries=2):
                reader.firsts[place] = part.first_offset
            group = self._groups.get(reader.group)
            if group is not None:
                self._about(group, topic)

    def _commit(self, client: str, request: Body) -> None:
        reader = self._readers.get(client)
        if reader is not None and not reader.progressed:
            reader.progressed = any(
                part.offset > reader.firsts.get((name, part.index), part.offset)
                for name, part in self.context.parts_in(request)
            )

    def _count_written(self, exchange: Exchange) -> None:
        for topic, part in self.context.parts(exchange.request):
            for group in self._watched.get(topic, ()):
                group.written += part.records

    def _leave(self, exchange: Exchange, group_id: str, member_id: str) -> None:
        group = self._groups.get(group_id)
        if group is not None and member_id in group.members:
            self._gone(group, member_id, *request_place(exchange))

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

    def observations(self) -> Iterator[Observation]:
        for client, reader in self._readers.items():
            case = reader.case
            if case is None:
                continue
            group = self._groups.get(reader.group)
            is_gone = group is not None and client in group.last
            numbers = {"longest_ns": case.most, "is_gone": is_gone, "went_on": reader.progressed}
            about = [f"client:{client}", f"group:{reader.group}"]
            yield observation_of("left_at_first_records", case, about, numbers)
        for group_id, group in self._groups.items():
            if group.empty_ns and group.written:
                yield self._deserted(group_id, group)

    def _deserted(self, group_id: str, group: _Group) -> Observation:
        topics, lasted_ns = list(group.topics), max(self.context.end_ns - group.empty_ns, 0)
        patience_ns = (group.patience_ms or SESSION_MS) * 1_000_000
        harm = Harm(records_unread=group.written, seconds_down=lasted_ns / 1e9)
        about = [f"group:{group_id}", *(f"topic:{one}" for one in topics), *(f"client:{one}" for one in group.last)]
        return Observation(
            kind="group_deserted",
            about=frozenset(about),
            text=f"group {group_id} has had no members since {clock(group.empty_ns)}, and "
            f"{counted(group.written, 'record')} were written to {listed(topics)} in the {duration(lasted_ns)} since",
            first_ns=group.empty_ns,
            last_ns=self.context.end_ns,
            count=group.case.count,
            harm=harm if lasted_ns > patience_ns else HARMLESS,  # until then a member may come back
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
