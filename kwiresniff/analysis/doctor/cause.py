"""The base of all causes: a cause says which observations it explains, what speaks for it, what against it, what to do.

It sees nothing but observations and what the context knows of the cluster, so that one fact can be weighed by several
causes; which of them is told is the judgement's business (``judgement``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, Observed
from kwiresniff.results.findings import Explains

#: The worst first.
SEVERITIES = ("error", "warning", "info")
#: Ranks, see ``Finding``.
INCIDENT, ERROR, SYMPTOM, WASTE = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Why some observations may be as they are.

    ``code``, ``subject``, ``title``, ``remedy``, ``numbers``, ``details`` and ``rank`` become those of a finding; its
    times, evidence and scope come from the observations that it explains, with ``scope`` added, and its count from
    those of the kind that comes first, of which the others are consequences. ``supports`` and ``contradicts`` are
    sentences: what spoke for it, what against it. ``doubt`` is a sentence that says what else it may be, empty where
    nothing else looks the same. ``severity`` is that of the harm unless it is given. What does not stand (``stands``)
    was weighed and is refuted by what contradicts it; nobody is told but with ``-v``. ``explains`` are findings of
    other causes that are symptoms of this.
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
        """How often what it explains was seen."""
        return sum(one.count for one in self.explained if one.kind == self.explained[0].kind)

    def harm(self) -> Harm:
        """The harm of all that it explains. Where observers saw none and the cause says that it is a warning or worse,
        each occurrence is a request that was late, or failed.
        """
        harm = sum((one.harm for one in self.explained), HARMLESS)
        if harm == HARMLESS and self.rank != WASTE and self.severity in ("error", "warning"):
            return Harm(requests_failed=self.count) if self.severity == "error" else Harm(requests_late=self.count)
        return harm

    def assumptions(self) -> int:
        """How much has to be assumed for it: what speaks against it, and what else it may be."""
        return len(self.contradicts) + bool(self.doubt)


class Cause:
    """One cause of trouble that weighs several observations; those of a single one are functions (``cause``).

    Its docstring is its entry in docs/doctor.md: what must have been seen, what must not, what else looks the same.
    ``codes`` are those of its explanations, ``explains`` the kinds of observations that it takes.
    """

    codes: ClassVar[tuple[str, ...]] = ()
    explains: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: Context) -> None:
        self.context = context

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """The explanations that the observations allow, and those that they refute."""
        return iter(())


#: What there is to say of one observation, by all of them and what the examination knows besides; None where it needs
#: no explanation.
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
