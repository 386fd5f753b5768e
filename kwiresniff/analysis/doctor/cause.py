"""The base of all causes: a cause says which observations it explains, what speaks for it, what against it, what to do.

It sees nothing but observations and what the context knows of the cluster, so that one fact can be weighed by several
causes; which of them is told is the judgement's business (``judgement``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

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
    """One cause of trouble; those that there are derive from it.

    Its docstring is its entry in docs/doctor.md: what must have been seen, what must not, what else looks the same.
    ``codes`` are those of its explanations, ``explains`` the kinds of observations
    that it takes.
    """

    codes: ClassVar[tuple[str, ...]] = ()
    explains: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: Context) -> None:
        self.context = context

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """The explanations that the observations allow, and those that they refute; by default what ``explain`` says
        of each observation of the first kind.
        """
        for one in observed.of(*self.explains[:1]):
            explanation = self.explain(one, observed)
            if explanation is not None:
                yield explanation

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        """What there is to say of one observation; None where it needs no explanation."""
        return None

    def told(self, one: Observation, title: str, remedy: str, **more: Any) -> Explanation:
        """An explanation of one observation, which gives the subject and the numbers unless ``more``, fields of
        ``Explanation``, does.
        """
        given = {"code": next(iter(self.codes), ""), "subject": one.subject, "numbers": one.numbers, **more}
        return Explanation(title=title, remedy=remedy, **{"explained": (one,), **given})
