"""Intakes: exchanges taken one by one as they complete, when nothing else has to look at them on their way.

For what asks little of each exchange: by way of the events it would pay more for the way than for the looking. A
damaged capture has a problem, and a flood of connections an event, for each packet or two: so they have that way, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kwiresniff.model import Event, Exchange, ExchangeSink, Problem


class Intake(ExchangeSink):
    """Takes exchanges, as long as no problem of the captures waits to be reported before them.

    ``exchanges`` and ``problems`` count what was taken and what was wrong with it; ``reported`` is how many problems of
    the captures have been reported. An exchange is taken whole or not at all: an intake that is ``busy`` is only asked
    to stop. With ``matches`` only the exchanges that match are taken, and ``connections`` are theirs; the others are
    dropped. With ``report`` all other events are taken, too, and given to it.
    """

    def __init__(self) -> None:
        self.matches: Callable[[Exchange], bool] | None = None
        self.report: Callable[[Event], None] | None = None
        self.connections: set[int] = set()
        self.exchanges = 0
        self.problems = 0
        self.reported = 0
        self.busy = False
        self.stopped = False
        self._captures_problems: Sequence[Problem] = []

    def follow(self, problems: list[Problem]) -> None:
        """Watches the list in which the captures put their problems."""
        self._captures_problems = problems

    def exchange(self, exchange: Exchange) -> bool:
        """Take an exchange, unless something else has to be reported before."""
        if len(self._captures_problems) > self.reported:
            return False
        if self.matches is not None:
            if not self.matches(exchange):
                return True
            self.connections.add(exchange.connection.id)
        self.busy = True
        self.exchanges += 1
        if exchange.problems:
            self.problems += len(exchange.problems)
        self.take(exchange)
        self.busy = False
        if self.stopped:
            raise KeyboardInterrupt
        return True

    def other(self, event: Event) -> bool:
        """Take an event that is no exchange, unless something else has to be reported before."""
        if self.report is None or len(self._captures_problems) > self.reported:
            return False
        self.busy = True
        self.report(event)
        self.busy = False
        if self.stopped:
            raise KeyboardInterrupt
        return True

    def take(self, exchange: Exchange) -> None:
        """Takes one exchange; what an analysis does with it."""
        raise NotImplementedError


class CallingIntake(Intake):
    """An intake that passes every exchange to a function."""

    def __init__(self, call: Callable[[Exchange], None]) -> None:
        super().__init__()
        self._call = call

    def take(self, exchange: Exchange) -> None:
        self._call(exchange)
