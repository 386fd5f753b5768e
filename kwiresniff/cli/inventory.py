"""The inventory of clients in captures, for the commands that show or judge it."""

from __future__ import annotations

import sys

from kwiresniff.analysis.clients import Inventory
from kwiresniff.base.light_typing import TYPE_CHECKING, NamedTuple
from kwiresniff.cli.collect import read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.outcomes import INTERRUPTED
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.model import Connection, Event
from kwiresniff.results.clients import Client

if TYPE_CHECKING:
    from kwiresniff.render.clients import ClientWriter


class Collected(NamedTuple):
    """The inventory of a pass over the captures, and what went wrong."""

    source: EventSource
    clients: list[Client]
    left_out: int
    cut: int
    finished: bool
    messages: Messages

    def end(self, code: int = 0) -> int:
        """Prints what is left to say on stderr; returns the exit code, ``code`` when all went well."""
        if self.left_out and not self.source.options.quiet:
            print(f"kwiresniff: {self.left_out} more clients are not listed: there are too many", file=sys.stderr)
        if self.cut and not self.source.options.quiet:
            many = "1 client" if self.cut == 1 else f"{self.cut} clients"
            print(f"kwiresniff: {many} used more API versions or names than are remembered", file=sys.stderr)
        if not self.finished:
            return INTERRUPTED
        self.messages.end()
        return self.source.exit_code(code)


def collect(captures: tuple[str, ...], options: ReadOptions) -> Collected:
    """Reads the captures; raises what is wrong with them or with the options before anything is printed."""
    source = EventSource(captures, options, "bodies", screen=False, sessions=True, digests=True)
    inventory = Inventory(source.topic_name)

    def take(event: Event) -> None:
        if isinstance(event, Connection):
            inventory.connection(event)

    finished, messages = read_through(source, inventory.exchange, take)
    clients = inventory.clients()
    return Collected(source, clients, inventory.left_out, inventory.cut, finished, messages)


def writer(source: EventSource) -> ClientWriter:
    """What writes clients to standard output."""
    from kwiresniff.render import stdout_for
    from kwiresniff.render.clients import ClientWriter

    return ClientWriter(*stdout_for(source.options.color), source.files)
