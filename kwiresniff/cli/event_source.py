"""From captures to the events a command works on: filtered, cut to a time, limited, redacted, counted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice

from kwiresniff.analysis.cluster_evidence import learn_cluster
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
from kwiresniff.identity.clusters import Clusters
from kwiresniff.identity.held_events import HeldEvents
from kwiresniff.model import Event, Exchange, Segment, SegmentSink, Sink, feed_of
from kwiresniff.plugins import Plugins
from kwiresniff.plugins.loading import load_plugins
from kwiresniff.plugins.sinks import DecodingSink
from kwiresniff.reading import Reading


def _redactor(options: ReadOptions) -> Redactor | None:
    if not options.redact and options.redact_key is None and options.redact_key_file is None:
        return None
    return Redactor(redact_key(options.redact_key_file, options.redact_key))


class EventSource:
    """One pass over the captures, or over a source of segments that is open already.

    Mistakes in the command line or the files are raised here, before anything is printed. Call ``read`` once; the
    counts are final when it returns. ``captures`` are read, ``files`` are the capture files in reading order, ``names``
    the names of addresses, ``analyzer`` gives the events, ``topic_name`` the names of topic ids seen so far.

    ``needs`` are those of the command; options may raise them. With ``screen`` the command prints exchange by exchange,
    where a progress bar would be in the way. With ``all_views`` a connection that is in the captures more than once is
    given more than once. With ``payloads`` records are decoded for value decoders of plugins. ``witness`` is called
    with every event before the filter, ``on_event`` with every event behind it, ``on_buffer`` before more is read.
    With ``wait``, captures that grow are followed (see ``CaptureSet``). ``clusters`` are learned from all exchanges
    where the command needs them; events wait for that (``identity.held_events``).
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
        wait: Callable[[], None] | None = None,
    ) -> None:
        self._wait = wait
        self.options = options
        decompress_always(options.max_decompressed)
        self.names = names or AddressNames()
        if options.hosts is not None:
            read_hosts_file(options.hosts, self.names)
        self.plugins = plugins or load_plugins(options.plugin, options.plugin_options)
        if options.strict:  # a problem counts wherever it is, whatever the command looks at
            needs = needs._replace(depth="records")
        if payloads and self.plugins.decoders:
            needs |= Needs("records")
        self._window = TimeWindow(options)
        self._reading = Reading(
            needs,
            self.plugins,
            options.filter,
            holds=self._window.holds if self._window.bounded else None,
            names=self.names,
            redactor=_redactor(options),
            observe=witness,
        )
        self.needs, self.redactor = self._reading.needs, self._reading.redactor
        self.topic_name = self._reading.topic_name
        self.captures: SegmentSource = (
            with_decryption(self._opened(captures), options.keylog, options.tls_engine)
            if isinstance(captures, Sequence)
            else captures
        )
        self.files = self.captures.files
        self.analyzer = self._reading.start(
            self.captures.tls_secrets, show_secrets=options.show_secrets, ports=options.port
        )
        if options.topics is not None:
            self.analyzer.topics.add(read_topic_file(options.topics))
        self._screen = screen
        self._all_views = all_views
        keep_freed_memory()
        self.on_event: Callable[[Event], None] | None = None
        self.on_buffer: Callable[[], None] | None = None
        self._limited: Limited | None = None
        self.clusters = Clusters()
        self._held: HeldEvents | None = None
        self._chain(Sink())  # for counts before anything is read

    def _opened(self, captures: Sequence[str]) -> CaptureSet:
        """The captures, whose names of addresses are known already if the filter asks for names."""
        found = open_captures(
            captures, stdin=sys.stdin.buffer, decode_as=self.options.decode_as, names=self.names, wait=self._wait
        )
        if self._reading.filter is not None and self._reading.filter.asked_names:
            found.read_names()
        return found

    @property
    def names_not_found(self) -> list[str]:
        """Names in the filter that no address has, as far as has been read."""
        asked = () if self._reading.filter is None else self._reading.filter.asked_names
        return [name for name in asked if not self.names.knows(name)]

    @property
    def live(self) -> bool:
        """Whether the input has no known end: a network or a pipe."""
        return self.captures.total_bytes is None

    @property
    def exchanges(self) -> int:
        """Exchanges found so far, wanted or not."""
        return self._reading.asked if self._reading.narrows else self._entry.exchanges

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

    def read(self, sink: Sink, stop: Callable[[], None] | None = None) -> bool:
        """Gives ``sink`` the exchanges that are wanted, ended connections and problems; with a filter, only the
        connections it let through. Returns False when the user interrupted it.

        ``stop`` makes the captures end soon; what is still found then is given to the sink, too.
        """
        whole = WholeEvents(self._chain(sink))
        self.analyzer.give_to(whole)
        self.analyzer.pauses = self._limited is not None
        try:
            finished = uninterrupted(self._read, whole, stop)
        finally:
            self.plugins.close()
        self.release()
        return finished

    def release(self) -> None:
        """Gives the sink what waits for its cluster to be known, for callers that cannot wait as long."""
        if self._held is not None:
            self._held.release()

    def _chain(self, sink: Sink) -> CaptureEvents:
        """The sinks in front of the command's own, from the back; see ``Reading.chain``."""
        sink = self._counted = Counted(sink)
        if self.on_event is not None:
            sink = Observed(sink, self.on_event)
        if self.options.limit is not None:
            sink = self._limited = Limited(sink, self.options.limit)
        self._behind_plugins = sink
        sink = self._reading.chain(sink, self.clusters, all_views=self._all_views)
        if self.needs.clusters:
            sink = self._held = HeldEvents(sink, self.clusters, partial(learn_cluster, self.clusters))
        self._entry = CaptureEvents(ServerNames(sink, self.names), self.captures.problems, self.captures.files)
        return self._entry

    def ask_plugins(self, exchange: Exchange) -> None:
        """Has plugins decode and comment on an exchange that was read elsewhere; what they fail at is a problem of it.
        With redaction they are not asked. Schemas in the captures are not known.
        """
        if self.redactor is not None or not self.plugins.loaded:
            return
        DecodingSink(Sink(), self.plugins, self.topic_name, self.clusters).on_exchange(exchange)
        self.plugins.annotate(exchange)
        exchange.problems.extend(self.plugins.take_problems())

    def progress_bar(self) -> Progress:
        """A bar for a reading of all the captures."""
        enabled = not self.options.no_progress
        total = self.captures.total_bytes
        return Progress(total, self.options.color, enabled=enabled, shares_terminal=self._screen)

    def _read(self) -> None:
        bar = self.progress_bar()
        with closing(self.captures), bar as progress:
            for _ in chain(self.analyzer.read(self._feed(progress)), self.analyzer.end()):
                if self._limited is not None and self._limited.full:
                    break
            self.report_problems()

    def report_problems(self) -> None:
        """Gives the sink what was wrong with the capture files and with plugins since, for callers that cannot wait for
        the next event.
        """
        self._entry.report()
        self._reading.report_problems(self._behind_plugins)

    def exit_code(self, code: int = 0) -> int:
        """The exit code of a finished command: ``code``, or 1 when a capture was unreadable or --strict says so."""
        return FAILED if self._counted.unreadable or (self.options.strict and self.problems) else code

    def _feed(self, progress: Progress) -> Callable[[SegmentSink], bool]:
        """A function that feeds the wanted segments to the analyzer, and shows the progress."""
        bounded = self._window.bounded or self.options.packets is not None
        give = feed_of(self._bounded(iter(self.captures))) if bounded else feed_from(self.captures)

        def feed(sink: SegmentSink) -> bool:
            progress.show(self.captures.position())
            if self.on_buffer is not None:
                self.on_buffer()
            return give(sink)

        return feed

    def _bounded(self, segments: Iterator[Segment]) -> Iterable[Segment]:
        """The first packets where no more are wanted."""
        if self.options.packets is not None:
            segments = islice(segments, min(self.options.packets, sys.maxsize))
        return self._window.begun(segments) if self._window.bounded else segments
