"""Assigned partitions that are written and not read; members that commit nothing of what they fetch; members that are
away while their group keeps their partitions.

An application that has paused a partition, or whose thread hangs while its library fetches ahead, goes on sending
heartbeats, so its group stays stable. The group learns that a member is gone when its session ends
(``session.timeout.ms``); a static member, with a ``group.instance.id``, never leaves when it ends (KIP-345).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

from kwiresniff.analysis.body_entities import message_transactional_ids
from kwiresniff.analysis.doctor.assignments import assignment_in
from kwiresniff.analysis.doctor.bodies import group_of, request_body, response_body
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, client_text, clipped, went_wrong
from kwiresniff.analysis.doctor.observation import Harm, Observation
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import clock, counted, duration, listed
from kwiresniff.analysis.places import place_of, request_place
from kwiresniff.base.api_keys import (
    CONSUMER_GROUP_HEARTBEAT,
    FETCH,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    PRODUCE,
    SYNC_GROUP,
)
from kwiresniff.base.field_values import field_number, field_text
from kwiresniff.model import Body, Connection, Exchange

#: Partitions remembered of each member, and of all that is written.
MAX_PARTITIONS = 10_000
MAX_ASSIGNED = 1_000
#: A consumer that polls has asked by then: ten times ``fetch.max.wait.ms``.
PATIENCE_NS: Final = 5_000_000_000
#: A restart takes less.
AWAY_NS: Final = 10_000_000_000
#: ``auto.commit.interval.ms`` by default, and how many such times without a commit are too many.
COMMIT_INTERVAL_NS: Final = 5_000_000_000
TIMES_LONGER: Final = 2
#: Deliveries of other partitions meanwhile that are needed.
OTHERS: Final = 10
_Partition = tuple[str, int]


class _Written:
    """The end of a partition, and the members that read it."""

    __slots__ = ("end", "readers")

    def __init__(self) -> None:
        self.end = -1
        self.readers: list[_Member] = []


class _Assigned:
    """An assigned partition: its position, since when records wait, and the member's deliveries by then."""

    __slots__ = ("deliveries", "end", "packet", "records", "waiting_ns")

    def __init__(self) -> None:
        self.end = -1
        self.read()

    def read(self) -> None:
        self.waiting_ns = self.packet = self.records = self.deliveries = 0


class _Member:
    """A client in a group: its partitions, how often it was given records, and when it was last heard of.

    ``commit_ns`` is the time of its last commit or assignment, ``gap_ns`` the longest between two commits, ``records``
    were given to it since, ``given`` counts deliveries by which it should have committed, ``session_ms`` is how long
    its group waits for it, ``connection`` the last one to its coordinator.
    """

    __slots__ = (
        "assigned", "commit_ns", "connection", "deliveries", "gap_ns", "given", "group", "instance", "packet",
        "records", "seen_ns", "session_ms",
    )  # fmt: skip

    def __init__(self) -> None:
        self.group = self.instance = ""
        self.connection = self.session_ms = self.deliveries = self.seen_ns = self.gap_ns = 0
        self.assigned: dict[_Partition, _Assigned] = {}
        self.committed(0, 0)

    def committed(self, packet: int, ns: int) -> None:
        self.commit_ns, self.packet = ns, packet
        self.given = self.records = 0


class UnreadPartitions(Observer):
    """``partition_not_read``: a member is given records of its other partitions, and none of one that is written, for
    5 s or more; ``commits_stopped``: it is given records, and commits nothing for twice as long as ever before and as
    ``auto.commit.interval.ms`` is by default; ``member_away``: it closed its connection to the coordinator without
    leaving, was not heard of for 10 s or more, and its partitions were written meanwhile.

    Numbers: ``group``, ``partitions``, ``records`` written meanwhile, ``waiting_ns``, ``reading`` (other partitions
    that it reads); of a member that is away ``lasted_ns``, ``session_ms``, its ``instance``, and whether it is
    ``over``. Not observed where the capture lacks parts of the member's answers, and of transactional records.
    """

    kinds: ClassVar[tuple[str, ...]] = ("partition_not_read", "commits_stopped", "member_away")
    apis: ClassVar[frozenset[int] | None] = frozenset({
        PRODUCE, FETCH, JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP, OFFSET_COMMIT, CONSUMER_GROUP_HEARTBEAT,
    })  # fmt: skip

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._written: Subjects[_Partition, _Written] = context.subjects(_Written, 6, MAX_PARTITIONS)
        self._members: Subjects[str, _Member] = context.subjects(_Member, 8)
        self._unsure: set[str] = set()
        self._found: dict[tuple[str, str], Observation] = {}  # of members that have left, as many as members
        self._gone: dict[str, None] = {}  # members that have closed their connection to the coordinator

    def exchange(self, exchange: Exchange) -> None:
        if exchange.api_key == PRODUCE:
            self._write(exchange)
            return
        if not self._members and exchange.api_key not in (JOIN_GROUP, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT):
            return
        client = client_of(exchange)
        if exchange.api_key == FETCH:
            self._read(exchange, client)
            return
        member, ns = self._members.get(client), place_of(exchange)[1]
        if member is not None:
            self._return(client, member, ns)
            member.seen_ns = ns
        request = request_body(exchange)
        if not request:
            return
        if exchange.api_key == OFFSET_COMMIT and member is not None:  # one that fails shows that it gets on, too
            self._commit(client, member, *request_place(exchange))
        if exchange.api_key == LEAVE_GROUP or request.get("member_epoch", 0) < 0:
            self._assign(client, "", [], ns)
        answer = response_body(exchange)
        if answer and not exchange.errors:
            assignment = assignment_in(exchange.api_key, answer)
            if assignment is not None or exchange.api_key == SYNC_GROUP:
                self._assign(client, group_of(request), assignment or [], ns)
        joins = exchange.api_key == JOIN_GROUP
        member = self._members.of(client) if joins else self._members.get(client)
        if member is not None:
            member.instance = clipped(field_text(request.get("group_instance_id"))) or member.instance
            member.session_ms = field_number(request.get("session_timeout_ms")) or member.session_ms
            member.seen_ns = ns
            member.connection = exchange.connection.id

    def connection(self, connection: Connection) -> None:
        """A member whose client closes the connection to the coordinator is away until it is heard of again."""
        client = client_text(connection.client_id, connection.client)
        member = self._members.get(client)
        if member is not None and member.connection == connection.id and connection.closed_by == "client":
            self._gone[client] = None

    def _return(self, client: str, member: _Member, ns: int) -> None:
        if client in self._gone:
            del self._gone[client]
            self._find(client, self._away(client, member, ns, is_over=True))

    def _find(self, client: str, observations: Iterable[Observation]) -> None:
        self._found.update({(one.kind, client): one for one in observations})

    def _assign(self, client: str, group_id: str, topics: list[Body], ns: int) -> None:
        member = self._members.of(client)
        if member is None:
            return
        names = [
            (clipped(self.context.topic_of(topic)), index)
            for topic in topics
            for index in topic.get("partitions") or ()
            if isinstance(index, int)
        ][:MAX_ASSIGNED]
        kept = {partition: one for partition, one in member.assigned.items() if partition in names}
        if len(kept) < len(member.assigned):
            self._find(client, self._told(client, member, ns))
        for partition in member.assigned:
            readers = self._written[partition].readers
            if partition not in kept and member in readers:
                readers.remove(member)
        member.group, member.assigned = group_id or member.group, kept
        member.committed(0, ns if names else 0)
        self._take_over(member, names, ns)
        for partition in names:
            written = self._written.of(partition)
            if written is not None and partition not in kept:
                member.assigned[partition] = _Assigned()
                written.readers.append(member)

    def _take_over(self, member: _Member, names: list[_Partition], ns: int) -> None:
        """Ends the absence of members whose partitions another is given."""
        for client in list(self._gone):
            other = self._members[client]
            taken = [one for one in names if one in other.assigned] if other.group == member.group else []
            if taken and other is not member:
                self._find(client, self._away(client, other, ns, is_over=True))
                for partition in taken:
                    del other.assigned[partition]
                    self._written[partition].readers.remove(other)

    def _write(self, exchange: Exchange) -> None:
        if exchange.errors or message_transactional_ids(exchange.request):
            return
        packet, ns = place_of(exchange)
        for name, part, answer in self.context.written(exchange):
            place, count = (name, part.index), part.records
            written = self._written.get(place)
            if written is None or answer is None or answer.offset < 0 or not count:
                continue
            written.end = max(written.end, answer.offset + count)
            for member in written.readers:
                one = member.assigned[place]
                if one.end < written.end:
                    if not one.waiting_ns:
                        one.waiting_ns, one.packet, one.deliveries = ns, packet, member.deliveries
                    one.records += count

    def _read(self, exchange: Exchange, client: str) -> None:
        member = self._members.get(client)
        if member is None:
            return
        if went_wrong(exchange):
            self._unsure.add(client)  # bounded by the members
        brought = self.context.brought(exchange)
        member.deliveries += bool(brought)
        fresh = False
        for name, part in brought:
            one = member.assigned.get((name, part.index))
            if one is None or part.end_offset <= one.end:
                continue  # what is read again is no more work than was done
            fresh = True
            member.records += part.records
            one.end = part.end_offset
            one.read()
        since_ns = place_of(exchange)[1] - member.commit_ns
        member.given += fresh and since_ns > max(member.gap_ns, COMMIT_INTERVAL_NS)

    def _commit(self, client: str, member: _Member, packet: int, ns: int) -> None:
        for one in self._uncommitted(client, member, ns):
            self._found.setdefault((one.kind, client), one)
        if member.commit_ns:
            member.gap_ns = max(member.gap_ns, ns - member.commit_ns)
        member.committed(packet, ns)

    def observations(self) -> Iterator[Observation]:
        found = dict(self._found)
        end_ns = self.context.end_ns
        for client, member in self._members.items():
            seen: Iterable[Observation] = ()
            if client in self._gone:
                seen = self._away(client, member, end_ns)
            elif end_ns - member.seen_ns < PATIENCE_NS:
                seen = self._told(client, member, end_ns)
            found.update({(one.kind, client): one for one in seen})
        for (_, client), one in found.items():
            if client not in self._unsure:
                yield one

    def _told(self, client: str, member: _Member, end_ns: int) -> Iterator[Observation]:
        """Unread partitions and missing commits of a member by ``end_ns``."""
        waiting = {
            partition: one
            for partition, one in member.assigned.items()
            if one.waiting_ns and end_ns - one.waiting_ns >= PATIENCE_NS
        }
        if waiting and member.deliveries - min(one.deliveries for one in waiting.values()) >= OTHERS:
            first_ns = min(one.waiting_ns for one in waiting.values())
            numbers = {"waiting_ns": end_ns - first_ns, "reading": len(member.assigned) - len(waiting)}
            yield _unread("partition_not_read", client, member, waiting, first_ns, end_ns, numbers)
        yield from self._uncommitted(client, member, end_ns)

    def _away(self, client: str, member: _Member, end_ns: int, *, is_over: bool = False) -> Iterator[Observation]:
        """The absence of a member until ``end_ns``, where its partitions were written meanwhile."""
        waiting = {name: one for name, one in member.assigned.items() if one.waiting_ns > member.seen_ns}
        if end_ns - member.seen_ns < AWAY_NS or not waiting:
            return
        known = self._found.get(("member_away", client))
        if known is not None and known.last_ns - known.first_ns > end_ns - member.seen_ns:
            return  # it was away for longer before
        numbers = {
            "lasted_ns": end_ns - member.seen_ns,
            "session_ms": member.session_ms,
            "instance": member.instance or None,
            "over": is_over,
        }
        yield _unread("member_away", client, member, waiting, member.seen_ns, end_ns, numbers)

    def _uncommitted(self, client: str, member: _Member, end_ns: int) -> Iterator[Observation]:
        """Missing commits until ``end_ns`` of a member that has committed before."""
        lasted_ns = end_ns - member.commit_ns
        usual_ns = max(member.gap_ns, COMMIT_INTERVAL_NS)
        if not (member.gap_ns and member.commit_ns) or member.given < OTHERS or lasted_ns < TIMES_LONGER * usual_ns:
            return
        yield Observation(
            kind="commits_stopped",
            about=frozenset([f"client:{client}", f"group:{member.group}"]),
            text=f"{client} committed every {duration(member.gap_ns)} at most, and nothing in the "
            f"{duration(lasted_ns)} from {clock(member.commit_ns)} on, in which it was given "
            f"{counted(member.records, 'record')}",
            first_ns=member.commit_ns,
            last_ns=end_ns,
            count=member.records,
            harm=Harm(records_unread=member.records),
            evidence=((member.packet, member.commit_ns),) if member.packet else (),
            numbers={"group": member.group, "records": member.records, "lasted_ns": lasted_ns, "gap_ns": member.gap_ns},
        )


def _unread(
    kind: str,
    client: str,
    member: _Member,
    waiting: dict[_Partition, _Assigned],
    first_ns: int,
    end_ns: int,
    numbers: dict[str, Any],
) -> Observation:
    """Partitions whose records a member has not read from one time to another."""
    records = sum(one.records for one in waiting.values())
    partitions = [f"{topic}-{index}" for topic, index in sorted(waiting)]
    about = [f"client:{client}", f"group:{member.group}", *(f"topic:{topic}" for topic, _ in waiting)]
    text = ""
    if kind == "partition_not_read":
        about += [f"partition:{one}" for one in partitions]
        reading = numbers["reading"]
        text = (
            f"{client} is assigned {listed(partitions)} and is given none of the {counted(records, 'record')} "
            f"that were written there in the {duration(end_ns - first_ns)} since {clock(first_ns)}"
        )
        text += f", and records of {counted(reading, 'other partition')} meanwhile" if reading else ""
    return Observation(
        kind=kind,
        about=frozenset(about),
        text=text,
        first_ns=first_ns,
        last_ns=end_ns,
        count=records,
        harm=Harm(records_unread=records),
        evidence=tuple((one.packet, one.waiting_ns) for one in list(waiting.values())[:5]),
        numbers={"group": member.group, "partitions": partitions[:100], "records": records, **numbers},
    )
