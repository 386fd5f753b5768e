"""Groups without a committed offset that begin at the end of the log (``auto.offset.reset=latest``).

Sources: OffsetFetch answers of -1, a ListOffsets of the same client for the latest offset (timestamp -1), and a Fetch
from there; CreatePartitions, and Metadata with more partitions than before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, TypeAlias

from kwiresniff.analysis.doctor.bodies import group_of, request_body, response_body
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.uncommitted_starts import groups_in
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import (
    CREATE_PARTITIONS,
    DELETE_GROUPS,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
)
from kwiresniff.base.field_values import field_number, field_text
from kwiresniff.model import Body, Exchange

LATEST: Final = -1
#: Clients, and partitions of each, whose start is awaited; groups whose committed offsets are remembered.
MAX_CLIENTS = 2_000
MAX_PARTITIONS = 500
MAX_GROUPS = 2_000
#: Topics whose number of partitions is remembered.
MAX_TOPICS = 5_000
#: A topic and the number of a partition.
_Partition: TypeAlias = tuple[str, int]


class _Start:
    """A client whose group has no committed offset for some partitions, with the end of each as ListOffsets gave it, -1
    before that."""

    __slots__ = ("ends", "group")

    def __init__(self) -> None:
        self.group = ""
        self.ends: dict[_Partition, int] = {}


class _Passed:
    """The partitions whose records members of a group skipped, with the number of these records: all before the end, or
    those behind the offset that the group had committed."""

    __slots__ = ("case", "records")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.records: dict[_Partition, int] = {}


class _Group:
    """A group's committed offsets, those of them that were gone when a member asked, and the partitions that its
    members skipped: those that were added during the capture, and others."""

    __slots__ = ("added", "committed", "deleted_by", "gone", "others")

    def __init__(self, context: Context) -> None:
        self.added, self.others = _Passed(context.case()), _Passed(context.case())
        self.committed: dict[_Partition, int] = {}
        self.gone: set[_Partition] = set()
        self.deleted_by = ""


class _Size:
    """The number of partitions of a topic, at first and now, since when it has more, and who added them."""

    __slots__ = ("added_by", "first", "grown_ns", "now")

    def __init__(self) -> None:
        self.first = self.now = self.grown_ns = 0
        self.added_by = ""

    def learn(self, count: int, ns: int) -> None:
        """Takes in the number from an answer; a broker that is behind has fewer."""
        self.first = self.first or count
        if count > max(self.now, self.first):
            self.grown_ns = self.grown_ns or ns
        self.now = max(self.now, count)


class StartsAtEnd(Observer):
    """``starts_at_end``: a group without a committed offset begins at the end of partitions that have records.

    Numbers: ``group``, ``partitions``, ``records`` before the offsets where it begins, at most, and behind what it had
    committed; ``expired``: it had committed some of them before; ``deleted_by``: the client that deleted the offsets;
    ``added``: the partitions were added during the capture, ``added_by`` whom; ``learned_ns`` later the group began.
    """

    kinds: ClassVar[tuple[str, ...]] = ("starts_at_end",)
    apis: ClassVar[frozenset[int] | None] = frozenset({
        FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, DELETE_GROUPS, OFFSET_DELETE, METADATA, CREATE_PARTITIONS,
    })  # fmt: skip

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._starts: Subjects[str, _Start] = context.subjects(_Start, 8, MAX_CLIENTS)
        self._groups: Subjects[str, _Group] = context.subjects(lambda: _Group(context), 10, MAX_GROUPS)
        self._sizes: Subjects[str, _Size] = context.subjects(_Size, 4, MAX_TOPICS)

    def exchange(self, exchange: Exchange) -> None:
        if exchange.request is None or exchange.response is None or exchange.errors:
            return
        if exchange.api_key == OFFSET_FETCH:
            for asked, body in groups_in(exchange):
                self._ask(client_of(exchange), asked, body)
        elif exchange.api_key == OFFSET_COMMIT:
            body = request_body(exchange)
            group = self._groups.of(group_of(body))
            if group is not None:
                for name, part in self.context.parts_in(body):
                    self._commit(group, (name, part.index), part.offset)
        elif exchange.api_key in (DELETE_GROUPS, OFFSET_DELETE):
            body = request_body(exchange)
            for group_id in body.get("groups_names") or [body.get("group_id")]:
                group = self._groups.get(clipped(field_text(group_id)))
                if group is not None:
                    group.deleted_by = client_of(exchange)
        elif exchange.api_key == METADATA:
            for topic in response_body(exchange).get("topics") or ():
                size = self._sizes.of(clipped(self.context.topic_of(topic)))
                if size is not None:
                    size.learn(len(topic.get("partitions") or ()), place_of(exchange)[1])
        elif exchange.api_key == CREATE_PARTITIONS:
            body = request_body(exchange)
            for topic in body.get("topics") or ():
                size = self._sizes.of(clipped(self.context.topic_of(topic)))
                if size is not None and not body.get("validate_only"):
                    size.added_by, size.grown_ns = client_of(exchange), place_of(exchange)[1]
        else:
            client = client_of(exchange) if self._starts else ""
            start = self._starts.get(client)
            if start is not None and exchange.api_key == LIST_OFFSETS:
                self._list(start, request_body(exchange), response_body(exchange))
            elif start is not None:
                self._fetch(start, exchange)
                if not start.ends:
                    del self._starts[client]

    def _ask(self, client: str, group_id: str, body: Body) -> None:
        group, start = self._groups.of(group_id), self._starts.of(client)
        if group is None or start is None:
            self._starts.pop(client, None)
            return
        start.group = group_id
        start.ends.clear()
        for name, part in self.context.parts_in(body):
            place = name, part.index
            self._commit(group, place, part.offset)
            if part.offset < 0 and place in group.committed:
                group.gone.add(place)
            if part.offset < 0 and self.context.has_room(start.ends, MAX_PARTITIONS, name, entries=2):
                start.ends[place] = -1

    def _commit(self, group: _Group, place: _Partition, offset: int) -> None:
        known = place in group.committed
        if offset >= 0 and (known or self.context.has_room(group.committed, MAX_PARTITIONS, place[0], entries=2)):
            group.committed[place] = offset

    def _list(self, start: _Start, asked: Body, told: Body) -> None:
        latest = {
            (name, field_number(part.get("partition_index")))
            for name, part in self.context.members(asked)
            if part.get("timestamp") == LATEST
        }
        for name, part in self.context.members(told):
            place = name, field_number(part.get("partition_index"))
            if place in start.ends and place in latest:
                start.ends[place] = field_number(part.get("offset"))

    def _fetch(self, start: _Start, fetch: Exchange) -> None:
        group = self._groups.get(start.group)
        for name, part in self.context.parts(fetch.request):
            end = start.ends.pop((name, part.index), -1) if part.offset >= 0 else -1
            if group is not None and end == part.offset > 0:
                size = self._sizes.get(name)
                is_added = size is not None and size.grown_ns > 0 and part.index >= size.first > 0
                passed = group.added if is_added else group.others
                passed.case.add(*place_of(fetch))
                passed.case.note("clients", [client_of(fetch)])
                passed.case.note("topics", [name])
                done = group.committed.get((name, part.index), 0) if (name, part.index) in group.gone else 0
                passed.records[name, part.index] = max(end - done, 0)

    def observations(self) -> Iterator[Observation]:
        for group_id, group in self._groups.items():
            for passed in (group.added, group.others):
                if passed.records:
                    yield self._observation(group_id, group, passed, passed is group.added)

    def _observation(self, group_id: str, group: _Group, passed: _Passed, is_added: bool) -> Observation:
        records, topics = sum(passed.records.values()), passed.case.noted("topics")
        sizes = [size for topic in topics if (size := self._sizes.get(topic)) is not None] if is_added else []
        added_by = [size.added_by for size in sizes if size.added_by]
        learned_ns = max((passed.case.first_ns - size.grown_ns for size in sizes), default=0)
        expired = not group.gone.isdisjoint(passed.records)
        numbers = {
            "group": group_id,
            "partitions": [f"{topic}-{index}" for topic, index in sorted(passed.records)][:100],
            "records": records,
            "expired": expired,
            "deleted_by": group.deleted_by or None,
            "added": is_added,
            "added_by": added_by[0] if added_by else None,
            "learned_ns": learned_ns,
        }
        harm = Harm(records_lost=records) if expired or is_added else Harm(records_unread=records)
        return observation_of("starts_at_end", passed.case, {f"group:{group_id}"}, numbers, harm)
