"""Sinks that stand between the analyzer and what a command does with its events, and ``chain``, which orders them.

Written for mypyc: every exchange passes through them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kwiresniff.model import Connection, ConnectionAttempt, Event, Exchange, ForwardingSink, Problem, Sink, file_index

if TYPE_CHECKING:
    from kwiresniff.analysis.redact import Redactor


class CallingSink(Sink):
    """Calls ``exchange`` with every exchange, and ``other`` with all other events."""

    def __init__(self, exchange: Callable[[Exchange], None], other: Callable[[Event], None] | None = None) -> None:
        self._exchange = exchange
        self._other = other

    def on_exchange(self, exchange: Exchange) -> None:
        self._exchange(exchange)

    def on_connection(self, connection: Connection) -> None:
        if self._other is not None:
            self._other(connection)

    def on_attempt(self, attempt: ConnectionAttempt) -> None:
        if self._other is not None:
            self._other(attempt)

    def on_problem(self, problem: Problem) -> None:
        if self._other is not None:
            self._other(problem)


class Narrowed(ForwardingSink):
    """Passes on the exchanges that ``matches`` tells, and the connections that had one of them.

    ``connections`` are the numbers of these connections until they end.
    """

    def __init__(self, next: Sink, matches: Callable[[Exchange], bool], connections: set[int]) -> None:
        super().__init__(next)
        self._matches = matches
        self._connections = connections

    def on_exchange(self, exchange: Exchange) -> None:
        if self._matches(exchange):
            self._connections.add(exchange.connection.id)
            self.next.on_exchange(exchange)

    def on_connection(self, connection: Connection) -> None:
        if connection.id in self._connections:
            self._connections.discard(connection.id)
            self.next.on_connection(connection)


class Redacted(ForwardingSink):
    """Passes on exchanges with hashes in the place of keys, values and headers of records."""

    def __init__(self, next: Sink, redactor: Redactor) -> None:
        super().__init__(next)
        self._redactor = redactor

    def on_exchange(self, exchange: Exchange) -> None:
        self._redactor.exchange(exchange)
        self.next.on_exchange(exchange)


class Limited(ForwardingSink):
    """Passes on the first ``limit`` exchanges; is ``full`` then and passes on nothing but problems of captures."""

    def __init__(self, next: Sink, limit: int) -> None:
        super().__init__(next)
        self._left = limit
        self.full = False

    def on_exchange(self, exchange: Exchange) -> None:
        if not self.full:
            self.next.on_exchange(exchange)
            self._left -= 1
            self.full = self._left == 0

    def on_connection(self, connection: Connection) -> None:
        if not self.full:
            self.next.on_connection(connection)

    def on_attempt(self, attempt: ConnectionAttempt) -> None:
        if not self.full:
            self.next.on_attempt(attempt)


class Observed(ForwardingSink):
    """Calls ``observe`` with every event before it passes it on."""

    def __init__(self, next: Sink, observe: Callable[[Event], None]) -> None:
        super().__init__(next)
        self._observe = observe

    def on_exchange(self, exchange: Exchange) -> None:
        self._observe(exchange)
        self.next.on_exchange(exchange)

    def on_connection(self, connection: Connection) -> None:
        self._observe(connection)
        self.next.on_connection(connection)

    def on_attempt(self, attempt: ConnectionAttempt) -> None:
        self._observe(attempt)
        self.next.on_attempt(attempt)

    def on_problem(self, problem: Problem) -> None:
        self._observe(problem)
        self.next.on_problem(problem)


class Counted(ForwardingSink):
    """Counts what passes: ``exchanges``, and ``problems`` of all kinds, those inside exchanges included.

    ``unreadable`` says whether a capture could not be read.
    """

    def __init__(self, next: Sink) -> None:
        super().__init__(next)
        self.exchanges = 0
        self.problems = 0
        self.unreadable = False

    def on_exchange(self, exchange: Exchange) -> None:
        self.exchanges += 1
        if exchange.problems:
            self.problems += len(exchange.problems)
        self.next.on_exchange(exchange)

    def on_problem(self, problem: Problem) -> None:
        self.problems += 1
        self.unreadable = self.unreadable or problem.code == "capture_unreadable"
        self.next.on_problem(problem)


class WholeEvents(ForwardingSink):
    """Is ``busy`` while the next sink has an event, so that nobody interrupts it in the middle of one.

    Raises KeyboardInterrupt behind the event after ``stopped`` was set.
    """

    def __init__(self, next: Sink) -> None:
        super().__init__(next)
        self.busy = False
        self.stopped = False

    def on_exchange(self, exchange: Exchange) -> None:
        self.busy = True
        self.next.on_exchange(exchange)
        self._passed()

    def on_connection(self, connection: Connection) -> None:
        self.busy = True
        self.next.on_connection(connection)
        self._passed()

    def on_attempt(self, attempt: ConnectionAttempt) -> None:
        self.busy = True
        self.next.on_attempt(attempt)
        self._passed()

    def on_problem(self, problem: Problem) -> None:
        self.busy = True
        self.next.on_problem(problem)
        self._passed()

    def _passed(self) -> None:
        self.busy = False
        if self.stopped:
            raise KeyboardInterrupt


class CaptureEvents(ForwardingSink):
    """Adds the problems of the capture files to the events, each behind the first event after it was found.

    ``problems`` is the list to which captures add theirs. Problems of connections get the file they are in, where
    ``files`` are several. ``exchanges`` counts those that came, ``encrypted`` the TLS connections that could not be
    decrypted.
    """

    def __init__(self, next: Sink, problems: Sequence[Problem], files: Sequence[str]) -> None:
        super().__init__(next)
        self.exchanges = 0
        self.encrypted = 0
        self._problems = problems
        self._reported = 0
        self._files = files

    def on_exchange(self, exchange: Exchange) -> None:
        self.exchanges += 1
        self.next.on_exchange(exchange)
        if len(self._problems) > self._reported:
            self.report()

    def on_connection(self, connection: Connection) -> None:
        if connection.protocol == "tls" and connection.tls is not None and not connection.tls["decrypted"]:
            self.encrypted += 1
        self.next.on_connection(connection)
        if len(self._problems) > self._reported:
            self.report()

    def on_attempt(self, attempt: ConnectionAttempt) -> None:
        self.next.on_attempt(attempt)
        if len(self._problems) > self._reported:
            self.report()

    def on_problem(self, problem: Problem) -> None:
        if problem.packet is not None and len(self._files) > 1 and "file" not in (problem.details or {}):
            file = self._files[file_index(problem.packet)]
            problem = problem._replace(details={**(problem.details or {}), "file": file})
        self.next.on_problem(problem)
        if len(self._problems) > self._reported:
            self.report()

    def report(self) -> None:
        """Passes on the problems of captures that were found since."""
        while self._reported < len(self._problems):
            self._reported += 1
            self.next.on_problem(self._problems[self._reported - 1])
