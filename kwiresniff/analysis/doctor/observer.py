"""The base of all observers: an observer gets events, keeps bounded counts of them, and gives observations in the end.

It says what was seen and what that cost, and neither why nor what to do: those are for causes (``cause``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mypy_extensions import mypyc_attr

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending
from kwiresniff.analysis.doctor.observation import Observation
from kwiresniff.analysis.doctor.selection import ALL, Selection
from kwiresniff.model import Connection, ConnectionAttempt, Exchange, Problem


@mypyc_attr(allow_interpreted_subclasses=True)
class Observer:
    """One observer of the doctor; those that there are derive from it.

    ``exchange`` is called with exchanges of ``apis`` (None: of all), those of them that its ``selection`` names.
    ``failure`` is called with those that have an error, a problem or no answer, whatever their API. An observer that
    needs few exchanges costs nothing for the others. ``judges`` names error codes that need no finding of their own
    because a cause of what is observed here says what they mean. ``kinds`` are those of its observations.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    apis: ClassVar[frozenset[int] | None] = frozenset()
    selection: ClassVar[Selection] = ALL
    judges: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, context: Context) -> None:
        self.context = context

    def exchange(self, exchange: Exchange) -> None:
        """An exchange of one of its APIs."""

    def failure(self, exchange: Exchange) -> None:
        """An exchange with an error code, with a problem in its bytes, or without an answer."""

    def connection(self, connection: Connection) -> None:
        """A connection that has ended."""

    def ending(self, ending: Ending) -> None:
        """A connection that has ended with requests that were not answered."""

    def attempt(self, attempt: ConnectionAttempt) -> None:
        """A connection that never came to be."""

    def problem(self, problem: Problem) -> None:
        """Something wrong with the capture or a connection."""

    def observations(self) -> Iterator[Observation]:
        """The observations so far; a later call gives all of them anew."""
        return iter(())
