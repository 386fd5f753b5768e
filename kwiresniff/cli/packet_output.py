"""``-w`` of ``kwiresniff read``, and ``w`` of ``browse``: the packets of chosen exchanges into a capture file."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import click

from kwiresniff.analysis.doctor import Doctors
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.base.flows import host_of
from kwiresniff.base.needs import Needs
from kwiresniff.cli.collect import end, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.outcomes import INTERRUPTED
from kwiresniff.cli.redact_key import redact_key
from kwiresniff.cli.spool import readable_twice
from kwiresniff.identity.addresses import AddressBook
from kwiresniff.identity.copies import Copies
from kwiresniff.model import Connection, Event, Exchange, Problem
from kwiresniff.packets import Anonymous, Context, Selection, Source, write_packets
from kwiresniff.packets.anonymous import FrameKeeper, FrameSpool, Pseudonyms
from kwiresniff.packets.writing import check_target
from kwiresniff.render.format_units import count

#: Names of topics and groups are in digests; what changes the content of a fetch session has to be seen.
NEEDS = Needs("bodies", sessions=True, digests=True) | Doctors.NEEDS
#: Packets that are rewritten need all of every frame.
NEEDS_OF_FRAMES = Needs("records", sessions=True) | Doctors.NEEDS


def write_exchanges(
    captures: Sequence[str], options: ReadOptions, path: str, *, anonymise: bool = False, key_file: str | None = None
) -> int:
    """Writes the packets of the exchanges that the options choose; returns the exit code. ``key_file`` has the key of
    the pseudonyms with ``anonymise``.
    """
    if path == "-" and sys.stdout.isatty():
        raise click.UsageError("-w - writes packets to standard output, which is a terminal: pipe it, or name a file")
    with ExitStack() as stack:
        names = [readable_twice(one, stack) for one in captures]
        output = PacketOutput(names, options, path, _anonymous(key_file, stack) if anonymise else None)
        finished, messages = read_through(output.source, output.take)
        if not finished:
            return INTERRUPTED
        told = f"{output.write()}, written to {path}"
        return end(output.source, finished, messages, told=told)


class PacketOutput:
    """The packets of chosen exchanges: ``take`` each as ``source`` gives it, and ``write`` when all are read.

    The captures are files, which are read twice. Raises ExportError where ``path`` is one of them.
    """

    def __init__(
        self, captures: Sequence[str], options: ReadOptions, path: str, anonymous: Anonymous | None = None
    ) -> None:
        self._path = path
        self._anonymous = anonymous
        self._frames = FrameKeeper(anonymous.pseudonyms, anonymous.frames) if anonymous is not None else None
        self._selection = Selection()
        self._context, self._addresses = Context(self._selection), AddressBook()
        needs = NEEDS if anonymous is None else NEEDS_OF_FRAMES
        self.source = EventSource(captures, options, needs, screen=False, all_views=True, witness=self._see)
        self._doctor = Doctors(self.source.topic_name, clusters=self.source.clusters)
        self._examined = Copies(CallingSink(self._doctor.exchange, self._doctor.add))  # of each connection one view
        check_target(self.source.files, path)

    def _see(self, event: Event) -> None:
        """Takes in what happens, chosen or not."""
        if isinstance(event, Exchange):
            self._examined.on_exchange(event)
            self._context.on_exchange(event)
            self._addresses.exchange(event)
            if self._frames is not None:
                self._frames.keep(event)
        elif isinstance(event, Connection):
            self._examined.on_connection(event)
            self._context.on_connection(event)
            if self._frames is not None:
                self._frames.forget(event)
        elif isinstance(event, Problem):
            self._examined.on_problem(event)
        else:
            self._examined.on_attempt(event)

    def take(self, exchange: Exchange) -> None:
        """Chooses an exchange, the last one that the source gave."""
        self._context.add(exchange)
        self._selection.choose(exchange)

    def write(self) -> str:
        """Writes the file, and returns in words how many exchanges and packets it has. Raises ExportError."""
        source, selection = self.source, self._selection
        for finding in self._doctor.findings():
            for one in (finding, *finding.symptoms):
                selection.add_finding(one, named=self._anonymous is None)
        names = list(_names(selection, source, self._addresses))
        with source.progress_bar() as bar:
            origin = Source(source.files, source.options.decode_as, names, _key_lines(selection, source), bar.show)
            written = write_packets(origin, selection, self._path, self._anonymous)
        return f"{count(selection.exchanges, 'exchange')} in {count(written.packets, 'packet')}"


def _anonymous(key_file: str | None, stack: ExitStack) -> Anonymous:
    key = redact_key(key_file, None)
    pseudonyms = Pseudonyms(None if key is None else key.encode("utf-8", "surrogateescape"))
    return Anonymous(pseudonyms, FrameSpool(stack.enter_context(tempfile.TemporaryFile())))


def _names(selection: Selection, source: EventSource, addresses: AddressBook) -> Iterator[tuple[str, str]]:
    """The hosts of the chosen connections with their names; those of processes and pods are not of a host."""
    seen: set[tuple[str, str]] = set()
    for chosen in selection.connections.values():
        broker, client = chosen.connection.broker, chosen.connection.client
        found = [(host_of(client), one.name) for one in source.names.of_address(host_of(client))]
        found += [(host_of(broker), one.name) for one in (*source.names.of(broker), *addresses.broker_names(broker))]
        for host, name in found:
            if "/" not in name and (host, name) not in seen:
                seen.add((host, name))
                yield host, name


def _key_lines(selection: Selection, source: EventSource) -> bytes:
    """The lines of key logs with which the chosen connections are decrypted."""
    lines: dict[str, None] = {}
    for chosen in selection.connections.values():
        session = chosen.connection.tls_session
        if session is not None:
            lines.update(dict.fromkeys(source.captures.tls_secrets.lines(*session)))
    return "".join(f"{line}\n" for line in lines).encode()
