"""From captures to the events a command works on: filtered, cut to a time, limited, redacted, counted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from kwiresniff.analysis.body_entities import record_sets
from kwiresniff.analysis.filter import compile_filter
from kwiresniff.analysis.redact import Redactor
from kwiresniff.analysis.sinks import CaptureEvents, Counted, Limited, Observed, WholeEvents
from kwiresniff.analysis.sinks import chain as chosen
from kwiresniff.base.depths import DEPTHS, Depth
from kwiresniff.base.process_memory import keep_freed_memory
from kwiresniff.capture import CaptureSet, SegmentSource, open_captures, with_decryption
from kwiresniff.capture.topic_file import read_topic_file
from kwiresniff.cli.interrupts import uninterrupted
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.outcomes import FAILED
from kwiresniff.cli.plugin_loading import load_plugins
from kwiresniff.cli.progress import Progress
from kwiresniff.cli.redact_key import redact_key
from kwiresniff.cli.time_window import TimeWindow
from kwiresniff.codec.record_limits import decompress_always
from kwiresniff.model import (
    Connection,
    Event,
    Exchange,
    ForwardingSink,
    Problem,
    Segment,
    SegmentSink,
    Sink,
    TopicNames,
    feed_of,
)
from kwiresniff.plugins import Plugins
from kwiresniff.session import Analyzer
from kwiresniff.session.topic_ids import NAMING_APIS

if TYPE_CHECKING:
    from kwiresniff.analysis.filter import Filter
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


class PluginSink(ForwardingSink):
    """Has plugins comment on exchanges and decode records, and passes on what went wrong with them.

    ``decode`` says whether records are decoded: where they are redacted, plugins would see hashes.
    """

    def __init__(self, next: Sink, plugins: Plugins, topic_name: TopicNames, *, decode: bool) -> None:
        super().__init__(next)
        self._plugins = plugins
        self._topic_name = topic_name
        self._decode = decode and bool(plugins.decoders)

    def on_exchange(self, exchange: Exchange) -> None:
        self._plugins.annotate(exchange)
        for message in (exchange.request, exchange.response) if self._decode else ():
            if message is not None and message.body is not None:
                for topic, _, batches in record_sets(message.body, self._topic_name):
                    self._plugins.decode_records(topic, batches)
        self.next.on_exchange(exchange)
        self.report()

    def on_connection(self, connection: Connection) -> None:
        self.next.on_connection(connection)
        self.report()

    def report(self) -> None:
        """Passes on what went wrong with plugins since."""
        for problem in self._plugins.take_problems():
            self.next.on_problem(problem)


class EventSource:
    """One pass over the captures, or over a source of segments that is open already.

    Everything that can be wrong with the command line or the files is raised here, before anything is printed.
    Call ``read`` once; the counts are final when it returns. ``exchanges`` counts what was found, ``shown`` what
    came through the filter and the limits, ``problems`` everything that was wrong, inside exchanges too.
    ``encrypted`` counts the TLS connections that could not be looked into.
    ``topics`` has the topic of each exchange collected even when bodies are not decoded. ``screen`` says that the
    command prints exchange by exchange, so that a progress bar on the same terminal would be in the way.
    ``on_event``, when it is set, gets every event before the sink of ``read`` does. ``encode`` gives the JSON text of a
    value, for a command that writes JSON and needs bodies for nothing else: they may come as text then, if no option
    looks into them. With ``attempts`` connections that were refused or not answered are events, too; with ``sessions``
    fetches have the content of their fetch sessions. ``digests`` says that the command asks little of most bodies,
    or of those of these APIs, which need not be decoded before it asks for more. With ``all_views`` a connection that
    is in the captures more than once is given more than once, for a command that shows what is there.
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
        all_views: bool = False,
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
        self._all_views = all_views
        keep_freed_memory()
        self.on_event: Callable[[Event], None] | None = None
        self._looked_at = 0  # by the exchange filter
        self._narrowed = narrowed
        self._limited: Limited | None = None
        self._plugin_sink: PluginSink | None = None
        self._chain(Sink())

    @property
    def live(self) -> bool:
        """Whether the input has no known end: a network or a pipe."""
        return self._captures.total_bytes is None

    @property
    def exchanges(self) -> int:
        """Exchanges found so far, wanted or not."""
        return self._looked_at if self._narrowed else self._entry.exchanges

    @property
    def shown(self) -> int:
        """Exchanges that came through the filter and the limits so far."""
        return self._counted.exchanges

    @property
    def problems(self) -> int:
        """Everything that was wrong so far, inside exchanges too."""
        return self._counted.problems

    @property
    def encrypted(self) -> int:
        """TLS connections that could not be looked into."""
        return self._entry.encrypted

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

    def read(self, sink: Sink, stop: Callable[[], None] | None = None) -> bool:
        """Gives ``sink`` the exchanges that are wanted, ended connections and problems; with a filter, only the
        connections it let through. Returns False when the user interrupted it.

        ``stop`` makes the captures end soon; what is still found then is given to the sink, too.
        """
        whole = WholeEvents(self._chain(sink))
        self._analyzer.give_to(whole)
        self._analyzer.pauses = self._limited is not None
        return uninterrupted(self._read, whole, stop)

    def _chain(self, sink: Sink) -> CaptureEvents:
        """The sinks in front of the command's own, from the back; see ``kwiresniff.analysis.sinks.chain``."""
        sink = self._counted = Counted(sink)
        if self.on_event is not None:
            sink = Observed(sink, self.on_event)
        if self.options.limit is not None:
            sink = self._limited = Limited(sink, self.options.limit)
        if self.plugins.loaded:
            sink = self._plugin_sink = PluginSink(sink, self.plugins, self.topic_name, decode=self.redactor is None)
        matches = self._matches if self._narrowed else None
        sink = chosen(sink, matches=matches, redactor=self.redactor, all_views=self._all_views)
        self._entry = CaptureEvents(sink, self._captures.problems, self._captures.files)
        return self._entry

    def _read(self) -> None:
        bar = Progress(
            self._captures, self.options.color, enabled=not self.options.no_progress, shares_terminal=self._screen
        )
        with closing(self._captures), bar as progress:
            for _ in chain(self._analyzer.read(self._feed(progress)), self._analyzer.end()):
                if self._limited is not None and self._limited.full:
                    break
            self.report_problems()

    def report_problems(self) -> None:
        """Gives the sink what was wrong with the capture files and with plugins since, for callers that cannot wait for
        the next event.
        """
        self._entry.report()
        if self._plugin_sink is not None:
            self._plugin_sink.report()

    def late_problems(self) -> Iterator[Problem]:
        """What went wrong in plugins since the last event, as when ``doctor`` asks them for what they have found."""
        found = self.plugins.take_problems()
        self._counted.problems += len(found)
        yield from found

    def exit_code(self, code: int = 0) -> int:
        """The exit code of a finished command: ``code``, or 1 when a capture was unreadable or --strict says so."""
        return FAILED if self._counted.unreadable or (self.options.strict and self.problems) else code

    def _feed(self, progress: Progress) -> Callable[[SegmentSink], bool]:
        """What feeds the segments that are wanted to the analyzer, and shows how far it has come."""
        captures = self._captures
        whole = isinstance(captures, CaptureSet) and not self._window.bounded and self.options.packets is None
        give = captures.feed if whole and isinstance(captures, CaptureSet) else feed_of(self._bounded(iter(captures)))

        def feed(sink: SegmentSink) -> bool:
            progress.poll()
            return give(sink)

        return feed

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
        self._looked_at += 1
        wanted: bool | None = self._window.holds(exchange)
        if wanted and self._filter is not None:
            wanted = self._filter.matches_header(exchange)
        return None if wanted is False and exchange.api_key in NAMING_APIS else wanted

    def _matches(self, exchange: Exchange) -> bool:
        return self._window.holds(exchange) and (self._filter is None or self._filter.matches(exchange))
