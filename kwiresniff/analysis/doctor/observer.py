"""The base of all observers: an observer gets events, keeps bounded counts of them, and gives observations.

Observations give facts and their harm; reasons and remedies are for causes (``cause``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending
from kwiresniff.analysis.doctor.evidence import Case
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, observation_of
from kwiresniff.model import Connection, ConnectionAttempt, Exchange, Problem

#: What is slow, to observers of it: a second.
SLOW_NS: Final = 1_000_000_000


@mypyc_attr(allow_interpreted_subclasses=True)
class Observer:
    """Base of the doctor's observers.

    ``exchange`` is called with exchanges of ``apis`` (None: of all), ``slow`` with those of any API that took
    ``SLOW_NS`` or more, ``failure`` with those of any API that have an error, a problem or no answer. ``judges`` names
    error codes that a cause of its observations explains, and that need no finding of their own. ``kinds`` are those of
    its observations.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    apis: ClassVar[frozenset[int] | None] = frozenset()
    judges: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, context: Context) -> None:
        self.context = context

    def exchange(self, exchange: Exchange) -> None:
        """An exchange of one of its APIs."""

    def slow(self, exchange: Exchange) -> None:
        """An exchange that took ``SLOW_NS`` or more, from its first byte to its last."""

    def failure(self, exchange: Exchange) -> None:
        """An exchange with an error code, with a problem in its bytes, or without an answer."""

    def connection(self, connection: Connection) -> None:
        """A connection that has ended."""

    def connection_anywhere(self, connection: Connection) -> None:
        """A connection in any cluster that has ended, which observers of the first cluster's examination are given."""

    def ending(self, ending: Ending) -> None:
        """A connection that has ended with requests that were not answered."""

    def attempt(self, attempt: ConnectionAttempt) -> None:
        """A connection that never came to be."""

    def problem(self, problem: Problem) -> None:
        """Something wrong with the capture or a connection."""

    def observations(self) -> Iterator[Observation]:
        """The observations so far; each call gives all of them."""
        return iter(())


@mypyc_attr(allow_interpreted_subclasses=True)
class CountingObserver(Observer):
    """An observer that counts cases by two names, of the kinds ``entities``: a client and a broker by default."""

    entities: ClassVar[tuple[str, str]] = ("client", "broker")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.cases = context.tally()

    def observations(self) -> Iterator[Observation]:
        for subject, what, case in self.cases:
            yield self.observed(subject, what, case)

    def observed(self, subject: str, what: str, case: Case, harm: Harm = HARMLESS, **numbers: Any) -> Observation:
        """The observation of a case."""
        about = {f"{kind}:{name}" for kind, name in zip(self.entities, (subject, what), strict=True) if name}
        return observation_of(self.kinds[0], case, about, numbers, harm)
