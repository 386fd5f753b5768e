"""Groups without a committed offset that begin at the end of the log, as ``auto.offset.reset=latest`` says.

Sources: OffsetFetch answers of -1, a ListOffsets of the same client for the latest offset (timestamp -1), and a Fetch
from just there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.uncommitted_starts import groups_in
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import message_parts, parts_of
from kwiresniff.base.api_keys import DELETE_GROUPS, FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH
from kwiresniff.base.field_values import field_number, field_text
from kwiresniff.model import Exchange

LATEST: Final = -1
#: Clients, and partitions of each, whose start is awaited; groups whose committed offsets are remembered.
MAX_CLIENTS = 2_000
MAX_PARTITIONS = 500
MAX_GROUPS = 2_000


class _Start:
    """A client whose group has no committed offset for some partitions: the end of each as ListOffsets told it, -1
    until then."""

    __slots__ = ("ends", "group")

    def __init__(self) -> None:
        self.group = ""
        self.ends: dict[tuple[str, int], int] = {}


class _Group:
    """What a group had committed, what of that was gone when a member asked, and what its members passed over."""

    __slots__ = ("case", "committed", "deleted_by", "gone", "passed")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.committed: set[tuple[str, int]] = set()
        self.deleted_by = ""
        self.gone: set[tuple[str, int]] = set()
        self.passed: dict[tuple[str, int], int] = {}


class StartsAtEnd(Observer):
    """``starts_at_end``: a group without a committed offset begins at the end of partitions that have records.

    Numbers: ``group``, ``partitions``, ``records`` before the offsets where it begins, at most; ``expired``: it had
    committed offsets of some of them before; ``deleted_by``: the client that deleted them.
    """

    kinds: ClassVar[tuple[str, ...]] = ("starts_at_end",)
    apis: ClassVar[frozenset[int] | None] = frozenset({
        FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, DELETE_GROUPS, OFFSET_DELETE,
    })  # fmt: skip

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._starts: Subjects[str, _Start] = context.subjects(_Start, 8, MAX_CLIENTS)
        self._groups: Subjects[str, _Group] = context.subjects(lambda: _Group(context.case()), 8, MAX_GROUPS)

    def exchange(self, exchange: Exchange) -> None:
        """Follows a client from the answer that there is no offset to its first fetch."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or exchange.errors:
            return
        if exchange.api_key == OFFSET_FETCH:
            for group_id, body in groups_in(response.body or {}, request):
                self._ask(client_of(exchange), clipped(group_id), body)
        elif exchange.api_key == OFFSET_COMMIT:
            body = request.body or {}
            group = self._groups.of(clipped(field_text(body.get("group_id"))))
            if group is not None:
                for place, offset in self._offsets(body):
                    self._commit(group, place, offset)
        elif exchange.api_key in (DELETE_GROUPS, OFFSET_DELETE):
            body = request.body or {}
            for name in body.get("groups_names") or [body.get("group_id")]:
                group = self._groups.get(clipped(field_text(name)))
                if group is not None:
                    group.deleted_by = client_of(exchange)
        else:
            client = client_of(exchange) if self._starts else ""
            start = self._starts.get(client)
            if start is not None and exchange.api_key == LIST_OFFSETS:
                self._list(start, request.body or {}, response.body or {})
            elif start is not None:
                self._fetch(start, exchange)
                if not start.ends:
                    del self._starts[client]

    def _offsets(self, body: dict[str, Any]) -> Iterator[tuple[tuple[str, int], int]]:
        for topic in parts_of(body):
            name = clipped(self.context.topic_in(topic))
            yield from (((name, part.index), part.offset) for part in topic.partitions)

    def _ask(self, client: str, group_id: str, body: dict[str, Any]) -> None:
        group, start = self._groups.of(group_id), self._starts.of(client)
        if group is None or start is None:
            self._starts.pop(client, None)
            return
        start.group = group_id
        start.ends.clear()
        for place, offset in self._offsets(body):
            self._commit(group, place, offset)
            if offset < 0 and place in group.committed:
                group.gone.add(place)
            if offset < 0 and self.context.has_room(start.ends, MAX_PARTITIONS, place[0], entries=2):
                start.ends[place] = -1

    def _commit(self, group: _Group, place: tuple[str, int], offset: int) -> None:
        new = offset >= 0 and place not in group.committed
        if new and self.context.has_room(group.committed, MAX_PARTITIONS, place[0], entries=2):
            group.committed.add(place)

    def _list(self, start: _Start, asked: dict[str, Any], told: dict[str, Any]) -> None:
        latest = {
            (self.context.topic_of(topic), field_number(part.get("partition_index")))
            for topic in asked.get("topics") or ()
            for part in topic.get("partitions") or ()
            if part.get("timestamp") == LATEST
        }
        for topic in told.get("topics") or ():
            for part in topic.get("partitions") or ():
                place = self.context.topic_of(topic), field_number(part.get("partition_index"))
                if place in start.ends and place in latest:
                    start.ends[place] = field_number(part.get("offset"))

    def _fetch(self, start: _Start, fetch: Exchange) -> None:
        group = self._groups.get(start.group)
        for topic in message_parts(fetch.request):
            name = clipped(self.context.topic_in(topic))
            for part in topic.partitions:
                end = start.ends.pop((name, part.index), -1) if part.offset >= 0 else -1
                if group is not None and end == part.offset > 0:
                    group.case.add(*place_of(fetch))
                    group.case.note("clients", [client_of(fetch)])
                    group.case.note("topics", [name])
                    group.passed[name, part.index] = end

    def observations(self) -> Iterator[Observation]:
        """By group."""
        for group_id, group in self._groups.items():
            records = sum(group.passed.values())
            if not records:
                continue
            yield observation_of(
                "starts_at_end",
                group.case,
                {f"group:{group_id}"},
                {
                    "group": group_id,
                    "partitions": [f"{topic}-{index}" for topic, index in sorted(group.passed)][:100],
                    "records": records,
                    "expired": not group.gone.isdisjoint(group.passed),
                    "deleted_by": group.deleted_by or None,
                },
                Harm(records_unread=records),
            )
