"""The base of all causes: a cause explains observations, with what speaks for it and against it, and a remedy.

It sees observations and what the context knows of the cluster. Several causes may explain the same observation;
``judgement`` chooses among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, Observed
from kwiresniff.results.findings import Explains, scope_of

#: The worst first.
SEVERITIES = ("error", "warning", "info")
#: Ranks, see ``Finding``.
INCIDENT, ERROR, SYMPTOM, WASTE = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """A possible reason for some observations.

    ``code``, ``subject``, ``title``, ``remedy``, ``numbers``, ``details`` and ``rank`` become those of a finding; its
    times, evidence and scope come from the observations, with ``scope`` added, and its count from those of the first
    kind, of which the others are consequences. ``supports`` and ``contradicts`` are sentences for it and against it.
    ``doubt`` is a sentence on what else looks the same. ``severity`` is that of the harm unless it is given. An
    explanation with ``stands`` false is refuted and shown with ``-v`` only. ``explains`` are findings of other causes
    that are symptoms of this.
    """

    code: str
    subject: str
    title: str
    remedy: str
    explained: tuple[Observation, ...]
    supports: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    doubt: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)
    details: tuple[str, ...] = ()
    severity: str = ""
    rank: int = INCIDENT
    stands: bool = True
    scope: frozenset[str] = frozenset()
    explains: Explains = field(default_factory=lambda: MappingProxyType({}))

    @property
    def count(self) -> int:
        """How often its observations were seen."""
        return sum(one.count for one in self.explained if one.kind == self.explained[0].kind)

    def harm(self) -> Harm:
        """The harm of its observations; where they have none, one late request for each occurrence of a warning, one
        failed request for each of an error."""
        harm = sum((one.harm for one in self.explained), HARMLESS)
        if harm == HARMLESS and self.rank != WASTE and self.severity in ("error", "warning"):
            return Harm(requests_failed=self.count) if self.severity == "error" else Harm(requests_late=self.count)
        return harm

    def assumptions(self) -> int:
        """The number of contradictions and doubts."""
        return len(self.contradicts) + bool(self.doubt)


class Cause:
    """A cause that weighs several observations; causes of a single one are functions (``cause``).

    Its docstring is its entry in docs/doctor.md. ``codes`` are those of its explanations, ``explains`` the kinds of
    observations that it takes.
    """

    codes: ClassVar[tuple[str, ...]] = ()
    explains: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: Context) -> None:
        self.context = context

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """The explanations that the observations allow, and those that they refute."""
        return iter(())


#: The explanation of one observation, by all of them and the context; None where it needs none.
Explain: TypeAlias = Callable[[Observation, Observed, Context], Explanation | None]


def cause(*codes: str, explains: tuple[str, ...]) -> Callable[[Explain], type[Cause]]:
    """Makes a function the cause of each observation of the first kind that it explains.

    An explanation has the first of the ``codes`` unless it gives another one.
    """

    def made(explain: Explain) -> type[Cause]:
        def weigh(self: Cause, observed: Observed) -> Iterator[Explanation]:
            for one in observed.of(explains[0]):
                explanation = explain(one, observed, self.context)
                if explanation is not None:
                    yield explanation if explanation.code else replace(explanation, code=codes[0])

        about = {"__doc__": explain.__doc__, "__module__": explain.__module__}
        return type(explain.__name__, (Cause,), {**about, "codes": codes, "explains": explains, "weigh": weigh})

    return made


def told(one: Observation, title: str, remedy: str, **more: Any) -> Explanation:
    """An explanation of one observation, which gives the subject and the numbers unless ``more``, fields of
    ``Explanation``, does.
    """
    given = {"code": "", "subject": one.subject, "numbers": one.numbers, "explained": (one,), **more}
    return Explanation(title=title, remedy=remedy, **given)


def symptoms(kind: str, names: Iterable[str], *codes: str) -> dict[str, frozenset[str]]:
    """Findings with one of these codes about entities of a kind, as ``Explanation.explains`` holds them."""
    return dict.fromkeys(codes, scope_of(kind, names))
