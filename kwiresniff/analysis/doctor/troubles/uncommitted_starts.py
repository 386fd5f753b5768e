"""Groups that have no committed offsets and commit none: each start begins where ``auto.offset.reset`` says.

Sources: OffsetFetch answers of -1 for all partitions, no commit for the group, and the offsets of the batches that its
consumers are given after each start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kwiresniff.analysis.doctor.bodies import group_of, request_body, response_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.departures import COMMIT_INTERVAL_NS
from kwiresniff.analysis.doctor.wording import duration, listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, OFFSET_FETCH, TXN_OFFSET_COMMIT
from kwiresniff.digest import PartitionDigest
from kwiresniff.model import Body, Exchange

#: Clients, and partitions of a group, that are remembered.
MAX_CLIENTS = 5_000
MAX_PARTITIONS = 5_000


@dataclass(slots=True, eq=False)
class _Partition:
    """How far a group has read a partition (``first`` to ``end``), and the records given again or skipped."""

    first: int = -1
    end: int = -1
    is_fresh: bool = True
    doubled: int = 0
    skipped: int = 0
    starts: int = 0


@dataclass(slots=True, eq=False)
class _Group:
    """A group without committed offsets: its starts, and what its members read."""

    case: Case
    partitions: Subjects[tuple[str, int], _Partition]
    is_committed: bool = False
    begun_ns: int = 0
    longest_ns: int = 0
    records: int = 0
    refused: int = 0


class UncommittedStarts(Observer):
    """``uncommitted_starts``: a group starts again and again without a committed offset, and commits none.

    Numbers: ``starts``, ``records`` given in all, ``existing`` different ones, ``doubled`` of them given before,
    ``skipped`` between where one start ended and the next began, commits ``refused``, ``longest_run_ns``.
    """

    kinds = ("uncommitted_starts",)
    apis = frozenset({FETCH, OFFSET_FETCH, OFFSET_COMMIT, TXN_OFFSET_COMMIT})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._groups: Subjects[str, _Group] = context.subjects(
            lambda: _Group(context.case(), context.subjects(_Partition, 3, MAX_PARTITIONS)), 8
        )
        self._group_of: dict[str, _Group] = {}

    def exchange(self, exchange: Exchange) -> None:
        if exchange.api_key == FETCH:
            group = self._group_of.get(client_of(exchange)) if self._group_of else None
            if group is not None and not group.is_committed and exchange.response is not None:
                self._read(group, exchange)
            return
        if exchange.request is None or exchange.response is None:
            return
        if exchange.api_key != OFFSET_FETCH:
            known = self._groups.get(group_of(request_body(exchange)))
            if known is not None and exchange.errors:
                known.refused += 1
            elif known is not None:
                known.is_committed = True
        elif not exchange.errors:
            for group_id, body in groups_in(exchange):
                self._start(exchange, group_id, body)

    def _start(self, exchange: Exchange, group_id: str, body: Body) -> None:
        client = client_of(exchange)
        group = self._groups.of(group_id)
        if group is None or group.is_committed:
            self._group_of.pop(client, None)
            return
        asked = self.context.parts_in(body)
        if any(part.offset >= 0 for _, part in asked):
            group.is_committed = True
        if client in self._group_of or self.context.has_room(self._group_of, MAX_CLIENTS, client):
            self._group_of[client] = group
        if group.is_committed:
            return
        group.case.add(*place_of(exchange))
        group.case.note("clients", [client])
        group.begun_ns = 0
        for name, part in asked:
            if (known := group.partitions.get((name, part.index))) is not None:
                known.is_fresh = True

    def _read(self, group: _Group, exchange: Exchange) -> None:
        ns = place_of(exchange)[1]
        for name, part in self.context.brought(exchange):
            if part.first_offset < 0:
                continue
            group.begun_ns = group.begun_ns or ns
            group.longest_ns = max(group.longest_ns, ns - group.begun_ns)
            known = group.partitions.of((name, part.index))
            if known is None:
                return
            if known.end < 0:
                group.case.note("topics", [name])
            _count(known, part)
            group.records += part.records

    def observations(self) -> Iterator[Observation]:
        for group_id, group in self._groups.items():
            parts = group.partitions.values()
            doubled, skipped = sum(one.doubled for one in parts), sum(one.skipped for one in parts)
            starts = max((one.starts for one in parts), default=0)
            if group.is_committed or starts < 2 or not doubled + skipped:
                continue
            numbers = {
                "group": group_id,
                "starts": starts,
                "records": group.records,
                "existing": sum(one.end - one.first for one in parts),
                "doubled": doubled,
                "skipped": skipped,
                "refused": group.refused,
                "longest_run_ns": group.longest_ns,
            }
            harm = Harm(records_doubled=doubled, records_unread=skipped)
            yield observation_of("uncommitted_starts", group.case, {f"group:{group_id}"}, numbers, harm)


def _count(known: _Partition, part: PartitionDigest) -> None:
    """Adds what a fetch brought of a partition."""
    first, end = part.first_offset, part.end_offset
    if known.is_fresh:
        known.is_fresh = False
        known.starts += 1
        if known.end >= 0 and first > known.end:
            known.skipped += first - known.end
    if known.end >= 0:
        known.doubled += max(min(end, known.end) - first, 0)
    known.first = first if known.first < 0 else min(known.first, first)
    known.end = max(known.end, end)


def groups_in(offset_fetch: Exchange) -> list[tuple[str, Body]]:
    """The groups of an OffsetFetch response with their committed offsets; before version 8 the request names the only
    one."""
    body = response_body(offset_fetch)
    groups = body.get("groups")
    if isinstance(groups, list):
        return [(group_of(one), one) for one in groups if isinstance(one, dict)]
    return [(group_of(request_body(offset_fetch)), body)]


@cause("no_committed_offsets", explains=("uncommitted_starts", "starts_at_end"))
def no_committed_offsets(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`no_committed_offsets` (error where records are read again, else warning): a group starts twice or more, each
    time OffsetFetch is answered with -1 for all its partitions, and nobody commits for it meanwhile, by OffsetCommit or
    in a transaction. It begins where `auto.offset.reset` says: it reads all again, or misses what was written while it
    was down. Must not be seen: a committed offset. A consumer that ends before its first commit is due looks the same;
    one that keeps its offsets elsewhere would not begin there.
    """
    numbers, clients, topics = one.numbers, one.named("client"), one.named("topic")
    group = numbers["group"]
    is_short = numbers["longest_run_ns"] < COMMIT_INTERVAL_NS
    contradicts = [
        f"{client} left for being longer between polls than max.poll.interval.ms, before it could commit"
        for each in observed.about([f"group:{group}"], "generations")
        for client, *_ in (*each.numbers["overslept"], *each.numbers["returned"])
    ]
    refused = numbers["refused"]
    commits = f"its commits are refused ({refused:,} of them)" if refused else "commits nothing"
    if numbers["doubled"]:
        what = (
            f"each of {numbers['starts']} starts reads {listed(topics)} again: {numbers['records']:,} records "
            f"were given for {numbers['existing']:,} different ones, {numbers['doubled']:,} of them a second "
            "time or more"
        )
    else:
        what = (
            f"each of {numbers['starts']} starts begins at the end of {listed(topics)}: {numbers['skipped']:,} "
            "records that were written meanwhile were never read"
        )
    return told(
        one,
        f"has no committed offsets and {commits} ({listed(clients)}): {what}",
        "See what its commits are answered with. Until they succeed every start begins where auto.offset.reset says."
        if refused
        else "Let it commit: enable.auto.commit=true, or a commit after each batch that was processed "
        "(commitSync, commit()). Until then every start begins where auto.offset.reset says.",
        subject=f"group {group}",
        explained=(one, *observed.about([f"group:{group}"], "starts_at_end")),
        supports=(
            f"OffsetFetch was answered with no offset {times(one.count)}",
            f"the longest run read for {duration(numbers['longest_run_ns'])}",
        ),
        contradicts=tuple(contradicts),
        doubt="Each run may just end before its first commit (auto.commit.interval.ms is 5 s by default)."
        if is_short
        else "",
        explains=symptoms("group", [group], "rebalances", "no_progress", "group_deserted"),
    )


@cause("records_skipped", explains=("starts_at_end",))
def skipped_records(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`records_skipped` (info; warning where the group had committed offsets before, or where the partitions were added
    to their topic while the capture looked): a group without a committed offset begins at the end of partitions that
    have records, and never reads these (`auto.offset.reset=latest`, which is the default). Seen must be OffsetFetch
    answered with -1, ListOffsets for the latest offset, and a Fetch from there. A new group that is meant to see new
    records only looks the same.
    """
    numbers, topics, clients = one.numbers, listed(one.named("topic")), listed(one.named("client"))
    partitions, expired, added = listed(numbers["partitions"]), numbers["expired"], numbers["added"]
    lost = f"{'has lost its committed offsets' if expired else 'has no committed offset'} of {partitions} ({clients})"
    if numbers["deleted_by"]:
        lost = f"has lost the offsets of {partitions} ({clients}), deleted by {numbers['deleted_by']},"
    elif added:
        by, later = numbers["added_by"], duration(numbers["learned_ns"])
        lost = f"learns of {partitions} {later} after {f'{by} added them' if by else 'they were added'} ({clients})"
    return told(
        one,
        f"{lost} and begins at their end (auto.offset.reset=latest): up to {numbers['records']:,} records of "
        f"{topics} that are there already are not read",
        _ADDED if added else _EXPIRED if expired else _NEW,
        subject=f"group {numbers['group']}",
        severity="warning" if expired or added else "info",
    )


_ADDED: Final = (
    "What is written to new partitions before a group learns of them is skipped with auto.offset.reset=latest: set "
    "earliest for groups that are to read everything. How late they learn of them is metadata.max.age.ms (5 minutes by "
    "default). What was skipped can be read again by setting the offsets of these partitions "
    "(kafka-consumer-groups --reset-offsets --to-earliest)."
)
_EXPIRED: Final = (
    "Offsets go when a group has had no members for offsets.retention.minutes (7 days by default), or when somebody "
    "deletes them. Set the group where it was (kafka-consumer-groups --reset-offsets --to-datetime)."
)
_NEW: Final = (
    "A new group begins at the end unless auto.offset.reset=earliest: set that where it is to read what is there, or "
    "set the group's offsets once (kafka-consumer-groups --reset-offsets). See whether its name is the one that it had."
)
