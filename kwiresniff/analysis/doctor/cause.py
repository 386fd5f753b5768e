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
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed
from kwiresniff.analysis.doctor.rule import INCIDENT
from kwiresniff.results.findings import Explains


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Why some observations may be as they are.

    ``code``, ``subject``, ``title``, ``remedy``, ``numbers``, ``details`` and ``rank`` become those of a finding; its
    times, evidence and scope come from the observations that it explains, with ``scope`` added, and its count from
    those of the kind that comes first, of which the others are consequences. ``supports`` and ``contradicts`` are
    sentences: what spoke for it, what against it. ``doubt`` is a sentence that says what else it may be, empty where
    nothing else looks the same. ``severity`` is that of the harm unless it is given. What does not stand (``stands``)
    was weighed and is refuted by what contradicts it; nobody is told but with ``-v``. ``explains`` are findings of
    rules that are symptoms of this.
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

    def harm(self) -> Harm:
        """The harm of all that it explains."""
        return sum((one.harm for one in self.explained), Harm())

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
        """The explanations that the observations allow, and those that they refute."""
        return iter(())
