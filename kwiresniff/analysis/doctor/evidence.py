"""Evidence for findings: counts by subject, with a few packets to look at, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, Protocol, TypeVar

from kwiresniff.analysis.body_entities import replica_id_of
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.base.api_keys import FETCH
from kwiresniff.base.flows import host_of
from kwiresniff.base.placeholders import NO_CLIENT_ID, OTHERS
from kwiresniff.model import Direction, Exchange

#: Subjects counted apart by one observer; later ones are counted together.
MAX_SUBJECTS = 2_000
#: Occurrences kept as evidence of each.
MAX_EVIDENCE: Final = 5
#: Names of a kind kept with each.
MAX_NAMES = 12
#: Characters kept of a name: the longest name of a topic.
MAX_NAME_CHARS: Final = 249
#: Characters kept of a broker's or client's own message.
MAX_MESSAGE_CHARS = 300
#: Bytes that all observers together remember; beyond it subjects are counted together and names left out.
MAX_EVIDENCE_BYTES = 64 << 20
#: A case with its evidence, without its names.
_CASE_BYTES = 1_200
#: The pause between two episodes, and episodes of a subject that are kept apart.
PAUSE_NS = 10_000_000_000
MAX_EPISODES = 20

#: By kind, names with their counts.
_Notes = dict[str, dict[str, int]]


def new_budget() -> MemoryBudget:
    """The memory budget that all observers of an examination share."""
    return MemoryBudget(MAX_EVIDENCE_BYTES)


class Case:
    """The evidence on one subject: how often, when, where first, and names."""

    __slots__ = ("_budget", "_notes", "count", "evidence", "first_ns", "last_ns", "most", "total")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._notes: _Notes = {}
        self.count = 0
        self.total = 0
        self.most = 0
        self.first_ns = -1
        self.last_ns = -1
        self.evidence: list[tuple[int, int]] = []

    def add(self, packet: int, ns: int, amount: int = 0, *, until_ns: int = 0) -> None:
        """Adds one occurrence, which lasts until ``until_ns``; ``amount`` is added to ``total``."""
        self.count += 1
        self.total += amount
        self.most = max(self.most, amount)
        self.first_ns = ns if self.first_ns < 0 else min(self.first_ns, ns)
        end_ns = max(ns, until_ns)  # of three, max would be a call of Python's where this is compiled
        self.last_ns = max(self.last_ns, end_ns)
        if len(self.evidence) < MAX_EVIDENCE and packet and (packet, ns) not in self.evidence:
            self.evidence.append((packet, ns))

    def note(self, kind: str, names: Iterable[str], most: int = MAX_NAMES) -> None:
        """Adds names to the case: APIs, topics, partitions. Beyond ``most`` of a kind they are only counted."""
        known = self._notes.setdefault(kind, {})
        for name in names:
            short = clipped(name)
            if short in known:
                known[short] += 1
            elif len(known) < most and self._budget.admit(ENTRY_BYTES + text_bytes(short)):
                known[short] = 1
            else:
                known[""] = known.get("", 0) + 1

    def noted(self, kind: str) -> list[str]:
        """The names of a kind, in the order in which they came."""
        return [name for name in self._notes.get(kind, ()) if name]

    def notes(self) -> dict[str, list[str]]:
        """All names by their kinds."""
        return {kind: self.noted(kind) for kind in self._notes}

    def counts(self, kind: str) -> dict[str, int]:
        """The names noted under ``kind``, and how often each came."""
        return {name: count for name, count in self._notes.get(kind, {}).items() if name}

    def merge(self, other: Case) -> None:
        """Takes in another case of the same subject."""
        if not other.count:
            return
        self.count += other.count
        self.total += other.total
        self.most = max(self.most, other.most)
        self.first_ns = other.first_ns if self.first_ns < 0 else min(self.first_ns, other.first_ns)
        self.last_ns = max(self.last_ns, other.last_ns)
        self.evidence = sorted({*self.evidence, *other.evidence}, key=lambda one: one[1])[:MAX_EVIDENCE]
        for kind in other._notes:
            self.note(kind, other.noted(kind))

    @property
    def seconds(self) -> float:
        """From the first to the last occurrence, never zero."""
        return max((self.last_ns - self.first_ns) / 1e9, 1e-3)


class Tally:
    """Cases by subject and a second name, mostly of a short list (APIs, codes)."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._cases: dict[tuple[str, str], Case] = {}

    def case(self, subject: str, what: str = "") -> Case:
        """The case of that subject, a new one if need be."""
        found = self._cases.get((subject, what))
        if found is None:
            subject = clipped(subject)
            found = self._cases.get((subject, what))
        if found is None:
            if len(self._cases) >= MAX_SUBJECTS or not self._budget.admit(_CASE_BYTES + text_bytes(subject, what)):
                subject = OTHERS
                if (subject, what) not in self._cases and len(self._cases) >= 2 * MAX_SUBJECTS:
                    what = OTHERS  # a group or topic; of APIs and codes there are not so many
                found = self._cases.get((subject, what))
            if found is None:
                found = self._cases[subject, what] = Case(self._budget)
        return found

    def known(self, subject: str, what: str = "") -> Case | None:
        """The case of that subject, if there is one."""
        return self._cases.get((clipped(subject), what))

    def forget(self, subject: str, what: str = "") -> None:
        """Forgets the case of that subject, if there is one."""
        if self._cases.pop((clipped(subject), what), None) is not None:
            self._budget.release(_CASE_BYTES + text_bytes(clipped(subject), what))

    def __len__(self) -> int:
        return len(self._cases)

    def __iter__(self) -> Iterator[tuple[str, str, Case]]:
        return ((subject, what, case) for (subject, what), case in self._cases.items())


class Episodes:
    """Cases by subject, with a new one after a long pause."""

    def __init__(self, budget: MemoryBudget, pause_ns: int = PAUSE_NS) -> None:
        self._budget = budget
        self._pause_ns = pause_ns
        self._tally = Tally(budget)
        self._later: dict[tuple[str, str], list[Case]] = {}

    def case(self, subject: str, what: str, ns: int) -> Case:
        """The case of that subject around a time."""
        key = clipped(subject), what
        cases = self.of(subject, what) or [self._tally.case(subject, what)]
        case: Case
        for case in cases:
            if case.first_ns < 0 or case.first_ns - self._pause_ns <= ns <= case.last_ns + self._pause_ns:
                return case
        if len(cases) >= MAX_EPISODES or not self._budget.admit(_CASE_BYTES):
            return case
        case = Case(self._budget)
        self._later.setdefault(key, []).append(case)
        return case

    def of(self, subject: str, what: str) -> list[Case]:
        """All cases of a subject."""
        first = self._tally.known(subject, what)
        return [] if first is None else [first, *self._later.get((clipped(subject), what), ())]

    def __iter__(self) -> Iterator[tuple[str, str, Case]]:
        for subject, what, case in self._tally:
            yield subject, what, case
            for later in self._later.get((subject, what), ()):
                yield subject, what, later


class Lasting(Protocol):
    """What lasts from one time to another."""

    @property
    def first_ns(self) -> int: ...

    @property
    def last_ns(self) -> int: ...


Some = TypeVar("Some", bound=Lasting)


def together(some: Iterable[Some], gap_ns: int, of: Callable[[Some], str] = lambda _: "") -> Iterator[list[Some]]:
    """Those that overlap or follow each other within ``gap_ns``, by begin; ``of`` names what keeps them apart."""
    found: list[Some] = []
    last_ns = 0
    for one in sorted(some, key=lambda each: (of(each), each.first_ns)):
        if found and (of(one) != of(found[0]) or one.first_ns > last_ns + gap_ns):
            yield found
            found = []
        last_ns = max(last_ns, one.last_ns) if found else one.last_ns
        found.append(one)
    if found:
        yield found


def clipped(name: str, most: int = MAX_NAME_CHARS) -> str:
    """A name from the wire, not longer than one that Kafka would take."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def client_of(exchange: Exchange) -> str:
    """The client that an exchange concerns, by its id and address."""
    return client_text(exchange.client_id, exchange.connection.client)


def client_text(client_id: str | None, endpoint: str) -> str:
    """A client by its id and the host of its endpoint."""
    return _client_text(clipped(client_id) if client_id else NO_CLIENT_ID, endpoint)


@lru_cache(maxsize=4096)  # one text of each client, which tables of clients find faster than an equal one
def _client_text(name: str, endpoint: str) -> str:
    return f"{name} {host_of(endpoint)}"


def is_node(client: str) -> bool:
    """Whether a client is a broker that speaks to its controller: its client id is its node id."""
    return client.partition(" ")[0].isdigit()


def is_cut(exchange: Exchange, direction: Direction) -> bool:
    """Whether bytes of the request or the response are missing from the capture, as with a snap length."""
    return any(problem.code == "gap" and problem.path == direction for problem in exchange.problems)


def went_wrong(exchange: Exchange) -> bool:
    """Whether an exchange has an error code, or a problem other than those that plugins find in records."""
    return bool(exchange.errors) or any(problem.code != "payload_does_not_fit" for problem in exchange.problems)


def is_replica(exchange: Exchange) -> bool:
    """Whether the request is a follower's, by its node id, or by the client id of a fetcher where that is cut off."""
    return replica_id_of(exchange.request) >= 0 or (
        exchange.api_key == FETCH and is_cut(exchange, "request") and "etcher" in (exchange.client_id or "etcher")
    )
