"""Where a consumer begins when it is started again, against what it had committed before.

Sources: JoinGroup of a new member and ConsumerGroupHeartbeat of epoch 0, OffsetFetch and OffsetCommit, ListOffsets, the
offsets that the first fetches ask for, LeaveGroup.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.bodies import group_of, request_body
from kwiresniff.analysis.doctor.cause import Cause, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_NAMES, Case, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.log_ranges import OUT_OF_RANGE
from kwiresniff.analysis.doctor.troubles.uncommitted_starts import groups_in
from kwiresniff.analysis.doctor.wording import counted, listed, times
from kwiresniff.analysis.places import place_of, request_place
from kwiresniff.base.api_keys import (
    CONSUMER_GROUP_HEARTBEAT,
    FETCH,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_OFFSETS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
)
from kwiresniff.model import Body, Exchange
from kwiresniff.results.findings import scope_of

#: Clients whose starts are followed, and the partitions of one of which the first fetch is looked at.
MAX_CLIENTS = 2_000
MAX_PARTITIONS = 500
#: What is fetched for the first time so long after a start is where it begins.
START_NS: Final = 10_000_000_000
#: Starts of the same kind from which on they are no single replay, and groups that a client had one after the other.
FEW_STARTS: Final = 2
FEW_GROUPS: Final = 3
#: The client id of Kafka's console consumer, which has a new group each time.
_CONSOLE: Final = "console-consumer"


class _Client:
    """A client's starts, and the one that goes on: its group, when it began, the partitions seen to begin, and those
    for which its group has no offset. ``committed_for`` is the group for which it committed last."""

    __slots__ = (
        "again", "ahead", "ahead_records", "asked", "began_ns", "begun", "behind", "behind_at", "behind_records",
        "changes", "committed_for", "group", "is_lost", "missed", "room", "stopped", "uncommitted",
    )  # fmt: skip

    def __init__(self, context: Context) -> None:
        self.group = self.committed_for = ""
        self.began_ns = 0
        self.begun: set[tuple[str, int]] = set()
        self.behind_at: set[tuple[str, int]] = set()
        self.is_lost = self.asked = self.uncommitted = False
        self.behind, self.ahead = context.case(), context.case()
        self.changes, self.stopped = context.case(), context.case()
        self.ahead_records = self.behind_records = self.missed = self.again = self.room = 0


class Restarts(Observer):
    """``begins_before_commits``: a client is started again in a group for which it has committed, and reads before
    that; ``begins_at_end``: it asks where the log ends instead, and begins there; ``groups_change``: a client is
    started again in another group, which has no offsets; ``stops_without_offset``: a client joins a group that has no
    offsets, asks neither for the ends of the log nor for records, and leaves.

    Counted are the starts. Notes: ``topics``; of ``groups_change``, ``names``: the groups. Numbers: ``records`` that
    are read again, of the others those that lie between what it had committed and where it begins, and those read
    ``again``; ``group``.
    """

    kinds: ClassVar[tuple[str, ...]] = (
        "begins_before_commits", "begins_at_end", "groups_change", "stops_without_offset",
    )  # fmt: skip
    apis: ClassVar[frozenset[int] | None] = frozenset({
        CONSUMER_GROUP_HEARTBEAT, FETCH, JOIN_GROUP, LEAVE_GROUP, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH,
    })  # fmt: skip

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._clients: Subjects[str, _Client] = context.subjects(lambda: _Client(context), 8, MAX_CLIENTS)
        self._until_ns = 0

    def exchange(self, exchange: Exchange) -> None:
        if exchange.request is None or (exchange.response is None and exchange.api_key != LEAVE_GROUP):
            return
        api_key = exchange.api_key
        if api_key == FETCH and exchange.request.first_ns > self._until_ns:
            return
        client = client_of(exchange)
        known = self._clients.get(client)
        if api_key in (JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT):
            self._join(client, exchange, request_body(exchange))
        elif known is None:
            return
        elif api_key == FETCH:
            if known.began_ns:
                self._fetch(client, known, exchange)
        elif exchange.errors:
            return
        elif api_key == OFFSET_FETCH:
            self._offsets(known, exchange)
        elif api_key == LIST_OFFSETS:
            known.asked = True
        elif api_key == OFFSET_COMMIT:
            known.committed_for = group_of(request_body(exchange))
        else:
            self._end(known, exchange)

    def failure(self, exchange: Exchange) -> None:
        """Whoever is told that its offset is not in the log begins elsewhere because of that."""
        known = self._clients.get(client_of(exchange)) if exchange.api_key == FETCH else None
        if known is not None and any(name == OUT_OF_RANGE for _, _, name, _ in exchange.errors):
            known.is_lost = True

    def _join(self, client: str, exchange: Exchange, request: Body) -> None:
        beats = exchange.api_key == CONSUMER_GROUP_HEARTBEAT
        is_new = request.get("member_epoch") == 0 if beats else not request.get("member_id")
        known = self._clients.of(client) if is_new else None
        if known is None:
            return
        self._end(known, exchange)
        known.group, known.began_ns = group_of(request), request_place(exchange)[1]
        self._until_ns = max(self._until_ns, known.began_ns + START_NS)
        known.begun.clear()
        known.behind_at.clear()
        known.is_lost = known.asked = known.uncommitted = False

    def _end(self, known: _Client, exchange: Exchange) -> None:
        """A start is over: with nothing read where the group had no offsets, and nothing asked for."""
        packet, ns = request_place(exchange)
        is_soon = known.began_ns > 0 and ns - known.began_ns <= START_NS
        if is_soon and known.uncommitted and not known.asked and not known.begun:
            known.stopped.add(packet, ns)
        known.began_ns = 0

    def _offsets(self, known: _Client, exchange: Exchange) -> None:
        for group, body in groups_in(exchange):
            offsets = [part.offset for _, part in self.context.parts_in(body)]
            if group == known.group and offsets:
                known.uncommitted = max(offsets) < 0
                known.is_lost = known.is_lost or min(offsets) < 0

    def _fetch(self, client: str, known: _Client, exchange: Exchange) -> None:
        packet, ns = place_of(exchange)
        if ns - known.began_ns > START_NS:
            known.began_ns = 0
            return
        for name, part in self.context.parts(exchange.request):
            place = name, part.index
            committed = self.context.commits.get((client, *place))
            if part.offset < 0 or not self._has_room(known, place):
                continue
            is_first = place not in known.begun
            known.begun.add(place)
            if committed is None or not committed.count:
                continue
            away = part.offset - committed.offset
            # Some fetch where their group stands before their application seeks.
            if (away < 0 and place not in known.behind_at) or (away > 0 and is_first):
                known.behind_at |= {place} if away < 0 else set()
                self._began(known, name, away, (packet, ns))

    def _has_room(self, known: _Client, place: tuple[str, int]) -> bool:
        """Whether a partition may be remembered; what an earlier start had room for stays charged."""
        if place in known.begun or len(known.begun) < known.room:
            return True
        has_room = self.context.has_room(known.begun, MAX_PARTITIONS, entries=2)
        known.room += has_room
        return has_room

    def _began(self, known: _Client, topic: str, away: int, place: tuple[int, int]) -> None:
        """It begins so many records behind what it had committed, or before that where the number is negative."""
        if known.group != known.committed_for:
            _note(known.changes, topic, place, known.began_ns)
            known.changes.note("names", [known.committed_for, known.group], MAX_NAMES)
            known.missed += max(away, 0)
            known.again += max(-away, 0)
        elif away < 0 and not known.is_lost:
            _note(known.behind, topic, place, known.began_ns)
            known.behind_records -= away
        elif away > 0 and known.asked and not known.is_lost:
            _note(known.ahead, topic, place, known.began_ns)
            known.ahead_records += away

    def observations(self) -> Iterator[Observation]:
        for client, known in self._clients.items():
            about, group = {f"client:{client}"}, {f"group:{known.group}"}
            if known.behind.count >= FEW_STARTS:
                numbers = {"records": known.behind_records, "group": known.group}
                harm = Harm(records_doubled=known.behind_records)
                yield observation_of("begins_before_commits", known.behind, about | group, numbers, harm)
            if known.ahead.count >= FEW_STARTS:
                numbers = {"records": known.ahead_records, "group": known.group}
                harm = Harm(records_lost=known.ahead_records)
                yield observation_of("begins_at_end", known.ahead, about | group, numbers, harm)
            if len(known.changes.noted("names")) >= FEW_GROUPS:
                numbers = {"records": known.missed, "again": known.again}
                harm = Harm(records_lost=known.missed, records_doubled=known.again)
                yield observation_of("groups_change", known.changes, about, numbers, harm)
            if known.stopped.count >= FEW_STARTS:
                numbers = {"group": known.group}
                harm = Harm(seconds_down=known.stopped.seconds)
                yield observation_of("stops_without_offset", known.stopped, about | group, numbers, harm)


def _note(case: Case, topic: str, place: tuple[int, int], began_ns: int) -> None:
    """Counts a start once, whichever partitions it is seen in."""
    if case.last_ns < began_ns:
        case.add(*place)
    case.note("topics", [topic])


@cause("reads_from_beginning", explains=("begins_before_commits",))
def sought_back(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`reads_from_beginning` (warning): a consumer is started twice and more in a group for which it has committed
    offsets, and each time reads from before them: its application seeks, or assigns partitions with offsets of its own.
    Must not be seen: that the offsets are gone, or out of range. A consumer that loads a topic at each start on
    purpose, to fill a table in its memory, looks the same.
    """
    numbers, client = one.numbers, one.name("client")
    return told(
        one,
        f"reads {listed(one.noted('topics'))} from before what group {numbers['group']} has committed at "
        f"{counted(one.count, 'start')}: {counted(numbers['records'], 'record')} that it had finished come again",
        "The group has offsets, and its application does not use them: look for seekToBeginning, seek, or an assign "
        "with offsets, and leave them out. Where it is to load all of a topic at each start, it needs no group.id and "
        "no commits.",
        doubt="It may load the topic on purpose at each start.",
        severity="warning",
        explains={"rebalances": scope_of("group", one.named("group")), "no_progress": scope_of("client", [client])},
    )


@cause("seeks_to_end", explains=("begins_at_end",))
def sought_to_end(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`seeks_to_end` (warning): a consumer is started twice and more in a group for which it has committed offsets, and
    each time asks where the log ends and begins there: its application seeks. What was written while it was away is
    never read. Must not be seen: that the offsets are gone, or out of range. A consumer that is meant to see new
    records only looks the same, and so does one whose group has committed more by other members meanwhile.
    """
    numbers, client = one.numbers, one.name("client")
    return told(
        one,
        f"begins at the end of {listed(one.noted('topics'))} at {counted(one.count, 'start')}, though it has committed "
        f"offsets for group {numbers['group']}: {counted(numbers['records'], 'record')} behind them are never read",
        "The group has offsets, and its application does not use them: look for seekToEnd, OFFSET_END or an assign "
        "with offsets, mostly in what it does when partitions are assigned, and leave them out.",
        doubt="It may be meant to see new records only, or other members have read these.",
        severity="warning",
        explains={"rebalances": scope_of("group", one.named("group")), "consumer_lag": scope_of("client", [client])},
    )


class ChangingGroups(Cause):
    """`group_id_changes` (warning; info for a console consumer, and where no record is seen to be missed or to come
    again): a client is started again and again, each time in another group, which has no offsets: what it had committed
    before is another group's. It begins where
    `auto.offset.reset` says. Must be seen: three groups one after the other, and commits for the one before of the same
    partitions. A console consumer does so on purpose.
    """

    codes = ("group_id_changes",)
    explains = ("groups_change", "starts_at_end")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        for one in observed.of("groups_change"):
            names, records, client = one.noted("names"), one.numbers["records"], one.name("client")
            groups = scope_of("group", names)
            starts = [each for each in observed.about(groups, "starts_at_end") if client in each.named("client")]
            again = one.numbers["again"]
            missed = f": {counted(records, 'record')} written while it was away are never read" if records else ""
            missed += f"{', and' if records else ':'} {counted(again, 'record')} come again" if again else ""
            is_console = client.startswith(_CONSOLE)
            yield told(
                one,
                f"is started {times(one.count + 1)} in as many groups ({listed(names, 3)}): none has the offsets that "
                f"it committed before for {listed(one.noted('topics'))}{missed}",
                "Give it one group.id that stays: a name with a random part, a host's or a process's number in it is a "
                "new group at each start, which begins where auto.offset.reset says.",
                code="group_id_changes",
                explained=(one, *starts),
                numbers={"groups": names, "records": records, "again": again},
                doubt="It may be meant to see only what comes in, as a console consumer is.",
                severity="warning" if (records or again) and not is_console else "info",
                explains={"group_deserted": groups, "rebalances": groups},
            )


@cause("no_offset_to_begin", explains=("stops_without_offset",))
def nowhere_to_begin(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`no_offset_to_begin` (error): a consumer joins its group twice and more, is told that there are no committed
    offsets, and leaves without asking for a record, or where the log begins or ends: `auto.offset.reset` is `none`
    (`error`), and its application ends. One that ends at once for another reason looks the same.
    """
    group = one.numbers["group"]
    return told(
        one,
        f"joins group {group}, which has no committed offsets, and leaves without reading anything, "
        f"{times(one.count)}: it does not ask where the log begins or ends, as with auto.offset.reset=none",
        "Set the group's offsets once (kafka-consumer-groups --reset-offsets) before it is started, or "
        "auto.offset.reset=earliest or latest. Its log has the exception.",
        doubt="Its application may end at once for another reason.",
        severity="error",
        explains=dict.fromkeys(("rebalances", "group_deserted", "connection_churn"), one.about),
    )
