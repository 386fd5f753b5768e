"""From captures to the events a command works on: filtered, cut to a time, limited, redacted, counted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from kwiresniff.analysis.body_entities import record_sets
from kwiresniff.analysis.filter import compile_filter
from kwiresniff.analysis.redact import Redactor
from kwiresniff.base.depths import DEPTHS, Depth
from kwiresniff.base.process_memory import keep_freed_memory
from kwiresniff.capture import CaptureSet, SegmentSource, open_captures, with_decryption
from kwiresniff.capture.topic_file import read_topic_file
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.outcomes import FAILED
from kwiresniff.cli.plugin_loading import load_plugins
from kwiresniff.cli.problem_count import ProblemCount
from kwiresniff.cli.progress import Progress
from kwiresniff.cli.redact_key import redact_key
from kwiresniff.cli.time_window import TimeWindow
from kwiresniff.codec.record_limits import decompress_always
from kwiresniff.model import (
    Connection,
    Event,
    Exchange,
    Problem,
    Segment,
    SegmentSink,
    TopicNames,
    file_index,
)
from kwiresniff.session import Analyzer
from kwiresniff.session.topic_ids import NAMING_APIS

if TYPE_CHECKING:
    from kwiresniff.analysis.filter import Filter
    from kwiresniff.analysis.intake import Intake
    from kwiresniff.analysis.redact import Redactor

#: What a filter may ask for of the fetch session that an exchange belongs to.
OF_SESSIONS = frozenset({"topic", "partition"})


# Both are imported when they are asked for: together they are a tenth of the start-up.
def _filter(options: ReadOptions, topic_name: TopicNames, names_known: Callable[[], int]) -> Filter | None:
    if options.filter is None:
        return None
    return compile_filter(options.filter, topic_name, names_known)


def _redactor(options: ReadOptions) -> Redactor | None:
    if not options.redact and options.redact_key is None and options.redact_key_file is None:
        return None
    return Redactor(redact_key(options.redact_key_file, options.redact_key))


class EventSource:
    """One pass over the captures, or over a source of segments that is open already.

    Everything that can be wrong with the command line or the files is raised here, before anything is printed.
    Iterate ``events`` once; the counts are final when it ends. ``exchanges`` counts what was found, ``shown`` what
    came through the filter and the limits, ``problems`` everything that was wrong, inside exchanges too.
    ``encrypted`` counts the TLS connections that could not be looked into.
    ``topics`` has the topic of each exchange collected even when bodies are not decoded. ``screen`` says that the
    command prints exchange by exchange, so that a progress bar on the same terminal would be in the way.
    ``on_event``, when it is set, gets every event before ``events`` gives it. ``encode`` gives the JSON text of a
    value, for a command that writes JSON and needs bodies for nothing else: they may come as text then, if no option
    looks into them. With ``attempts`` connections that were refused or not answered are events, too; with ``sessions``
    fetches have the content of their fetch sessions. ``digests`` says that the command asks little of most bodies,
    or of those of these APIs, which need not be decoded before it asks for more.
    """

    def __init__(
        self,
        captures: Sequence[str] | SegmentSource,
        options: ReadOptions,
        depth: Depth,
        *,
        topics: bool = False,
        screen: bool = True,
        encode: Callable[[Any], bytes] | None = None,
        attempts: bool = False,
        sessions: bool = False,
        trees: bool = False,
        digests: bool | Collection[int] = False,
    ) -> None:
        self.options = options
        decompress_always(options.max_decompressed)
        self._filter = _filter(options, self.topic_name, lambda: self._analyzer.topics.changes)
        self.redactor = _redactor(options)
        self.plugins = load_plugins(options.plugin)
        needed: list[Depth] = [depth]
        if self._filter is not None:
            needed.append(self._filter.depth)
        if options.strict:  # a problem counts wherever it is, whatever the command looks at
            needed.append("records")
        self.depth = max(needed, key=DEPTHS.index)
        self._captures: SegmentSource = (
            with_decryption(
                open_captures(captures, stdin=sys.stdin.buffer, decode_as=options.decode_as), options.keylog
            )
            if isinstance(captures, Sequence)
            else captures
        )
        self._window = TimeWindow(options)
        narrowed = self._filter is not None or self._window.bounded
        looks_into_bodies = self._filter is not None or self.redactor is not None or bool(self.plugins.loaded)
        self._analyzer = Analyzer(
            self.depth,
            topics=topics and self.depth in ("headers", "errors"),
            exchange_filter=self._exchange_filter if narrowed else None,
            show_secrets=options.show_secrets,
            ports=options.port,
            encode=None if looks_into_bodies else encode,
            attempts=attempts and self._filter is None,
            sessions=sessions or topics or (self._filter is not None and bool(self._filter.field_names & OF_SESSIONS)),
            trees=trees and not looks_into_bodies,
            digests=digests if self.redactor is None and not self.plugins.loaded else False,
        )
        if options.topics is not None:
            self._analyzer.topics.add(read_topic_file(options.topics))
        self._screen = screen
        keep_freed_memory()
        self.exchanges = 0
        self.shown = 0
        self.encrypted = 0
        self._problems = ProblemCount(self._captures.problems)
        self.on_event: Callable[[Event], None] | None = None
        self._intake: Intake | None = None

    @property
    def live(self) -> bool:
        """Whether the input has no known end: a network or a pipe."""
        return self._captures.total_bytes is None

    @property
    def problems(self) -> int:
        """Everything that was wrong so far, inside exchanges too."""
        return self._problems.found

    @property
    def files(self) -> list[str]:
        """The capture files in reading order."""
        return self._captures.files

    @property
    def packets(self) -> int:
        """Packets read so far, of all kinds."""
        return self._captures.packets

    @property
    def other_packets(self) -> dict[str, int]:
        """Packets that carry no TCP, by what they are."""
        return self._captures.other_packets

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer that the events come from; it knows the topics' names."""
        return self._analyzer

    def topic_name(self, topic_id: str) -> str | None:
        """The name of a topic id, as far as the captures have shown it."""
        return self._analyzer.topics.name(topic_id)

    def hand_over(self, intake: Intake, *, shows: bool = False, report: Callable[[Event], None] | None = None) -> None:
        """Have exchanges taken there instead of being among ``events``, when nothing else needs to look at them.

        What it ``shows`` has the names that are known when it would have been the next event. All other events go to
        ``report``, where it is given, but those of the end.
        """
        options, captures = self.options, self._captures
        looks = (options.since, options.until, options.limit, self.redactor, self.on_event)
        if any(one is not None for one in looks) or self.plugins.loaded or options.strict:
            return
        if isinstance(captures, CaptureSet):
            self._intake = intake
            intake.follow(captures.problems)
            intake.matches = self._filter.matches if self._filter is not None else None
            if report is not None:
                intake.report = self._reporter(report, intake.connections if self._filter is not None else None)
            if shows:
                self._analyzer.show(intake)
            else:
                self._analyzer.count(intake)

    def events(self) -> Iterator[Event]:
        """Exchanges that are wanted, ended connections, problems. With a filter, only connections it let through."""
        if self.on_event is None:
            return self._events()
        return self._observed(self.on_event)

    def _observed(self, on_event: Callable[[Event], None]) -> Iterator[Event]:
        for event in self._events():
            on_event(event)
            yield event

    def _events(self) -> Iterator[Event]:
        limit = self.options.limit
        narrowed = self._filter is not None or self._window.bounded
        finished = bool(self.plugins.annotators or self.plugins.decoders) or self.redactor is not None
        connections: set[int] = self._intake.connections if self._intake is not None else set()
        bar = Progress(
            self._captures, self.options.color, enabled=not self.options.no_progress, shares_terminal=self._screen
        )
        with closing(self._captures), self._counted(), bar as progress:
            for event in self._analyzed(progress):
                progress.step()
                if event.__class__ is Exchange:
                    if narrowed:
                        if not (self._window.holds(event) and self._matches(event)):
                            continue
                        connections.add(event.connection.id)
                    else:
                        self.exchanges += 1  # the others when they are asked for
                    if finished:
                        self._finish(event)
                    if event.problems:
                        self._problems.found += len(event.problems)
                    yield event
                    self.shown += 1
                    if self.shown == limit:
                        break
                elif (other := self._other(event, connections if narrowed else None)) is not None:
                    yield other
                if self.plugins.loaded:
                    yield from self._problems.counted(self.plugins.take_problems())
                if self._problems.waiting:
                    yield from self.new_problems()
            yield from self.new_problems()
            yield from self._problems.counted(self.plugins.take_problems())

    def _reporter(self, report: Callable[[Event], None], connections: set[int] | None) -> Callable[[Event], None]:
        """What gives an event that is no exchange to ``report``, if it is wanted; ``connections`` as in ``_other``."""

        def give(event: Event) -> None:
            other = self._other(event, connections)
            if other is not None:
                report(other)

        return give

    def _other(self, event: Event, connections: set[int] | None) -> Event | None:
        """An event that is no exchange, as it is given; None for a connection that is none of the ``connections``, if
        only those are wanted.
        """
        if isinstance(event, Problem):
            self._problems.found += 1
            return event if len(self._captures.files) < 2 else self._placed(event)
        if isinstance(event, Connection):
            if event.protocol == "tls" and event.tls is not None and not event.tls["decrypted"]:
                self.encrypted += 1
            if connections is not None and event.id not in connections:
                return None
        return event

    def new_problems(self) -> Iterator[Problem]:
        """Problems of the capture files not given yet, for callers that cannot wait for the next event."""
        found = self._problems.new()
        if self._intake is not None:
            self._intake.reported = self._problems.given
        return found

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Keeps the counts right whatever ends the reading."""
        try:
            yield
        finally:
            if self._intake is not None:
                if self._filter is None:  # with one, all that came were counted
                    self.exchanges += self._intake.exchanges
                self.shown += self._intake.exchanges
                self._problems.found += self._intake.problems

    def _placed(self, problem: Problem) -> Problem:
        """Says the file that a problem is in."""
        if problem.packet is None or "file" in (problem.details or {}):
            return problem
        file = self.files[file_index(problem.packet)]
        return problem._replace(details={**(problem.details or {}), "file": file})

    def late_problems(self) -> Iterator[Problem]:
        """What went wrong in plugins since the last event, as when ``doctor`` asks them for what they have found."""
        yield from self._problems.counted(self.plugins.take_problems())

    def exit_code(self, code: int = 0) -> int:
        """The exit code of a finished command: ``code``, or 1 when a capture was unreadable or --strict says so."""
        return FAILED if self._problems.unreadable or (self.options.strict and self.problems) else code

    def _analyzed(self, progress: Progress) -> Iterator[Event]:
        captures = self._captures
        options = self.options
        if self._window.bounded or options.packets is not None or not isinstance(captures, CaptureSet):
            return self._analyzer.analyze(self._bounded(iter(captures)))

        def feed(sink: SegmentSink) -> bool:
            progress.poll()
            return captures.feed(sink)

        return chain(self._analyzer.run_source(feed), self._analyzer.finish())

    def _bounded(self, segments: Iterator[Segment]) -> Iterable[Segment]:
        """The first packets where no more are wanted."""
        if self.options.packets is not None:
            segments = islice(segments, min(self.options.packets, sys.maxsize))
        return self._window.begun(segments) if self._window.bounded else segments

    def _exchange_filter(self, exchange: Exchange) -> bool | None:
        """The exchange filter, called before bodies are decoded; None is a maybe.

        What tells the names of topics is decoded in any case, or those that are shown would go by their ids; so is what
        tells which configs are secrets.
        """
        self.exchanges += 1
        wanted: bool | None = self._window.holds(exchange)
        if wanted and self._filter is not None:
            wanted = self._filter.matches_header(exchange)
        return None if wanted is False and exchange.api_key in NAMING_APIS else wanted

    def _matches(self, exchange: Exchange) -> bool:
        return self._filter is None or self._filter.matches(exchange)

    def _finish(self, exchange: Exchange) -> None:
        """Plugins and redaction, on what will be shown."""
        plugins, redactor = self.plugins, self.redactor
        if redactor is not None:  # first: what plugins say may quote what they see
            redactor.exchange(exchange)
        if plugins.annotators:
            plugins.annotate(exchange)
        if plugins.decoders and redactor is None:
            for message in (exchange.request, exchange.response):
                if message is not None and message.body is not None:
                    for topic, _, batches in record_sets(message.body, self.topic_name):
                        plugins.decode_records(topic, batches)
