"""Captures read by programs in Python: exchanges one by one, or everything that was found to a sink.

What is here is described in docs/python.md and stays as it is within a ``schema_version``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import TypeAlias

from kwiresniff.analysis.redact import Redactor
from kwiresniff.analysis.sinks import CaptureEvents
from kwiresniff.base.needs import Needs
from kwiresniff.capture import SegmentSource, feed_from, open_captures, with_decryption
from kwiresniff.capture.topic_file import read_topic_file
from kwiresniff.errors import KwiresniffError as KwiresniffError
from kwiresniff.export.json_objects import event_json as event_json
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Connection as Connection
from kwiresniff.model import ConnectionAttempt as ConnectionAttempt
from kwiresniff.model import EventList
from kwiresniff.model import Exchange as Exchange
from kwiresniff.model import Message as Message
from kwiresniff.model import Problem as Problem
from kwiresniff.model import Sink as Sink
from kwiresniff.plugins import PluginOptions
from kwiresniff.plugins.loading import load_own, load_plugins
from kwiresniff.reading import Reading

Path: TypeAlias = str | os.PathLike[str]


def read(
    captures: Path | Iterable[Path],
    *,
    filter: str | None = None,
    keylog: Path | None = None,
    port: int | Iterable[int] = (),
    topics: Path | None = None,
    decode_as: str | Iterable[str] = (),
    redact_key: str | None = None,
    show_secrets: bool = False,
    plugins: Path | Iterable[Path] | None = None,
    schemas: Path | Iterable[Path] = (),
    value_formats: str | Iterable[str] = (),
) -> Iterator[Exchange]:
    """Returns an iterator over the exchanges of captures, in the order in which they are complete.

    ``captures`` are files, folders or patterns, ``-`` is standard input. The others are the options of ``kwiresniff
    read``: ``filter`` is ``-Y``, ``redact_key`` is ``--redact-key``, ``plugins`` are the paths of ``--plugin``; without
    it no plugins are loaded, those of installed packages neither. ``schemas`` are those of ``--schemas``, URLs too, and
    ``value_formats`` the rules of ``--value-format``. Files are opened and options are checked at once:
    raises KwiresniffError, one line that says what is wrong and where.
    """
    given = _plugin_options(schemas, value_formats)
    reading = _Pass(captures, filter, keylog, port, topics, decode_as, redact_key, show_secrets, plugins, given)
    return reading.exchanges()


def read_into(
    sink: Sink,
    captures: Path | Iterable[Path],
    *,
    filter: str | None = None,
    keylog: Path | None = None,
    port: int | Iterable[int] = (),
    topics: Path | None = None,
    decode_as: str | Iterable[str] = (),
    redact_key: str | None = None,
    show_secrets: bool = False,
    plugins: Path | Iterable[Path] | None = None,
    schemas: Path | Iterable[Path] = (),
    value_formats: str | Iterable[str] = (),
) -> None:
    """Gives ``sink`` all exchanges, ended connections, refused or unanswered connection attempts and problems.

    Arguments and errors are those of ``read``. With ``filter`` only connections that had a matching exchange are given,
    and no attempts.
    """
    given = _plugin_options(schemas, value_formats)
    reading = _Pass(captures, filter, keylog, port, topics, decode_as, redact_key, show_secrets, plugins, given)
    for _ in reading.into(sink):
        pass


def _plugin_options(schemas: Path | Iterable[Path], value_formats: str | Iterable[str]) -> PluginOptions:
    return PluginOptions(_several(schemas), _several(value_formats))


def _several(given: Path | Iterable[Path]) -> tuple[str, ...]:
    """What is given one by one or together, as text: a text is one, and not its letters."""
    return tuple(os.fspath(one) for one in ([given] if isinstance(given, str | os.PathLike) else given))


class _Pass:
    """One pass over captures that are open."""

    def __init__(
        self,
        captures: Path | Iterable[Path],
        filter: str | None,
        keylog: Path | None,
        port: int | Iterable[int],
        topics: Path | None,
        decode_as: str | Iterable[str],
        redact_key: str | None,
        show_secrets: bool,
        plugins: Path | Iterable[Path] | None,
        options: PluginOptions,
    ) -> None:
        loaded = load_own(options) if plugins is None else load_plugins(_several(plugins), options)
        redactor = None if redact_key is None else Redactor(redact_key)
        needs = Needs("records", sessions=True, attempts=True)
        self._reading = Reading(needs, loaded, filter, redactor=redactor)
        names = {} if topics is None else read_topic_file(os.fspath(topics))
        try:
            opened = open_captures(_several(captures), decode_as=_several(decode_as))
        except ValueError as error:
            raise KwiresniffError(f"decode_as: {error}") from None
        self._captures: SegmentSource = with_decryption(opened, None if keylog is None else os.fspath(keylog))
        ports = [port] if isinstance(port, int) else port
        self._analyzer = self._reading.start(self._captures.tls_secrets, show_secrets=show_secrets, ports=ports)
        self._analyzer.topics.add(names)

    def into(self, sink: Sink) -> Iterator[None]:
        """Gives everything to ``sink``, and returns to the caller after each buffer."""
        entry = CaptureEvents(self._reading.chain(sink, Clusters()), self._captures.problems, self._captures.files)
        self._analyzer.give_to(entry)
        return self._steps(entry, sink)

    def _steps(self, entry: CaptureEvents, sink: Sink) -> Iterator[None]:
        with closing(self._captures), closing(self._reading.plugins):
            yield from chain(self._analyzer.read(feed_from(self._captures)), self._analyzer.end())
            entry.report()
            self._reading.report_problems(sink)

    def exchanges(self) -> Iterator[Exchange]:
        """Yields the exchanges, after each segment that completed some, so that few are held at once."""
        found = EventList()
        steps = self.into(found)
        self._analyzer.pauses = True
        for _ in steps:
            yield from (event for event in found.take() if isinstance(event, Exchange))
