"""What ``browse`` has done in processes of their own: reading captures for the index, a filter, the tabs, a file.

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
from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.needs import Needs
from kwiresniff.browse.messages import Matches, Reported, Saved
from kwiresniff.capture import CaptureSet
from kwiresniff.capture.spooled import is_spool
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.kept_index import KeptIndex
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.packet_output import PacketOutput
from kwiresniff.cli.plugin_examiners import examiners_of
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.export.encode import json_text
from kwiresniff.export.output import Output
from kwiresniff.export.writers import WRITERS
from kwiresniff.index import Indexed, IndexSink
from kwiresniff.index.background import Send
from kwiresniff.index.exchange_index import number_of
from kwiresniff.model import Event, Exchange, Problem
from kwiresniff.packets.writing import check_target
from kwiresniff.render.format_units import count
from kwiresniff.render.problems import problem_line
from kwiresniff.results.findings import Finding

#: Seconds between two messages: what is shown moves on so often.
SEND_S: Final = 0.25
#: Seconds between two states of the tabs of a live capture, and which part of a processor it may take to make them.
REPORT_S: Final = 1.0
REPORT_SHARE: Final = 0.1
#: Rows of a table of statistics: a reader scrolls no further.
MAX_TAB_ROWS: Final = 1_000


def source_of(
    captures: Sequence[str], options: ReadOptions, needs: Needs, wait: Callable[[], None] | None = None
) -> EventSource:
    """The captures as every one of these processes reads them; with ``wait``, those that grow are followed."""
    return EventSource(captures, options._replace(no_progress=True), needs, all_views=True, wait=wait)


def checked_filter(expression: str) -> Filter:
    """A filter that can be understood, whatever the captures call their addresses; raises FilterError."""
    return compile_filter(expression, names=AddressNames())


class _Clock:
    """Tells when it is time to send."""

    def __init__(self, seconds: float = SEND_S) -> None:
        self._seconds = seconds
        self._next = time.monotonic()

    def is_due(self) -> bool:
        """Whether it is time, and will be until the clock rests."""
        return time.monotonic() >= self._next

    def is_time(self) -> bool:
        """The same; then it is not for a while."""
        if not self.is_due():
            return False
        self.rest(self._seconds)
        return True

    def rest(self, seconds: float) -> None:
        """It is not time before so long."""
        self._next = time.monotonic() + max(seconds, self._seconds)


def index_captures(send: Send, captures: Sequence[str], options: ReadOptions, *, keeps: bool = False) -> None:
    """Reads the captures once, or their kept index, and sends it part by part (``Indexed``). With ``keeps`` it is
    written beside them.
    """
    in_flight, asked = (0, 0), _Clock(REPORT_S)

    def wait() -> None:
        source.analyzer.look_for_secrets()
        on_buffer()

    source = source_of(captures, options, IndexSink.NEEDS, wait)
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
        message = Indexed(sink.take(), places, names, fraction, tuple(problems), source.problems, done, in_flight)
        kept.add(message)
        send(message._replace(problems=(*kept.told, *problems)) if done else message)

    def on_buffer() -> None:
        nonlocal in_flight
        before = in_flight
        if is_live and asked.is_time():
            in_flight = source.analyzer.in_flight()
        if (sink.waiting or in_flight != before) and clock.is_time():
            send_part()

    is_live = is_spool(captures[0])
    kept = KeptIndex(source, keeps=keeps)
    if not is_live and kept.send(send):
        return
    source.on_buffer = on_buffer
    if not source.read(sink) or source.exit_code():
        kept.give_up("the captures could not be read to their end")
    send_part(done=True)


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


def filter_captures(send: Send, captures: Sequence[str], options: ReadOptions, expression: str) -> None:
    """Reads the captures and sends the numbers of the exchanges that match an expression (``Matches``)."""
    found, numbers, clock = array("q"), _Numbers(captures), _Clock()

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
    topics, files = source.analyzer.topics, source.captures
    wanted = compile_filter(expression, source.topic_name, lambda: topics.changes, source.names)
    if wanted.asked_names and isinstance(files, CaptureSet):
        files.read_names()
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
    clock, is_told = _Clock(REPORT_S), False

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
    wanted = checked_filter(expression) if expression else None
    needs = _Tabs.NEEDS if wanted is None else _Tabs.NEEDS | wanted.needs
    source = EventSource(captures, options._replace(no_progress=True), needs, screen=False, wait=wait)
    if wanted is not None:
        topics, files = source.analyzer.topics, source.captures
        wanted = compile_filter(expression, source.topic_name, lambda: topics.changes, source.names)
        if wanted.asked_names and isinstance(files, CaptureSet):
            files.read_names()
    tabs = _Tabs(source, by, wanted)
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
