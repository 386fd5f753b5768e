"""The inventory of clients in captures, for the commands that show or judge it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kwiresniff.analysis.clients import Inventory
from kwiresniff.analysis.named import client_with_names
from kwiresniff.cli.collect import end, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.identity.addresses import AddressBook
from kwiresniff.model import Connection, Event, Exchange
from kwiresniff.render.clients import ClientWriter
from kwiresniff.render.terminal import stdout_for
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
        left_out = cut = ""
        if self.left_out:
            left_out = f"{self.left_out} more clients are not listed: there are too many"
        if self.cut:
            many = "1 client" if self.cut == 1 else f"{self.cut} clients"
            cut = f"{many} used more API versions or names than are remembered"
        return end(self.source, self.finished, self.messages, left_out, cut, code=code)


def collect(captures: tuple[str, ...], options: ReadOptions) -> Collected:
    """Reads the captures; raises what is wrong with them or with the options before anything is printed."""
    source = EventSource(captures, options, Inventory.NEEDS, screen=False)
    inventory, book = Inventory(source.topic_name, source.clusters), AddressBook(source.names)

    def take(event: Event) -> None:
        if isinstance(event, Connection):
            inventory.connection(event)

    def take_exchange(exchange: Exchange) -> None:
        book.exchange(exchange)
        inventory.exchange(exchange)

    finished, messages = read_through(source, take_exchange, take)
    clients = [client_with_names(client, book) for client in inventory.clients()]
    return Collected(source, clients, inventory.left_out, inventory.cut, finished, messages)


def writer(source: EventSource) -> ClientWriter:
    """A writer of clients to standard output."""
    return ClientWriter(*stdout_for(source.options.color), source.files)
