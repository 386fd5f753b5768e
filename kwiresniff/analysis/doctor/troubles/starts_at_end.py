"""Groups without a committed offset that begin at the end of the log, as ``auto.offset.reset=latest`` says.

Sources: OffsetFetch answers of -1, a ListOffsets of the same client for the latest offset (timestamp -1), and a Fetch
from just there. That partitions were added shows in CreatePartitions, and in Metadata that has more than before.
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
from kwiresniff.model import Exchange

LATEST: Final = -1
#: Clients, and partitions of each, whose start is awaited; groups whose committed offsets are remembered.
MAX_CLIENTS = 2_000
MAX_PARTITIONS = 500
MAX_GROUPS = 2_000
#: Topics of which the number of partitions is remembered.
MAX_TOPICS = 5_000


class _Start:
    """A client whose group has no committed offset for some partitions: the end of each as ListOffsets told it, -1
    until then."""

    __slots__ = ("ends", "group")

    def __init__(self) -> None:
        self.group = ""
        self.ends: dict[tuple[str, int], int] = {}


class _Passed:
    """The partitions whose records members of a group passed over, with how many those are: all before the end, or
    those behind the offset that the group had committed."""

    __slots__ = ("case", "records")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.records: dict[tuple[str, int], int] = {}


class _Group:
    """What a group had committed, what of that was gone when a member asked, and what its members passed over: of
    partitions that were added while the capture looked, and of others."""

    __slots__ = ("added", "committed", "deleted_by", "gone", "others")

    def __init__(self, context: Context) -> None:
        self.added = _Passed(context.case())
        self.others = _Passed(context.case())
        self.committed: dict[tuple[str, int], int] = {}
        self.deleted_by = ""
        self.gone: set[tuple[str, int]] = set()


class _Size:
    """How many partitions a topic had at first and has now, since when, and who added them where that is known."""

    __slots__ = ("added_by", "first", "grown_ns", "now")

    def __init__(self) -> None:
        self.first = self.now = 0
        self.grown_ns = 0
        self.added_by = ""

    def learn(self, count: int, ns: int) -> None:
        """An answer that has so many of them; one of a broker that is behind has fewer."""
        self.first = self.first or count
        if count > max(self.now, self.first):
            self.grown_ns = self.grown_ns or ns
        self.now = max(self.now, count)


class StartsAtEnd(Observer):
    """``starts_at_end``: a group without a committed offset begins at the end of partitions that have records.

    Numbers: ``group``, ``partitions``, ``records`` before the offsets where it begins, at most, and behind what it had
    committed; ``expired``: it had committed offsets of some of them before; ``deleted_by``: the client that deleted
    them; ``added``: they were added to their topics while the capture looked, ``added_by`` whom, and ``learned_ns``,
    how long after that it began.
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
        elif exchange.api_key == METADATA:
            ns = place_of(exchange)[1]
            for topic in (response.body or {}).get("topics") or ():
                size = self._sizes.of(clipped(self.context.topic_of(topic)))
                if size is not None:
                    size.learn(len(topic.get("partitions") or ()), ns)
        elif exchange.api_key == CREATE_PARTITIONS:
            for topic in (request.body or {}).get("topics") or ():
                size = self._sizes.of(clipped(self.context.topic_of(topic)))
                if size is not None and not (request.body or {}).get("validate_only"):
                    size.added_by, size.grown_ns = client_of(exchange), place_of(exchange)[1]
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
        has_room = place in group.committed or self.context.has_room(
            group.committed, MAX_PARTITIONS, place[0], entries=2
        )
        if offset >= 0 and has_room:
            group.committed[place] = offset

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
                    size = self._sizes.get(name)
                    is_added = size is not None and size.grown_ns > 0 and part.index >= size.first > 0
                    passed = group.added if is_added else group.others
                    passed.case.add(*place_of(fetch))
                    passed.case.note("clients", [client_of(fetch)])
                    passed.case.note("topics", [name])
                    done = group.committed.get((name, part.index), 0) if (name, part.index) in group.gone else 0
                    passed.records[name, part.index] = max(end - done, 0)

    def observations(self) -> Iterator[Observation]:
        """By group: partitions that were added, and others."""
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
        return observation_of(
            "starts_at_end",
            passed.case,
            {f"group:{group_id}"},
            {
                "group": group_id,
                "partitions": [f"{topic}-{index}" for topic, index in sorted(passed.records)][:100],
                "records": records,
                "expired": expired,
                "deleted_by": group.deleted_by or None,
                "added": is_added,
                "added_by": added_by[0] if added_by else None,
                "learned_ns": learned_ns,
            },
            Harm(records_lost=records) if expired or is_added else Harm(records_unread=records),
        )
