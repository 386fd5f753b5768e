"""What ``browse`` has done in processes of their own: reading captures for the index, a filter, the tabs, a file.

All of them read the captures in the same way, so that an exchange has the same number in each: its row in the index.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from kwiresniff.analysis.filter import Filter, compile_filter
from kwiresniff.analysis.named import finding_with_names, row_with_names, topic_with_names
from kwiresniff.analysis.report import Reporter
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.needs import Needs
from kwiresniff.browse.messages import Indexed, Matches, Reported, Saved
from kwiresniff.capture import CaptureSet
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.packet_output import PacketOutput
from kwiresniff.cli.plugin_examiners import examiners_of
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.export.encode import json_text
from kwiresniff.export.output import Output
from kwiresniff.export.writers import WRITERS
from kwiresniff.index import IndexSink
from kwiresniff.index.background import Send
from kwiresniff.model import Exchange
from kwiresniff.packets.writing import check_target
from kwiresniff.render.format_units import count
from kwiresniff.render.problems import problem_line
from kwiresniff.results.findings import Finding

#: Seconds between two messages: what is shown moves on so often.
SEND_S: Final = 0.25


def source_of(captures: Sequence[str], options: ReadOptions, needs: Needs) -> EventSource:
    """The captures as every one of these processes reads them."""
    return EventSource(captures, options._replace(no_progress=True), needs, all_views=True)


def checked_filter(expression: str) -> Filter:
    """A filter that can be understood, whatever the captures call their addresses; raises FilterError."""
    return compile_filter(expression, names=AddressNames())


class _Clock:
    """Tells when it is time to send."""

    def __init__(self) -> None:
        self._next = time.monotonic()

    def is_time(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + SEND_S
        return True


def index_captures(send: Send, captures: Sequence[str], options: ReadOptions) -> None:
    """Reads the captures once and sends their index part by part (``Indexed``)."""
    source = source_of(captures, options, IndexSink.NEEDS)
    sink, messages = IndexSink(source.topic_name), Messages(source)
    clock, sent_places, learned = _Clock(), 0, 0
    files, topics = source.captures, source.analyzer.topics

    def send_part(*, done: bool = False) -> None:
        nonlocal sent_places, learned
        names = topics.saved() if done or topics.changes != learned else None
        learned = topics.changes
        places = files.places.since(sent_places) if isinstance(files, CaptureSet) else []
        sent_places += len(places)
        problems: list[str] = []
        for one in sink.take_problems():
            if one.code == "not_kafka":
                messages.problem(one)  # which keeps it for the end
            else:
                problems.append(problem_line(one))
        if done:
            problems += messages.last_lines()
        fraction = 1.0 if done else files.position() / (files.total_bytes or 1)
        send(Indexed(sink.take(), places, names, fraction, tuple(problems), source.problems, done))

    def on_buffer() -> None:
        if sink.waiting and clock.is_time():
            send_part()

    source.on_buffer = on_buffer
    source.read(sink)
    send_part(done=True)


class _Ordinals:
    """Counts exchanges, and keeps the numbers of those that a filter lets through."""

    def __init__(self, wanted: Filter) -> None:
        self._matches = wanted.matches
        self.seen = 0
        self.rows = array("I")

    def add(self, exchange: Exchange) -> None:
        if self._matches(exchange):
            self.rows.append(self.seen)
        self.seen += 1


def filter_captures(send: Send, captures: Sequence[str], options: ReadOptions, expression: str) -> None:
    """Reads the captures and sends the rows of the exchanges that match an expression (``Matches``)."""
    source = source_of(captures, options, checked_filter(expression).needs)
    topics, files = source.analyzer.topics, source.captures
    wanted = compile_filter(expression, source.topic_name, lambda: topics.changes, source.names)
    if wanted.asked_names and isinstance(files, CaptureSet):
        files.read_names()
    ordinals, clock = _Ordinals(wanted), _Clock()

    def send_part(*, done: bool = False) -> None:
        rows, ordinals.rows = ordinals.rows, array("I")
        send(Matches(rows.tobytes(), ordinals.seen, done))

    source.on_buffer = lambda: send_part() if clock.is_time() else None
    source.read(CallingSink(ordinals.add))
    send_part(done=True)


def report_captures(send: Send, captures: Sequence[str], options: ReadOptions) -> None:
    """Reads the captures and sends what the tabs show (``Reported``)."""
    options = options._replace(no_progress=True)
    source = EventSource(captures, options, Reporter.NEEDS, screen=False)
    reporter = Reporter(source.topic_name, examiners_of(source.plugins), source.clusters, source.names)
    source.read(CallingSink(reporter.exchange, reporter.add))
    report = reporter.report("", source.files)
    names = source.names
    send(
        Reported(
            replace(
                report,
                findings=tuple(_plain(finding_with_names(one, names)) for one in report.findings),
                stats=tuple((by, tuple(row_with_names(row, names) for row in rows)) for by, rows in report.stats),
                topics=tuple(topic_with_names(one, names) for one in report.topics),
            )
        )
    )


def _plain(finding: Finding) -> Finding:
    """A finding without what only its judges need, and no other process can be sent."""
    return finding._replace(explains={}, symptoms=tuple(map(_plain, finding.symptoms)))


class _Rows:
    """Gives ``take`` the exchanges of some rows, which are 32 bits each."""

    def __init__(self, rows: bytes, take: Callable[[Exchange], None]) -> None:
        self._wanted: Collection[int] = frozenset(array("I", rows))
        self._take = take
        self._seen = 0

    def add(self, exchange: Exchange) -> None:
        if self._seen in self._wanted:
            self._take(exchange)
        self._seen += 1


def save_exchanges(send: Send, captures: Sequence[str], options: ReadOptions, rows: bytes, path: str) -> None:
    """Writes the exchanges of some rows to a file as JSON Lines, and sends how many (``Saved``)."""
    source = source_of(captures, options, Needs("records", text=json_text))
    check_target(source.files, path)
    with Output(path) as out:
        writer = WRITERS["jsonl"](out.stream, source.files)
        source.read(CallingSink(_Rows(rows, writer.write).add))
        writer.close()
    send(Saved(path, count(len(array("I", rows)), "exchange")))


def save_packets(send: Send, captures: Sequence[str], options: ReadOptions, rows: bytes, path: str) -> None:
    """Writes the packets of the exchanges of some rows as ``read -w`` does, and sends how many (``Saved``)."""
    output = PacketOutput(captures, options._replace(no_progress=True), path)
    output.source.read(CallingSink(_Rows(rows, output.take).add))
    send(Saved(path, output.write()))
