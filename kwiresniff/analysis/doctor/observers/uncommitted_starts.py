"""Groups that have no committed offsets and commit none: each start begins where ``auto.offset.reset`` says.

Sources: OffsetFetch answers of -1 for all partitions; no OffsetCommit and no TxnOffsetCommit for the group; and what
its consumers are given after each start, by the offsets of the batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import counted, listed, times
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import parts_of
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, OFFSET_FETCH, TXN_OFFSET_COMMIT
from kwiresniff.base.field_values import field_text
from kwiresniff.digest import PartitionDigest
from kwiresniff.model import Body, Exchange, Message

#: Clients, and partitions of a group, that are remembered.
MAX_CLIENTS = 5_000
MAX_PARTITIONS = 5_000


@dataclass(slots=True, eq=False)
class _Partition:
    """How far a group has read a partition: ``first`` to ``end``; what was given again, and what was passed over."""

    first: int = -1
    end: int = -1
    is_fresh: bool = True
    doubled: int = 0
    skipped: int = 0
    starts: int = 0


class _Group:
    """A group without committed offsets: its starts, and what its members read."""

    __slots__ = ("begun_ns", "case", "is_committed", "longest_ns", "partitions", "records", "refused")

    def __init__(self, case: Case, budget: MemoryBudget) -> None:
        self.case = case
        self.is_committed = False
        self.partitions: Subjects[tuple[str, int], _Partition] = Subjects(budget, _Partition, 3, MAX_PARTITIONS)
        self.begun_ns = self.longest_ns = 0
        self.records = self.refused = 0


class UncommittedStarts(Observer):
    """``uncommitted_starts``: a group starts again and again without a committed offset, and commits none.

    Numbers: ``starts``, ``records`` given in all, ``existing`` different ones, ``doubled`` of them given before,
    ``skipped`` between where one start ended and the next began, commits ``refused``, ``longest_run_ns``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("uncommitted_starts",)
    apis: ClassVar[frozenset[int] | None] = frozenset({FETCH, OFFSET_FETCH, OFFSET_COMMIT, TXN_OFFSET_COMMIT})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._groups: Subjects[str, _Group] = Subjects(
            context.budget, lambda: _Group(context.case(), context.budget), 8
        )
        self._group_of: dict[str, _Group] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Where a group begins, whether it commits, and what it is given."""
        if exchange.api_key == FETCH:
            group = self._group_of.get(self.context.client_of(exchange)) if self._group_of else None
            if group is not None and not group.is_committed and exchange.response is not None:
                self._read(group, exchange)
            return
        request, response = exchange.request, exchange.response
        if request is None or response is None or (exchange.errors and exchange.api_key == OFFSET_FETCH):
            return
        if exchange.api_key == OFFSET_FETCH:
            for group_id, body in groups_in(response.body or {}, request):
                self._start(exchange, clipped(group_id), body)
        else:
            known = self._groups.get(clipped(field_text((request.body or {}).get("group_id"))))
            if known is not None and exchange.errors:
                known.refused += 1
            elif known is not None:
                known.is_committed = True

    def _start(self, exchange: Exchange, group_id: str, body: Body) -> None:
        client = self.context.client_of(exchange)
        group = self._groups.of(group_id)
        if group is None or group.is_committed:
            self._group_of.pop(client, None)
            return
        asked = [(clipped(self.context.topic_in(topic)), part) for topic in parts_of(body) for part in topic.partitions]
        if any(part.offset >= 0 for _, part in asked):
            group.is_committed = True
        if client in self._group_of or (
            len(self._group_of) < MAX_CLIENTS and self.context.budget.admit(ENTRY_BYTES + text_bytes(client))
        ):
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
        """By group, where what was read was read again, or passed over."""
        for group_id, group in self._groups.items():
            parts = group.partitions.values()
            doubled, skipped = sum(one.doubled for one in parts), sum(one.skipped for one in parts)
            starts = max((one.starts for one in parts), default=0)
            if group.is_committed or starts < 2 or not doubled + skipped:
                continue
            existing = sum(one.end - one.first for one in parts)
            again = f"{counted(doubled, 'record')} a second time or more" if doubled else "none twice"
            passed = f", and passed over {skipped:,}" if skipped else ""
            yield observation_of(
                "uncommitted_starts",
                f"group {group_id} started {times(starts)} without a committed offset and committed none; it was given "
                f"{group.records:,} records for {existing:,} different ones of {listed(group.case.noted('topics'))}, "
                f"{again}{passed}",
                group.case,
                {f"group:{group_id}"},
                {
                    "group": group_id,
                    "starts": starts,
                    "records": group.records,
                    "existing": existing,
                    "doubled": doubled,
                    "skipped": skipped,
                    "refused": group.refused,
                    "longest_run_ns": group.longest_ns,
                },
                Harm(records_doubled=doubled, records_unread=skipped),
            )


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


def groups_in(body: Body, request: Message | None) -> list[tuple[str, Body]]:
    """The groups of an OffsetFetch response with what they have committed; before version 8 the request names the only
    one."""
    groups = body.get("groups")
    if isinstance(groups, list):
        return [(field_text(one.get("group_id")), one) for one in groups if isinstance(one, dict)]
    asked = request.body if request is not None else None
    return [(field_text((asked or {}).get("group_id")), body)]
