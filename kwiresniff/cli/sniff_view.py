"""The views of ``kwiresniff sniff``: exchanges one by one, or statistics, topics or findings of all together."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from kwiresniff.analysis.doctor import Doctors
from kwiresniff.analysis.metrics import Metrics
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.analysis.stats import StatsTable, StatsTables
from kwiresniff.analysis.topic_metrics import TopicMetrics
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.needs import Needs
from kwiresniff.capture import SegmentSource
from kwiresniff.capture.live import LiveCapture
from kwiresniff.cli.event_output import needs_of_form, print_events
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.cli.tables import needs_bodies, needs_of, print_tables
from kwiresniff.model import Event, Problem

if TYPE_CHECKING:
    from kwiresniff.cli.screen import Screen


class View(NamedTuple):
    """What is made of the traffic: exchanges in a form of ``read``, or ``stats``, ``doctor``, ``topics``.

    ``watched`` says that it is refreshed in place, ``names`` by what statistics are, ``topic_metrics`` that metrics
    look into bodies.
    """

    form: str
    watched: bool
    names: tuple[tuple[str, ...], ...]
    topic_metrics: bool

    def is_summed_up(self) -> bool:
        """Whether something is made of all exchanges together, so that none has to be shown at once."""
        return self.form in ("stats", "doctor", "topics")

    def event_source(
        self, segments: SegmentSource, options: ReadOptions, *, metrics: bool, names: AddressNames | None = None
    ) -> EventSource:
        """The events of ``segments``; with ``metrics``, as metrics need them, too. ``names`` are those of addresses."""
        needs = self._needs(options)
        if metrics:
            needs |= Metrics.NEEDS
        if self.topic_metrics:
            needs |= TopicMetrics.NEEDS
        screen, shown = self.form not in ("stats", "topics"), not metrics and not self.is_summed_up()
        payloads = self.form == "doctor"
        return EventSource(segments, options, needs, screen=screen, all_views=shown, payloads=payloads, names=names)

    def _needs(self, options: ReadOptions) -> Needs:
        if self.form == "doctor":
            return Doctors.NEEDS
        if self.form == "topics":
            return TopicTraffic.NEEDS
        if self.form != "stats":
            return needs_of_form(self.form, options)
        needs: Needs = needs_of(self.names, records=needs_bodies(self.names))
        # A screen lists exchanges, which it decodes itself: with topics, frames are kept whole.
        return needs._replace(topics=needs.topics or self.watched, digests=False)


def view_of(form: str, watched: bool | None, by: tuple[tuple[str, ...], ...] | None, *, topic_metrics: bool) -> View:
    """Statistics and topics are refreshed in place on a terminal; --live asks for statistics by itself."""
    screen = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if watched and not screen:
        raise click.UsageError("--live needs a terminal, and one whose cursor can be moved")
    if watched and form != "topics":
        form = "stats"
    watched = form in ("stats", "topics") and (screen if watched is None else watched)
    names = by or ((("api",), ("client",), ("topic",)) if watched else (("api",),))
    return View(form, watched, names, topic_metrics)


def show(view: View, live: LiveCapture, source: EventSource, screen: Screen | None) -> bool:
    """Whether it came to its end, and nobody interrupted it."""
    if view.form == "stats":
        return _count(live, source, view.names, watched=view.watched)
    if view.form == "doctor":
        from kwiresniff.cli.examination import examine

        return examine(live, source)
    if view.form == "topics":
        from kwiresniff.cli.live_topics import watch_topics

        return watch_topics(live, source, watched=view.watched)
    return print_events(source, view.form, screen, live)


def _count(live: LiveCapture, source: EventSource, names: tuple[tuple[str, ...], ...], *, watched: bool) -> bool:
    """Statistics instead of exchanges, on the way when somebody watches and at the end in any case."""
    from kwiresniff.cli.live import watch

    messages = Messages(source)
    if watched:
        finished, tables, problems = watch(live, source, names)
        for problem in problems:
            messages.problem(problem)
    else:
        records = needs_bodies(names)
        tables = [StatsTable(one, source.topic_name, records=records) for one in names]

        def report(event: Event) -> None:
            if isinstance(event, Problem):
                messages.problem(event)

        finished = source.read(CallingSink(StatsTables(tables).add, report), live.stop)
    if source.shown:
        print_tables(tables, source.options, names=source.names)
    messages.end()
    return finished
