"""Offsets that consumers commit, against what they were given: beyond it, one short of it, or lower than before.

An application that computes the offsets itself may commit those of another partition, or count records twice; it may
commit the last record instead of what follows it, or what several threads have done in the order in which they end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, TypeAlias

from kwiresniff.analysis.doctor.bodies import group_of, request_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, is_cut, is_replica
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.uncommitted_starts import groups_in
from kwiresniff.analysis.doctor.wording import counted, listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, OFFSET_FETCH
from kwiresniff.model import Exchange

#: Partitions of consumers whose position is remembered, and partitions that are committed too far.
MAX_READ = 5_000
MAX_EARLY = 1_000
#: So many commits of the last record, or lower than before, are no accident.
FEW_SHORT: Final = 10
FEW_LOWER: Final = 5

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


class _Commits:
    """What a client commits of a partition: the ``last`` offset and the ``most``, how often it was ``lower`` than
    before, ``short`` by one of what the client was given, or ``exact``, and how often a start began there (``again``).

    ``sought`` says that it has read before what it committed since; ``is_marked`` that offsets there are the marks of
    transactions, which no application commits.
    """

    __slots__ = ("again", "case", "count", "exact", "group", "is_marked", "last", "lower", "most", "short", "sought")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.group = ""
        self.last = self.most = -1
        self.again = self.count = self.exact = self.lower = self.short = 0
        self.is_marked = self.sought = False

    def add(self, offset: int, read: int, place: tuple[int, int]) -> None:
        """Takes in a commit of a client that was given what is before ``read``."""
        if offset == self.last:
            return
        is_lower = offset < self.last and not self.sought
        if is_lower or offset == read - 1:
            self.case.add(*place)
        self.lower += is_lower
        self.sought &= offset < self.most
        self.last, self.most = offset, max(self.most, offset)
        self.count += 1
        self.exact += offset == read
        self.short += offset == read - 1

    @property
    def is_short(self) -> bool:
        return self.short >= FEW_SHORT and self.short * 4 >= self.count and not self.exact and not self.is_marked


class EarlyCommits(Observer):
    """``committed_early``: a consumer commits offsets behind those that it was given; ``committed_last``: it commits
    the last of them, 10 times and never the next; ``commits_lower``: it commits a lower offset than before, 5 times,
    and has not gone back itself.

    By client and group. Numbers: ``group``, ``partitions`` with the offset ``committed`` and how far each was ``read``,
    ``skipped``: records between, where a member has started from there; how often a start began ``again`` at such an
    offset.
    """

    kinds: ClassVar[tuple[str, ...]] = ("committed_early", "committed_last", "commits_lower")
    apis: ClassVar[frozenset[int] | None] = frozenset({FETCH, OFFSET_COMMIT, OFFSET_FETCH})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._read: dict[_Partition, int] = {}
        self._early: Subjects[_Partition, _Early] = context.subjects(lambda: _Early(context.case()), 4, MAX_EARLY)
        self._started: dict[tuple[str, int], _Early] = {}  # as many as are committed too far
        self._unsure: set[str] = set()
        self._commits: Subjects[_Partition, _Commits] = context.subjects(lambda: _Commits(context.case()), 8, MAX_READ)

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
                    commits = self._commits.get((client, name, part.index))
                    if commits is not None and commits.group == group and commits.last == part.offset:
                        commits.again += 1

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
                commits = self._commits.get(key)
                if commits is not None:
                    commits.sought |= 0 <= part.offset < commits.most
                    commits.is_marked |= part.all_bytes > part.size_bytes
                known = self._read.get(key)
                if known is not None or self.context.has_room(self._read, MAX_READ, client, name, entries=2):
                    self._read[key] = offset if known is None else max(known, offset)

    def _commit(self, exchange: Exchange, client: str, key: _Partition, offset: int) -> None:
        read = self._read.get((client, *key[1:]), -1)
        commits = self._commits.of((client, *key[1:])) if read >= 0 else None
        if commits is not None:
            commits.group = key[0]
            commits.add(offset, read, place_of(exchange))
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
        ends = self._read
        short = {key: one for key, one in self._commits.items() if one.is_short and one.last == ends.get(key, 0) - 1}
        yield from self._kept("committed_last", short)
        lower = {key: one for key, one in self._commits.items() if one.lower >= FEW_LOWER}
        yield from self._kept("commits_lower", lower)

    def _kept(self, kind: str, found: dict[_Partition, _Commits]) -> Iterator[Observation]:
        """Observations by client and group."""
        members: dict[tuple[str, str], dict[str, _Commits]] = {}
        for (client, topic, index), commits in found.items():
            members.setdefault((client, commits.group), {})[f"{topic}-{index}"] = commits
        for (client, group), parts in members.items():
            case = self.context.case(one.case for one in parts.values())
            again = sum(one.again for one in parts.values())
            numbers = {"group": group, "partitions": list(parts)[:100], "again": again}
            case.count = sum(one.short if kind == "committed_last" else one.lower for one in parts.values())
            harm = Harm(records_doubled=again) if kind == "committed_last" else Harm(requests_late=case.count)
            yield observation_of(kind, case, [f"client:{client}", f"group:{group}"], numbers, harm)


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


@cause("commits_last_record", explains=("committed_last",))
def last_record(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`commits_last_record` (warning where a start has begun there, else info): a consumer commits the offset of the
    last record that it was given, never that of the next: each start handles one record of each partition again, and
    its lag is never less than 1. Must not be seen: marks of transactions, behind which no application commits.
    """
    numbers, again = one.numbers, one.numbers["again"]
    return told(
        one,
        f"commits the last offset that it was given instead of the next (group {numbers['group']}, "
        f"{listed(numbers['partitions'], 4)}), {times(one.count)} and never otherwise: each start handles that record "
        f"again{f', as {times(again)} here' if again else ''}",
        "What is committed is where a member begins: the offset of the last record that was handled, plus one.",
        severity="warning" if again else "info",
    )


@cause("commits_go_back", explains=("commits_lower",))
def lower_commits(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`commits_go_back` (warning): a consumer commits lower offsets than before again and again, and goes on reading
    forward: its work is done by several threads, or asynchronous commits overtake each other. Whoever starts behind
    such a commit handles again what was done, or never gets what was not. Must not be seen: that it reads before what
    it has committed.
    """
    numbers = one.numbers
    return told(
        one,
        f"commits lower offsets than before, {times(one.count)} (group {numbers['group']}, "
        f"{listed(numbers['partitions'], 4)}), while it goes on reading forward",
        "Commit for each partition only the offset up to which all records are handled: with a pool of threads the "
        "lowest that is not done yet, and from one thread. A commit that jumps ahead of work that is not done loses "
        "it, one that comes late brings it again.",
        severity="warning",
    )
