"""What ``browse`` has done in processes of their own: reading captures for a filter, the tabs, a file.

All of them read the captures in the same way, so that an exchange has the same number in each: its row in the index.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, Final

from kwiresniff.analysis.doctor import Doctors
from kwiresniff.analysis.filter import Filter, compile_filter
from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.analysis.named import finding_with_names, row_with_names, topic_with_names
from kwiresniff.analysis.report import MAX_FINDINGS, MAX_GROUP_EVENTS, MAX_PROBLEMS, MAX_TOPICS
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.analysis.stats import StatsTable, StatsTables
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.base.needs import Needs
from kwiresniff.browse.messages import Matches, Reported, Saved
from kwiresniff.capture import CaptureSet
from kwiresniff.capture.spooled import is_spool
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.index_job import REPORT_S, Clock, checked_filter, source_of
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.packet_output import PacketOutput
from kwiresniff.cli.plugin_examiners import examiners_of
from kwiresniff.export.encode import json_text
from kwiresniff.export.output import Output
from kwiresniff.export.writers import WRITERS
from kwiresniff.index.background import Send
from kwiresniff.index.exchange_index import number_of
from kwiresniff.model import Event, Exchange, Problem
from kwiresniff.packets.writing import check_target
from kwiresniff.render.format_units import count
from kwiresniff.results.findings import Finding

#: Which part of a processor it may take to make the tabs of a live capture.
REPORT_SHARE: Final = 0.1
#: Rows of a table of statistics: a reader scrolls no further.
MAX_TAB_ROWS: Final = 1_000


class _Numbers:
    """Numbers exchanges: by their rows in the index, which has them in the same order; those of a live capture, whose
    beginning may be gone, by their places in it (``number_of``).
    """

    def __init__(self, captures: Sequence[str]) -> None:
        self._by_place = is_spool(captures[0])
        self.seen = 0

    def next(self, exchange: Exchange) -> int:
        """The number of the exchange behind the last one."""
        self.seen += 1
        return number_of(exchange) if self._by_place else self.seen - 1


def _filter_of(source: EventSource, expression: str) -> Filter:
    """The filter of an expression that can be understood, for what a source gives."""
    topics, files = source.analyzer.topics, source.captures
    wanted = compile_filter(expression, source.topic_name, lambda: topics.changes, source.names)
    if wanted.asked_names and isinstance(files, CaptureSet):
        files.read_names()
    return wanted


def filter_captures(send: Send, captures: Sequence[str], options: ReadOptions, expression: str) -> None:
    """Reads the captures and sends the numbers of the exchanges that match an expression (``Matches``)."""
    found, numbers, clock = array("q"), _Numbers(captures), Clock()

    def send_part(*, done: bool = False) -> None:
        if done or (clock.is_time() and (found or not is_spool(captures[0]))):
            send(Matches(found.tobytes(), numbers.seen, done))
            del found[:]

    def wait() -> None:
        source.analyzer.look_for_secrets()
        send_part()

    def add(exchange: Exchange) -> None:
        number = numbers.next(exchange)
        if wanted.matches(exchange):
            found.append(number)

    source = source_of(captures, options, checked_filter(expression).needs, wait)
    wanted = _filter_of(source, expression)
    source.on_buffer = send_part
    source.read(CallingSink(add))
    send_part(done=True)


class _Tabs:
    """What the tabs count: findings of all exchanges, the rest of those that ``wanted`` lets through."""

    NEEDS: ClassVar[Needs] = Doctors.NEEDS | GroupTimeline.NEEDS | TopicTraffic.NEEDS

    def __init__(self, source: EventSource, by: Sequence[Sequence[str]], wanted: Filter | None) -> None:
        clusters, topic_name = source.clusters, source.topic_name
        self._source = source
        self._wanted = wanted
        self._doctor = Doctors(topic_name, examiners_of(source.plugins), clusters)
        self._tables = [StatsTable(names, topic_name) for names in by]
        self._stats = StatsTables(self._tables)
        self._timeline = GroupTimeline(topic_name, clusters)
        self._topics = TopicTraffic(topic_name, clusters)
        self._problems: list[Problem] = []
        self.changed = False

    def exchange(self, exchange: Exchange) -> None:
        """An exchange."""
        self.changed = True
        self._doctor.exchange(exchange)
        if self._wanted is None or self._wanted.matches(exchange):
            self._stats.add(exchange)
            self._timeline.add(exchange)
            self._topics.exchange(exchange)

    def other(self, event: Event) -> None:
        """An ended connection, an attempt at one, or a problem."""
        self.changed = True
        self._doctor.add(event)
        if isinstance(event, Problem) and len(self._problems) < MAX_PROBLEMS:
            self._problems.append(event)

    def reported(self, expression: str, *, done: bool) -> Reported:
        """What the tabs show now."""
        self.changed = False
        names = self._source.names
        stats = {
            "+".join(one.by): tuple(row_with_names(row, names) for row in one.rows()[:MAX_TAB_ROWS])
            for one in self._tables
        }
        return Reported(
            expression,
            tuple(self._source.files),
            tuple(_plain(finding_with_names(one, names)) for one in self._doctor.findings()[:MAX_FINDINGS]),
            stats,
            tuple(topic_with_names(one, names) for one in self._topics.topics()[:MAX_TOPICS]),
            tuple(self._timeline.events()[:MAX_GROUP_EVENTS]),
            tuple(self._problems),
            done,
        )


def report_captures(
    send: Send, captures: Sequence[str], options: ReadOptions, by: Sequence[Sequence[str]], expression: str
) -> None:
    """Reads the captures and sends what the tabs show (``Reported``), of a live capture again and again. ``by`` are the
    dimensions of the statistics.
    """
    clock, is_told = Clock(REPORT_S), False

    def wait() -> None:
        source.analyzer.look_for_secrets()
        tabs.changed = tabs.changed or not is_told  # that there is nothing yet is told, too
        on_buffer()

    def on_buffer() -> None:
        nonlocal is_told
        if not is_live or not clock.is_due():
            return
        began = time.process_time()
        source.release()
        if tabs.changed:
            source.analyzer.end_attempts()
            send(tabs.reported(expression, done=False))
            is_told = True
            clock.rest((time.process_time() - began) / REPORT_SHARE)

    is_live = is_spool(captures[0])
    needs = _Tabs.NEEDS | checked_filter(expression).needs if expression else _Tabs.NEEDS
    source = EventSource(captures, options._replace(no_progress=True), needs, screen=False, wait=wait)
    tabs = _Tabs(source, by, _filter_of(source, expression) if expression else None)
    source.on_buffer = on_buffer
    source.read(CallingSink(tabs.exchange, tabs.other))
    send(tabs.reported(expression, done=True))


def _plain(finding: Finding) -> Finding:
    """A finding without what only its judges need, and no other process can be sent."""
    return finding._replace(explains={}, symptoms=tuple(map(_plain, finding.symptoms)))


class _Chosen:
    """Gives ``take`` the exchanges with some numbers, which are 64 bits each; counts them."""

    def __init__(self, captures: Sequence[str], numbers: bytes, take: Callable[[Exchange], None]) -> None:
        self._wanted: Collection[int] = frozenset(array("q", numbers))
        self._take = take
        self._numbers = _Numbers(captures)
        self.count = 0

    def add(self, exchange: Exchange) -> None:
        if self._numbers.next(exchange) in self._wanted:
            self.count += 1
            self._take(exchange)


def save_exchanges(send: Send, captures: Sequence[str], options: ReadOptions, numbers: bytes, path: str) -> None:
    """Writes the exchanges with some numbers to a file as JSON Lines, and sends how many (``Saved``)."""
    source = source_of(captures, options, Needs("records", text=json_text))
    check_target(source.files, path)
    with Output(path, private=True) as out:
        writer = WRITERS["jsonl"](out.stream, source.files)
        chosen = _Chosen(captures, numbers, writer.write)
        source.read(CallingSink(chosen.add))
        writer.close()
    send(Saved(path, count(chosen.count, "exchange")))


def save_packets(send: Send, captures: Sequence[str], options: ReadOptions, numbers: bytes, path: str) -> None:
    """Writes the packets of the exchanges with some numbers as ``read -w`` does, and sends how many (``Saved``)."""
    output = PacketOutput(captures, options._replace(no_progress=True), path)
    output.source.read(CallingSink(_Chosen(captures, numbers, output.take).add))
    send(Saved(path, output.write()))
