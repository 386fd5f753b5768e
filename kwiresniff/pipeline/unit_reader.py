"""A unit of work to events: the path every command takes, over the files of one source.

What is wrong with a file never stops the others: it becomes a Problem.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kwiresniff.analysis.cluster_evidence import learn_cluster
from kwiresniff.analysis.redact import Redactor
from kwiresniff.analysis.sinks import Observed
from kwiresniff.base.needs import Needs
from kwiresniff.base.tls_secrets import TlsSecrets
from kwiresniff.capture import feed_from, open_captures, with_decryption
from kwiresniff.capture.formats import NotACapture
from kwiresniff.capture.sources import SegmentSource
from kwiresniff.capture.topic_file import read_topic_file
from kwiresniff.codec.record_limits import decompress_always
from kwiresniff.errors import CaptureError, PluginError
from kwiresniff.export.encode import json_text
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Event, EventList, Exchange, Problem, Segment, SegmentSink, Sink, feed_of
from kwiresniff.pipeline.choice import Condition, fits
from kwiresniff.pipeline.deduplication import LeftOut, with_filled, without
from kwiresniff.pipeline.plan import File, WorkUnit, file_at
from kwiresniff.pipeline.rows import Rows
from kwiresniff.pipeline.shards import only_shard
from kwiresniff.pipeline.software import check_software
from kwiresniff.plugins import Plugins
from kwiresniff.plugins.hooks import NO_OPTIONS, PluginOptions
from kwiresniff.plugins.loading import files_of, load_plugins
from kwiresniff.reading import Reading
from kwiresniff.session import Analyzer, Depth, endpoints


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run, equal for all of its units.

    Everything is redacted with one key or nothing is: equal values in captures of different hosts stay equal.
    ``audit_target`` is the release of Kafka that clients are held against. ``keylog`` is a file with TLS keys, under
    a path that every executor sees, ``topics`` one with names of topic ids. ``where`` is a filter expression,
    ``pushed`` what a query wants besides. ``decode_as`` are rules of ``capture.decode_as``, ``max_decompressed`` is
    that of ``codec.record_limits.decompress_always``. ``plugins`` are files of plugins, ``plugin_names`` the names of
    all that must be loaded wherever captures are read, those of installed packages first; ``plugin_options`` are given
    to them.
    ``software`` is what must be installed wherever captures are read, lest one executor understands less than another.
    """

    depth: Depth = "records"
    ports: tuple[int, ...] = ()
    redact_key: str | None = None
    audit_target: str | None = None
    keylog: str | None = None
    where: str | None = None
    pushed: tuple[Condition, ...] = ()
    software: tuple[str, ...] = ()
    topics: File | None = None
    decode_as: tuple[str, ...] = ()
    max_decompressed: int | None = None
    plugins: tuple[File, ...] = ()
    plugin_names: tuple[str, ...] = ()
    plugin_options: PluginOptions = NO_OPTIONS

    def for_tables(self, tables: Collection[str]) -> Settings:
        """The settings to fill some tables with: records are decoded only for those that show them."""
        return self if {"exchanges", "records"}.intersection(tables) else replace(self, depth="bodies")

    def needs(self, *, text: bool = False) -> Needs:
        """What the tables need. With ``text`` bodies may come as JSON text, and their names as digests; without decoded
        records names come as digests, too.
        """
        return Needs(
            self.depth,
            topics=self.depth == "errors",
            sessions=True,
            text=json_text if text else None,
            digests=text or self.depth == "bodies",
            clusters=True,
        )

    def reading(self, *, text: bool = False) -> Reading:
        """The reading of connections, by their ``needs``.

        Raises KwiresniffError where not the same software is installed as where the work was planned.
        """
        check_software(self.software)
        decompress_always(self.max_decompressed)
        redactor = None if self.redact_key is None else Redactor(self.redact_key)
        holds = partial(fits, self.pushed) if self.pushed else None
        return Reading(self.needs(text=text), self.load_plugins(), self.where, holds=holds, redactor=redactor)

    def with_plugins(self, paths: Sequence[str], options: PluginOptions) -> Settings:
        """These settings with the plugins at ``paths`` and those of installed packages. Raises PluginError for what
        cannot be loaded.
        """
        options = options._replace(schemas=tuple(map(_absolute, options.schemas)))
        return replace(
            self,
            plugins=tuple(file_at(str(file)) for path in paths for file in files_of(path)),
            plugin_names=tuple(plugin.name for plugin in load_plugins(paths, options).loaded),
            plugin_options=options,
        )

    def load_plugins(self) -> Plugins:
        """The plugins. Raises PluginError where others are installed than where the work was planned."""
        if not self.plugin_names:
            return Plugins()
        plugins = load_plugins([file.path for file in self.plugins], self.plugin_options)
        names = tuple(plugin.name for plugin in plugins.loaded)
        if names != self.plugin_names:
            here, there = ", ".join(names) or "none", ", ".join(self.plugin_names)
            raise PluginError(f"plugins here: {here}; where the work was planned: {there}; install the same everywhere")
        return plugins

    def name_topics(self, analyzer: Analyzer) -> None:
        """Gives the analyzer the names of topic ids that come from outside."""
        if self.topics is not None:
            analyzer.topics.add(read_topic_file(self.topics.path))


class Pass:
    """One pass over captures. Iterate ``read`` or ``events`` once; ``counts`` are final when that ends.

    ``rows`` makes rows of the events. ``clusters`` are learnt where plugins or tables ask for them.
    """

    rows: Rows

    def __init__(self, settings: Settings, *, text: bool = False) -> None:
        """With ``text`` bodies may come as JSON text."""
        self._settings = settings
        self._reading = settings.reading(text=text)
        self._start()
        self.clusters = Clusters()
        self._problems: list[Problem] = []  # of files that cannot be read
        self._skipped = 0
        self._not_read: list[str] = []

    def _start(self) -> None:
        """Begins with an analyzer that follows no connection yet."""
        self._analyzer = self._reading.start(TlsSecrets(), ports=self._settings.ports)
        self._settings.name_topics(self._analyzer)

    def read(self, sink: Sink) -> Iterator[None]:
        """Gives ``sink`` exchanges, ended connections and problems, and returns to the caller after each buffer."""
        entry = self._reading.chain(sink, self.clusters)
        if self._reading.narrows:  # what the filter leaves out says which brokers are one cluster, too
            entry = Observed(entry, self._learn)
        self._analyzer.give_to(entry)
        return self._steps(entry, sink)

    def _learn(self, event: Event) -> None:
        if isinstance(event, Exchange):
            learn_cluster(self.clusters, event)

    def _steps(self, entry: Sink, sink: Sink) -> Iterator[None]:
        """Reads, and then gives ``sink`` what was wrong with plugins."""
        try:
            yield from self._read(entry)
            self._reading.report_problems(sink)
        finally:
            self._reading.plugins.close()

    def events(self) -> Iterator[Event]:
        """Exchanges, ended connections and problems, one by one."""
        found = EventList()
        steps = self.read(found)
        self._analyzer.pauses = True
        for _ in steps:
            yield from found.take()
        yield from found.take()

    def counts(self) -> dict[str, Any]:
        """The counts of ``counts_of``, how many files are no captures, and which files were not read."""
        raise NotImplementedError

    def _read(self, sink: Sink) -> Iterator[None]:
        raise NotImplementedError

    def _readable(self, files: Iterable[File]) -> list[str]:
        """The paths of those that are captures. Another one is a problem when the user named it, else passed over."""
        good = []
        for file in files:
            try:
                open_captures([file.path]).close()
            except CaptureError as error:
                if isinstance(error, NotACapture) and not file.named:
                    self._skipped += 1
                else:
                    self._problems.append(unreadable(file.path, error))
                self._not_read.append(file.name)
            else:
                good.append(file.path)
        return good


class UnitReader(Pass):
    """One pass over a unit. Iterate ``read``, ``events`` or ``segments`` once; the counts are final when that ends.

    Files, packets, bytes and what is wrong with the files themselves are reported by the first shard of a source alone.
    """

    def __init__(self, unit: WorkUnit, settings: Settings, *, text: bool = False) -> None:
        super().__init__(settings, text=text)
        self._unit = unit
        self._first = unit.shard == 0
        if unit.shards > 1:  # a broker may call a config sensitive on a connection of another shard
            self._analyzer.topics.sensitive_configs.assume_all()
        self._captures = self._open()
        names = {file.path: file.name for file in unit.source.all_files}
        files = [names.get(path, path) for path in self._captures.files] if self._captures is not None else []
        self._others = self._open_others(len(files))
        for other in self._others.values():
            files += [names.get(path, path) for path in other.files]
        self.rows = Rows(unit.source.name, files, self._analyzer.topics.name, unit.shard, unit.shards)

    def counts(self) -> dict[str, Any]:
        if not self._first:
            return {**counts_of(None), "skipped_files": 0, "not_read": []}
        return {**counts_of(self._captures), "skipped_files": self._skipped, "not_read": self._not_read}

    def segments(self) -> Iterator[Segment]:
        """The TCP segments of the connections of this unit."""
        unit = self._unit
        segments = without(only_shard(self._captures or (), unit.shard, unit.shards), unit.source.left_out)
        for name, captures in self._others.items():
            filled = [one for one in unit.source.filled if one.other == name]
            segments = with_filled(segments, only_shard(captures, unit.shard, unit.shards), filled)
        return iter(segments)

    def _read(self, sink: Sink) -> Iterator[None]:
        try:
            yield from self._analyzer.read(self._feed())
        except BaseException:  # a reading that stops in the middle closes the file, too
            if self._captures is not None:
                self._captures.close()
            raise
        yield from self._analyzer.end()
        if self._first:
            found = self._captures.problems if self._captures is not None else ()
            for problem in (*map(_other_end, self._unit.source.left_out), *self._problems, *found):
                sink.on_problem(problem)

    def _feed(self) -> Callable[[SegmentSink], bool]:
        """A function that feeds the segments to the analyzer."""
        unit = self._unit
        if self._captures is None or unit.shards > 1 or unit.source.left_out or self._others:
            return feed_of(self.segments())
        return feed_from(self._captures)

    def _open(self) -> SegmentSource | None:
        good = self._readable(self._unit.source.files)
        if not good:
            return None
        try:
            secrets = self._analyzer.tls_secrets
            captures = open_captures(good, decode_as=self._settings.decode_as, tls_secrets=secrets)
        except CaptureError as error:  # it was there a moment ago
            self._problems.append(unreadable(good[0], error))
            return None
        try:
            return with_decryption(captures, self._settings.keylog)
        except CaptureError as error:  # no key log where this runs
            self._problems.append(Problem("not_decrypted", str(error)))
            return captures

    def _open_others(self, index: int) -> dict[str, SegmentSource]:
        """The captures of other sources that have what is lacking here; the first file is number ``index``."""
        found: dict[str, SegmentSource] = {}
        for other in self._unit.source.others if self._captures is not None else ():
            try:
                paths, rules = [file.path for file in other.files], self._settings.decode_as
                secrets = self._analyzer.tls_secrets
                captures = open_captures(paths, first_index=index, decode_as=rules, tls_secrets=secrets)
                found[other.name] = captures
                index += len(captures.files)
            except CaptureError as error:  # the other ends were read a moment ago
                self._problems.append(unreadable(other.name, error))
        return found


def counts_of(captures: SegmentSource | None) -> dict[str, Any]:
    """Files, bytes and packets that were read of captures, and packets without TCP by what they are."""
    if captures is None:
        return {"files": 0, "bytes": 0, "packets": 0, "other_packets": {}}
    return {
        "files": len(captures.files),
        "bytes": captures.position(),
        "packets": captures.packets,
        "other_packets": captures.other_packets,
    }


def _other_end(one: LeftOut) -> Problem:
    between = endpoints(bytes.fromhex(one.flow))
    what = f"the connection of {between[0]} and {between[1]} is told by {one.kept}, which has captured its other end"
    return Problem("other_end", what, timestamp_ns=one.first_ns, details={"kept": one.kept, "between": list(between)})


def _absolute(place: str) -> str:
    """A place of schemas under a name that means the same in every folder."""
    return place if "://" in place else os.path.abspath(place)


def unreadable(path: str, error: CaptureError) -> Problem:
    """The problem of a file that is no capture, or cannot be read."""
    return Problem("capture_unreadable", str(error), details={"file": path})
