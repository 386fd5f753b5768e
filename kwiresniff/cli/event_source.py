"""From captures to the events a command works on: filtered, cut to a time, limited, redacted, counted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from kwiresniff.analysis.cluster_evidence import learn_cluster
from kwiresniff.analysis.filter import compile_filter
from kwiresniff.analysis.redact import Redactor
from kwiresniff.analysis.sinks import CaptureEvents, Counted, Limited, Observed, WholeEvents
from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.needs import Needs
from kwiresniff.base.process_memory import keep_freed_memory
from kwiresniff.capture import CaptureSet, SegmentSource, feed_from, open_captures, with_decryption
from kwiresniff.capture.hosts_file import read_hosts_file
from kwiresniff.capture.topic_file import read_topic_file
from kwiresniff.cli.interrupts import uninterrupted
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.outcomes import FAILED
from kwiresniff.cli.progress import Progress
from kwiresniff.cli.redact_key import redact_key
from kwiresniff.cli.time_window import TimeWindow
from kwiresniff.codec.record_limits import decompress_always
from kwiresniff.identity.addresses import ServerNames
from kwiresniff.identity.clusters import LEARNED_FROM, Clusters
from kwiresniff.identity.held_events import HeldEvents
from kwiresniff.model import (
    Event,
    Exchange,
    Segment,
    SegmentSink,
    Sink,
    TopicNames,
    feed_of,
)
from kwiresniff.plugins import Plugins
from kwiresniff.plugins.loading import load_plugins
from kwiresniff.plugins.sinks import LEARNED_FROM as SCHEMAS_FROM
from kwiresniff.plugins.sinks import chain_with_plugins
from kwiresniff.session import Analyzer

if TYPE_CHECKING:
    from kwiresniff.analysis.filter import Filter
    from kwiresniff.analysis.redact import Redactor


def _filter(
    options: ReadOptions, topic_name: TopicNames, names_known: Callable[[], int], names: AddressNames
) -> Filter | None:
    if options.filter is None:
        return None
    return compile_filter(options.filter, topic_name, names_known, names)


def _redactor(options: ReadOptions) -> Redactor | None:
    if not options.redact and options.redact_key is None and options.redact_key_file is None:
        return None
    return Redactor(redact_key(options.redact_key_file, options.redact_key))


class EventSource:
    """One pass over the captures, or over a source of segments that is open already.

    Everything that can be wrong with the command line or the files is raised here, before anything is printed.
    Call ``read`` once; the counts are final when it returns. ``exchanges`` counts what was found, ``shown`` what
    came through the filter and the limits, ``problems`` everything that was wrong, inside exchanges too.
    ``encrypted`` counts the TLS connections that could not be looked into. ``names`` are those of addresses.
    ``needs`` are the command's; bodies come as text, digests or in part only if no option looks into them. ``screen``
    says that the command prints exchange by exchange, so that a progress bar on the same terminal would be in the way.
    ``on_event``, when it is set, gets every event before the sink of ``read`` does, and ``on_buffer`` is called before
    more is read. ``clusters`` are learned from all
    exchanges, wanted or not, and events wait for that (``identity.held_events``), where the command needs them. With
    ``all_views`` a connection that is in the captures more than once is given more than once, for a command that shows
    what is there. With ``payloads`` it says what plugins find wrong with keys and values, so records are decoded where
    there are value decoders. ``witness`` is called with every event before it is known what is wanted. ``plugins`` are
    those that are loaded already.
    """

    def __init__(
        self,
        captures: Sequence[str] | SegmentSource,
        options: ReadOptions,
        needs: Needs,
        *,
        screen: bool = True,
        all_views: bool = False,
        payloads: bool = False,
        names: AddressNames | None = None,
        witness: Callable[[Event], None] | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        self.options = options
        decompress_always(options.max_decompressed)
        self.names = names or AddressNames()
        if options.hosts is not None:
            read_hosts_file(options.hosts, self.names)
        self._filter = _filter(options, self.topic_name, lambda: self._analyzer.topics.changes, self.names)
        self.redactor = _redactor(options)
        self.plugins = plugins or load_plugins(options.plugin, options.plugin_options)
        self.plugins.hides_values = self.redactor is not None
        if self._filter is not None:
            needs = (needs | self._filter.needs)._replace(attempts=False)
        if options.strict:  # a problem counts wherever it is, whatever the command looks at
            needs = needs._replace(depth="records")
        if payloads and self.plugins.decoders:
            needs |= Needs("records")
        self._decodes = bool(self.plugins.decoders) and needs.depth == "records"
        if self.redactor is not None or self._decodes or self.plugins.others:  # they look into every body
            needs |= Needs(needs.depth)
        self.needs = needs
        self._captures: SegmentSource = (
            with_decryption(self._opened(captures), options.keylog, options.tls_engine)
            if isinstance(captures, Sequence)
            else captures
        )
        self._window = TimeWindow(options)
        narrowed = self._filter is not None or self._window.bounded
        self._analyzer = Analyzer(
            needs,
            exchange_filter=self._exchange_filter if narrowed else None,
            show_secrets=options.show_secrets,
            ports=options.port,
            tls_secrets=self._captures.tls_secrets,
        )
        if options.topics is not None:
            self._analyzer.topics.add(read_topic_file(options.topics))
        self._screen = screen
        self._all_views = all_views
        self._witness = witness
        keep_freed_memory()
        self.on_event: Callable[[Event], None] | None = None
        self.on_buffer: Callable[[], None] | None = None
        self._looked_at = 0  # by the exchange filter
        self._narrowed = narrowed
        self._limited: Limited | None = None
        learns = self._decodes and bool(self.plugins.learners)
        self._always_decoded = (LEARNED_FROM if needs.clusters else frozenset()) | (SCHEMAS_FROM if learns else set())
        self.clusters = Clusters()
        self._held: HeldEvents | None = None
        self._chain(Sink())  # for counts before anything is read

    def _opened(self, captures: Sequence[str]) -> CaptureSet:
        """The captures, whose names of addresses are known already if the filter asks for names."""
        found = open_captures(captures, stdin=sys.stdin.buffer, decode_as=self.options.decode_as, names=self.names)
        if self._filter is not None and self._filter.asked_names:
            found.read_names()
        return found

    @property
    def names_not_found(self) -> list[str]:
        """Names in the filter that no address has, as far as has been read."""
        return [] if self._filter is None else [name for name in self._filter.asked_names if not self.names.knows(name)]

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
    def captures(self) -> SegmentSource:
        """What is read."""
        return self._captures

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
        try:
            finished = uninterrupted(self._read, whole, stop)
        finally:
            self.plugins.close()
        if self._held is not None:
            self._held.release()
        return finished

    def _chain(self, sink: Sink) -> CaptureEvents:
        """The sinks in front of the command's own, from the back; see ``kwiresniff.plugins.sinks``."""
        sink = self._counted = Counted(sink)
        if self.on_event is not None:
            sink = Observed(sink, self.on_event)
        if self.options.limit is not None:
            sink = self._limited = Limited(sink, self.options.limit)
        self._behind_plugins = sink
        sink = chain_with_plugins(
            sink,
            self.plugins,
            self.topic_name,
            clusters=self.clusters,
            decodes=self._decodes,
            decodes_first=self._filter is not None and self._filter.reads_decoded,
            matches=self._matches if self._narrowed else None,
            redactor=self.redactor,
            all_views=self._all_views,
        )
        if self._witness is not None:
            sink = Observed(sink, self._witness)
        if self.needs.clusters:
            sink = self._held = HeldEvents(sink, self.clusters, partial(learn_cluster, self.clusters))
        self._entry = CaptureEvents(ServerNames(sink, self.names), self._captures.problems, self._captures.files)
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
        for problem in self.plugins.take_problems():
            self._behind_plugins.on_problem(problem)

    def exit_code(self, code: int = 0) -> int:
        """The exit code of a finished command: ``code``, or 1 when a capture was unreadable or --strict says so."""
        return FAILED if self._counted.unreadable or (self.options.strict and self.problems) else code

    def _feed(self, progress: Progress) -> Callable[[SegmentSink], bool]:
        """What feeds the segments that are wanted to the analyzer, and shows how far it has come."""
        bounded = self._window.bounded or self.options.packets is not None
        give = feed_of(self._bounded(iter(self._captures))) if bounded else feed_from(self._captures)

        def feed(sink: SegmentSink) -> bool:
            progress.poll()
            if self.on_buffer is not None:
                self.on_buffer()
            return give(sink)

        return feed

    def _bounded(self, segments: Iterator[Segment]) -> Iterable[Segment]:
        """The first packets where no more are wanted."""
        if self.options.packets is not None:
            segments = islice(segments, min(self.options.packets, sys.maxsize))
        return self._window.begun(segments) if self._window.bounded else segments

    def _exchange_filter(self, exchange: Exchange) -> bool | None:
        """The exchange filter, called before bodies are decoded; None is a maybe.

        What tells which brokers are one cluster, or may hold schemas that a plugin learns, is decoded in any case, as
        is everything where there is a witness.
        """
        self._looked_at += 1
        wanted: bool | None = self._window.holds(exchange)
        if wanted and self._filter is not None:
            wanted = self._filter.matches_header(exchange)
        if wanted is False and (self._witness is not None or exchange.api_key in self._always_decoded):
            return None
        return wanted

    def _matches(self, exchange: Exchange) -> bool:
        return self._window.holds(exchange) and (self._filter is None or self._filter.matches(exchange))
