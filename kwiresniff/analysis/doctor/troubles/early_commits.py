"""Consumers that commit offsets beyond what they were given: a member that starts there misses what lies between.

An application that computes the offsets itself may commit those of another partition, or count records twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeAlias

from kwiresniff.analysis.doctor.bodies import group_of, request_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, is_cut, is_replica
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.uncommitted_starts import groups_in
from kwiresniff.analysis.doctor.wording import counted, listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, OFFSET_FETCH
from kwiresniff.model import Exchange

#: Partitions of consumers whose position is remembered, and partitions that are committed too far.
MAX_READ = 5_000
MAX_EARLY = 1_000

#: A client or a group, a topic, the number of a partition.
_Partition: TypeAlias = tuple[str, str, int]


class _Early:
    """A partition of a group that is committed too far: by whom, the position, whether a member has started there
    (``started``), and whether one went ``back``, as where the log ends before."""

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
        client = client_of(exchange)
        if exchange.api_key == FETCH:
            self._fetch(exchange, client)
        elif exchange.errors or exchange.response is None:
            return
        elif exchange.api_key == OFFSET_COMMIT:
            body = request_body(exchange)
            for name, part in self.context.parts_in(body):
                self._commit(exchange, client, (group_of(body), name, part.index), part.offset)
        else:
            for group, body in groups_in(exchange):
                for name, part in self.context.parts_in(body):
                    early = self._early.get((group, name, part.index))
                    if early is not None and early.committed == part.offset:
                        early.started = True
                        self._started[name, part.index] = early

    def _fetch(self, exchange: Exchange, client: str) -> None:
        """A consumer's position is what its fetches ask for, and bring."""
        if is_replica(exchange):
            return
        if is_cut(exchange, "response") and len(self._unsure) < MAX_READ:
            self._unsure.add(client)
        for message in (exchange.request, exchange.response):
            for name, part in self.context.parts(message):
                offset = max(part.offset, part.end_offset)
                if offset < 0:
                    continue
                early = self._started.get((name, part.index))
                if early is not None and offset < early.committed:
                    early.back = True
                key = client, name, part.index
                known = self._read.get(key)
                if known is not None or self.context.has_room(self._read, MAX_READ, client, name, entries=2):
                    self._read[key] = offset if known is None else max(known, offset)

    def _commit(self, exchange: Exchange, client: str, key: _Partition, offset: int) -> None:
        read = self._read.get((client, *key[1:]), -1)
        early = self._early.get(key)
        if early is not None and early.started:
            return
        if early is not None and early.client == client:
            del self._early[key]
        early = self._early.of(key) if 0 <= read < offset else None
        if early is not None:
            early.client, early.read, early.committed = client, read, offset
            early.case.add(*place_of(exchange))
            early.case.note("topics", [key[1]])

    def observations(self) -> Iterator[Observation]:
        found: dict[tuple[str, str], dict[str, _Early]] = {}
        for (group, topic, index), early in self._early.items():
            come = self._read.get((early.client, topic, index), -1)
            if early.client not in self._unsure and (early.started or come < early.committed):
                found.setdefault((early.client, group), {})[f"{topic}-{index}"] = early
        for (client, group), parts in found.items():
            case = self.context.case(early.case for early in parts.values())
            skipped = sum(early.committed - early.read for early in parts.values() if early.started and not early.back)
            numbers = {
                "group": group,
                "partitions": list(parts)[:100],
                "committed": [early.committed for early in parts.values()][:100],
                "read": [early.read for early in parts.values()][:100],
                "skipped": skipped,
            }
            about = [f"client:{client}", f"group:{group}"]
            yield observation_of("committed_early", case, about, numbers, Harm(records_lost=skipped))


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
        explains=symptoms("topic", one.named("topic"), "offset_out_of_range"),
    )
