"""Consumers that commit offsets that they have not come to: whoever starts from there misses what lies before.

An application that reckons the offsets itself may commit those of another partition, or count records twice. Nothing is
wrong until a member of the group starts from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeAlias

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped, is_cut, is_replica
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.uncommitted_starts import groups_in
from kwiresniff.analysis.doctor.wording import counted, listed
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import message_parts, parts_of
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, OFFSET_FETCH
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Exchange
from kwiresniff.results.findings import scope_of

#: Partitions of consumers of which it is remembered how far they were read, and those that are committed too far.
MAX_READ = 5_000
MAX_EARLY = 1_000

#: A client or a group, a topic, the number of a partition.
_Partition: TypeAlias = tuple[str, str, int]


class _Early:
    """A partition of a group that is committed too far: by whom, how far it was read, whether a member has started from
    there since, and whether one went back, as where the log does not reach so far."""

    __slots__ = ("back", "case", "client", "committed", "read", "started")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.client = ""
        self.read = self.committed = 0
        self.started = self.back = False


class EarlyCommits(Observer):
    """``committed_early``: a consumer commits offsets behind those that it was given.

    By client and group. Numbers: ``group``, ``partitions`` with the offset ``committed`` and how far each was ``read``,
    ``skipped``: records between, where a member has started from there.
    """

    kinds: ClassVar[tuple[str, ...]] = ("committed_early",)
    apis: ClassVar[frozenset[int] | None] = frozenset({FETCH, OFFSET_COMMIT, OFFSET_FETCH})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._read: dict[_Partition, int] = {}
        self._early: Subjects[_Partition, _Early] = context.subjects(lambda: _Early(context.case()), 4, MAX_EARLY)
        self._started: dict[tuple[str, int], _Early] = {}  # as many as are committed too far
        self._unsure: set[str] = set()

    def exchange(self, exchange: Exchange) -> None:
        """How far consumers have read, what they commit, and where they start."""
        request, response = exchange.request, exchange.response
        client = client_of(exchange)
        if exchange.api_key == FETCH:
            self._fetch(exchange, client)
        elif exchange.errors or response is None:
            return
        elif exchange.api_key == OFFSET_COMMIT:
            body = (request.body if request is not None else None) or {}
            group = clipped(field_text(body.get("group_id")))
            for topic in parts_of(body):
                name = clipped(self.context.topic_in(topic))
                for part in topic.partitions:
                    self._commit(exchange, client, (group, name, part.index), part.offset)
        else:
            for group, body in groups_in(response.body or {}, request):
                for topic in parts_of(body):
                    name = clipped(self.context.topic_in(topic))
                    for part in topic.partitions:
                        early = self._early.get((clipped(group), name, part.index))
                        if early is not None and early.committed == part.offset:
                            early.started = True
                            self._started[name, part.index] = early

    def _fetch(self, exchange: Exchange, client: str) -> None:
        """What a fetch asks for, and brings, is how far a consumer has come."""
        if is_replica(exchange):
            return
        if is_cut(exchange, "response") and len(self._unsure) < MAX_READ:
            self._unsure.add(client)
        for message in (exchange.request, exchange.response):
            for topic in message_parts(message):
                name = clipped(self.context.topic_in(topic))
                for part in topic.partitions:
                    offset = max(part.offset, part.end_offset)
                    if offset < 0:
                        continue
                    early = self._started.get((name, part.index))
                    if early is not None and offset < early.committed:
                        early.back = True
                    self._move(client, name, part.index, offset)

    def _move(self, client: str, topic: str, index: int, offset: int) -> None:
        key = client, topic, index
        known = self._read.get(key)
        if known is not None:
            self._read[key] = max(known, offset)
        elif len(self._read) < MAX_READ and self.context.budget.admit(2 * ENTRY_BYTES + text_bytes(client, topic)):
            self._read[key] = offset

    def _commit(self, exchange: Exchange, client: str, key: _Partition, offset: int) -> None:
        read = self._read.get((client, *key[1:]), -1)
        early = self._early.get(key)
        if early is not None and not early.started and early.client == client:
            del self._early[key]
        if 0 <= read < offset and (early is None or not early.started):
            found = self._early.of(key)
            if found is not None:
                found.client, found.read, found.committed = client, read, offset
                found.case.add(*place_of(exchange))
                found.case.note("topics", [key[1]])

    def observations(self) -> Iterator[Observation]:
        """By client and group: those from which a member has started, and those at the end of the capture."""
        found: dict[tuple[str, str], dict[str, _Early]] = {}
        for (group, topic, index), early in self._early.items():
            come = self._read.get((early.client, topic, index), -1)
            if early.client not in self._unsure and (early.started or come < early.committed):
                found.setdefault((early.client, group), {})[f"{topic}-{index}"] = early
        for (client, group), parts in found.items():
            case = self.context.case()
            for early in parts.values():
                case.merge(early.case)
            skipped = sum(early.committed - early.read for early in parts.values() if early.started and not early.back)
            numbers = {
                "group": group,
                "partitions": list(parts)[:100],
                "committed": [early.committed for early in parts.values()][:100],
                "read": [early.read for early in parts.values()][:100],
                "skipped": skipped,
            }
            yield observation_of(
                "committed_early",
                case,
                [f"client:{client}", f"group:{group}"],
                numbers,
                Harm(records_lost=skipped),
            )


@cause("committed_early", explains=("committed_early",))
def early_commit(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`committed_early` (warning where a member has started from there, else info): a consumer commits offsets behind
    those that it was given, by its own fetches of the same partition. What lies between is never read by a member that
    starts from there. Must not be seen: that it asks for what is behind them, as one does that skips records on
    purpose; a Fetch that the capture has only in part.
    """
    numbers, skipped = one.numbers, one.numbers["skipped"]
    offsets = zip(numbers["partitions"], numbers["committed"], numbers["read"], strict=True)
    where = listed([f"{name} at {committed}, read to {read}" for name, committed, read in offsets], 4)
    after = f"a member has started from there, and {counted(skipped, 'record')} between are not read"
    return told(
        one,
        f"commits offsets beyond what it was given (group {numbers['group']}): {where}; "
        f"{after if skipped else 'whoever starts from there misses what lies between'}",
        "Look at how the application reckons what it commits: of each partition the offset behind the last record "
        "that it has handled, never that of another partition, nor a number of records.",
        severity="warning" if skipped else "info",
        explains={"offset_out_of_range": scope_of("topic", one.named("topic"))},
    )
