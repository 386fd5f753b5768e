"""Observations: typed facts with whom they are about, when, how often, where, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from kwiresniff.analysis.doctor.evidence import MAX_NAMES, Case
from kwiresniff.analysis.doctor.wording import duration, listed, span, times


@dataclass(frozen=True, slots=True)
class Harm:
    """What something cost whoever works with Kafka; zero where nothing, or nothing that was seen.

    ``records_lost`` are in no log, or a group that was reading passes over them. ``late_ns`` is the sum of what
    ``requests_late`` waited too long. ``records_unread`` lie in a log and nobody reads them. ``seconds_down`` is for
    how long somebody could do no work at all.
    """

    records_lost: int = 0
    records_doubled: int = 0
    requests_failed: int = 0
    seconds_down: float = 0.0
    late_ns: int = 0
    requests_late: int = 0
    records_unread: int = 0
    bytes_wasted: int = 0

    def __add__(self, other: Harm) -> Harm:
        return Harm(*[getattr(self, one.name) + getattr(other, one.name) for one in fields(Harm)])

    def weight(self) -> tuple[float, ...]:
        """What harms are compared by, the greater the worse: what cannot be undone before what failed or stood still,
        that before what was late, and that before waste. A failed request counts like a second of standing still.
        """
        return (
            self.records_lost,
            self.records_doubled,
            self.requests_failed + self.seconds_down,
            self.late_ns / 1e9,
            self.requests_late,
            self.records_unread,
            self.bytes_wasted,
        )

    def severity(self) -> str:
        """``error`` where work failed, was lost, was doubled or stood still, ``warning`` where it was late or is not
        read, else ``info``."""
        if self.records_lost or self.records_doubled or self.requests_failed or self.seconds_down:
            return "error"
        return "warning" if self.requests_late or self.late_ns or self.records_unread else "info"


#: No harm, as far as was seen.
HARMLESS = Harm()
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """One fact.

    ``kind`` is a short snake_case name that its observer documents. ``about`` holds entities as ``kind:name``, with the
    kinds ``client``, ``host``, ``broker``, ``node``, ``topic``, ``partition``, ``group``, ``member``, ``connection``,
    ``user`` and ``producer``. It was seen ``count`` times from ``first_ns`` to ``last_ns``, with up to ``MAX_EVIDENCE``
    packet references and times in ``evidence``. ``numbers`` is JSON-ready. ``notes`` are other names that came with it,
    by their kinds. ``text`` says what was seen, without a cause, where another sentence than ``sentence`` makes is to.
    """

    kind: str
    about: frozenset[str]
    text: str = ""
    first_ns: int = 0
    last_ns: int = 0
    count: int = 1
    harm: Harm = HARMLESS
    evidence: tuple[tuple[int, int], ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)

    def noted(self, kind: str) -> list[str]:
        """The notes of one kind, in the order in which they came."""
        return self.notes.get(kind, [])

    def named(self, kind: str) -> list[str]:
        """The names of the entities of one kind, in order."""
        return sorted(one[len(kind) + 1 :] for one in self.about if one.startswith(f"{kind}:"))

    def name(self, kind: str) -> str:
        """The name of its only entity of a kind, the first of several, or an empty text."""
        return next(iter(self.named(kind)), "")

    @property
    def subject(self) -> str:
        """Whom a finding on it is about: its client, its group, or its broker."""
        group = self.name("group")
        return self.name("client") or (f"group {group}" if group else self.name("broker"))

    @property
    def sentence(self) -> str:
        """What was seen: ``text``, else the kind with those whom it is about, the numbers, how often and when."""
        if self.text:
            return self.text
        whom = listed([one.replace(":", " ", 1) for one in sorted(self.about)], MAX_NAMES)
        facts = [
            f"{name.removesuffix('_ns')} {duration(int(value)) if name.endswith('_ns') else value}"
            for name, value in self.numbers.items()
            if isinstance(value, int | float) and value
        ]
        when = f"{times(self.count)}{span(self.first_ns, self.last_ns)}"
        return "; ".join([f"{self.kind.replace('_', ' ')}: {whom}", *([", ".join(facts)] if facts else []), when])


def observation_of(
    kind: str,
    case: Case,
    about: Iterable[str],
    numbers: dict[str, Any] | None = None,
    harm: Harm = HARMLESS,
    text: str = "",
) -> Observation:
    """An observation from a case; the clients, brokers, topics and groups that the case has names of belong to it."""
    names = [f"{one[:-1]}:{name}" for one in ("clients", "brokers", "topics", "groups") for name in case.noted(one)]
    return Observation(
        kind=kind,
        about=frozenset([*about, *names]),
        text=text,
        first_ns=max(case.first_ns, 0),
        last_ns=max(case.last_ns, 0),
        count=case.count,
        harm=harm,
        evidence=tuple(case.evidence),
        numbers=numbers or {},
        notes=case.notes(),
    )


def grouped(observations: Iterable[Observation], key: Callable[[Observation], Key]) -> dict[Key, list[Observation]]:
    """Observations by a key of each, in their order."""
    groups: dict[Key, list[Observation]] = {}
    for one in observations:
        groups.setdefault(key(one), []).append(one)
    return groups


class Observed:
    """All observations of an examination, by kind and by entity."""

    def __init__(self, observations: Iterable[Observation]) -> None:
        self._all = list(observations)
        self._by_kind = grouped(self._all, lambda one: one.kind)
        self._about: dict[tuple[str, str], list[Observation]] = {}
        for one in self._all:
            for entity in one.about:
                self._about.setdefault((one.kind, entity), []).append(one)

    def __iter__(self) -> Iterator[Observation]:
        return iter(self._all)

    def of(self, *kinds: str) -> list[Observation]:
        """Those of some kinds."""
        return [one for kind in kinds for one in self._by_kind.get(kind, ())]

    def about(self, entities: Iterable[str], *kinds: str) -> list[Observation]:
        """Those of some kinds that are about one of these entities, each once, by the names of these."""
        entities = sorted(entities)  # sets of texts have another order in each process
        found = (one for kind in kinds for entity in entities for one in self._about.get((kind, entity), ()))
        return list(dict.fromkeys(found))
