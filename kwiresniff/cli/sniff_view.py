"""The views of ``kwiresniff sniff``: exchanges one by one, or statistics, topics or findings of all together."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import click

from kwiresniff.analysis.doctor import Doctors
from kwiresniff.analysis.metrics import Metrics
from kwiresniff.analysis.named import finding_with_names, topic_with_names
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.analysis.stats import StatsTable, StatsTables
from kwiresniff.analysis.topic_metrics import TopicMetrics
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.needs import Needs
from kwiresniff.browse.messages import Reported
from kwiresniff.browse.tabs import DIMENSIONS
from kwiresniff.capture import SegmentSource
from kwiresniff.capture.live import LiveCapture
from kwiresniff.cli.doctor import in_short
from kwiresniff.cli.event_output import needs_of_form, print_events
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.outcomes import FAILED
from kwiresniff.cli.plugin_examiners import examiners_of
from kwiresniff.cli.sniff_screen import Screen as LiveScreen
from kwiresniff.cli.sniff_screen import capture, is_installed, started
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.cli.tables import needs_bodies, needs_of, print_tables
from kwiresniff.errors import KwiresniffError
from kwiresniff.model import Event, Exchange, Problem
from kwiresniff.render.findings import FindingWriter
from kwiresniff.render.problems import problem_line
from kwiresniff.render.terminal import stdout_for
from kwiresniff.render.topic_blocks import TopicWriter
from kwiresniff.results.findings import Finding
from kwiresniff.results.stats import StatRow
from kwiresniff.results.topics import Topic

if TYPE_CHECKING:
    from kwiresniff.cli.screen import Screen


#: Statistics, topics and findings are printed so often, in seconds, where there is no screen.
EVERY_S: Final = 1.0
#: Working out what to print takes no more than this part of the time.
SHARE: Final = 0.1
#: Problems that are printed when the screen is gone.
LAST_PROBLEMS: Final = 100
#: What is a tab of the screen.
TABS: Final = ("stats", "topics", "doctor")

Row = TypeVar("Row")

_EXTRA: Final = 'pip install "kwiresniff[browse]"'


class View(NamedTuple):
    """What is made of the traffic: exchanges in a form of ``read``, or ``stats``, ``doctor``, ``topics``.

    ``watched`` says that it is shown on the whole screen, which begins with a ``tab``, ``names`` by what statistics
    are, ``topic_metrics`` that metrics look into bodies.
    ``has_names`` says that ``--by`` was given, ``advice`` what to install for a screen.
    """

    form: str
    watched: bool
    tab: str
    names: tuple[tuple[str, ...], ...]
    topic_metrics: bool
    has_names: bool
    advice: str

    def is_summed_up(self) -> bool:
        """Whether something is made of all exchanges together, so that none has to be shown at once."""
        return self.watched or self.form in TABS

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

    def started_screen(self, live: LiveCapture, options: ReadOptions) -> AbstractContextManager[LiveScreen]:
        """The screen of a capture that is about to begin."""
        by = tuple("+".join(one) for one in self.names) if self.has_names else DIMENSIONS
        return started(live, options, self.tab, by)

    def _needs(self, options: ReadOptions) -> Needs:
        if self.watched:  # by other processes
            return Needs("headers")
        if self.form == "doctor":
            return Doctors.NEEDS
        if self.form == "topics":
            return TopicTraffic.NEEDS
        if self.form != "stats":
            return needs_of_form(self.form, options)
        return needs_of(self.names, records=needs_bodies(self.names))


def view_of(form: str, watched: bool | None, by: tuple[tuple[str, ...], ...] | None, *, topic_metrics: bool) -> View:
    """The view that was asked for: ``--live`` is the screen, and so is on a terminal what is a tab of it.

    Raises UsageError where ``--live`` asks for it and there is no terminal, KwiresniffError where the extra is missing.
    """
    terminal = all(one.isatty() for one in (sys.stdin, sys.stdout, sys.stderr)) and os.environ.get("TERM") != "dumb"
    if watched and not terminal:
        raise click.UsageError("--live needs a terminal, and one whose cursor can be moved")
    wanted = form in TABS if watched is None else watched
    screen = wanted and terminal and is_installed()
    if watched and not screen:
        raise KwiresniffError(f"--live needs textual; {_EXTRA}")
    tab = form if form in TABS else "exchanges"
    names = by or ((("api",), ("client",), ("topic",)) if screen else (("api",),))
    asked = "" if screen or not (wanted and terminal) else f"for a screen with lists, trees and tables: {_EXTRA}"
    return View(form, screen, tab, names, topic_metrics, by is not None, asked)


def show(view: View, live: LiveCapture, source: EventSource, screen: Screen | None) -> bool:
    """Whether it came to its end, and nobody interrupted it."""
    if view.form == "stats":
        return _count(live, source, view.names)
    if view.form == "doctor":
        return _examine(live, source)
    if view.form == "topics":
        return _follow_topics(live, source)
    return print_events(source, view.form, screen, live)


def _count(live: LiveCapture, source: EventSource, names: tuple[tuple[str, ...], ...]) -> bool:
    """Statistics, every second and at the end."""
    records = needs_bodies(names)
    tables = [StatsTable(one, source.topic_name, records=records) for one in names]

    def find() -> list[tuple[tuple[str, ...], list[StatRow]]]:
        return [(one.by, one.rows()) for one in tables]

    def write(found: Sequence[tuple[tuple[str, ...], list[StatRow]]]) -> None:
        print_tables(found, source.options, names=source.names)

    return _print_again(live, source, StatsTables(tables).add, find, write)


def _follow_topics(live: LiveCapture, source: EventSource) -> bool:
    """Topics, every second and at the end."""
    traffic = TopicTraffic(source.topic_name, source.clusters)

    def find() -> list[Topic]:
        return [topic_with_names(topic, source.names) for topic in traffic.topics()]

    finished = _print_again(live, source, traffic.exchange, find, TopicWriter(*stdout_for(source.options.color)).topics)
    if traffic.left_out and not source.options.quiet:
        print(f"kwiresniff: {traffic.left_out} names or rows found no room and are not listed", file=sys.stderr)
    return finished


def _examine(live: LiveCapture, source: EventSource) -> bool:
    """Findings, every second and at the end."""
    doctors = Doctors(source.topic_name, examiners_of(source.plugins), source.clusters)

    def find() -> list[Finding]:
        return [finding_with_names(one, source.names) for one in doctors.findings()]

    write = FindingWriter(*stdout_for(source.options.color), source.files).write
    finished = _print_again(live, source, doctors.exchange, find, write, doctors.add)
    if not source.options.quiet:
        print(f"kwiresniff: {in_short(doctors.findings())}", file=sys.stderr)
    return finished


def _print_again(
    live: LiveCapture,
    source: EventSource,
    add: Callable[[Exchange], None],
    find: Callable[[], list[Row]],
    write: Callable[[list[Row]], None],
    add_other: Callable[[Event], None] | None = None,
) -> bool:
    """Gives ``add`` the exchanges and ``add_other`` other events, and has ``write`` print every second, and at the end,
    what ``find`` returns, where that has changed; whether nobody interrupted it.
    """
    messages, printed, is_new = Messages(source), list[Row](), False
    due = time.monotonic() + EVERY_S

    def exchange(exchange: Exchange) -> None:
        nonlocal is_new
        is_new = True
        add(exchange)

    def other(event: Event) -> None:
        nonlocal is_new
        is_new = True
        if add_other is not None:
            add_other(event)
        if isinstance(event, Problem):
            messages.problem(event)

    def print_now() -> None:
        nonlocal printed, is_new, due
        source.analyzer.end_attempts()
        source.release()
        if not is_new:
            return
        is_new, began, found = False, time.monotonic(), find()
        if found != printed:
            if printed:
                sys.stdout.write("\n")
            write(found)
            sys.stdout.flush()
            printed = found
        due = began + max(EVERY_S, (time.monotonic() - began) / SHARE)

    live.on_pause = lambda: print_now() if time.monotonic() >= due else None
    finished = source.read(CallingSink(exchange, other), live.stop)
    print_now()
    messages.end()
    return finished


def show_screen(
    view: View, live: LiveCapture, source: EventSource, screen: LiveScreen, *, is_read: bool
) -> tuple[bool, int, int]:
    """Shows the program of ``browse``, and prints what ``-o`` asked for when it is gone. Whether nobody interrupted it,
    how many exchanges there were, and the exit code.
    """
    finished, shown = capture(live, source, screen, is_read=is_read)
    if shown is None:
        return finished, 0, FAILED
    if shown.report is not None:
        _print_report(view, shown.report, source)
    if not source.options.quiet:
        for line in [*shown.problems, *map(problem_line, live.problems)][-LAST_PROBLEMS:]:
            print(f"kwiresniff: {line}", file=sys.stderr)
    return finished, shown.exchanges, FAILED if source.options.strict and shown.problem_count else 0


def _print_report(view: View, report: Reported, source: EventSource) -> None:
    """Prints the tab that was asked for."""
    out = stdout_for(source.options.color)
    if view.form == "stats":
        names = [one for one in view.names if report.stats.get("+".join(one))]
        print_tables([(one, report.stats["+".join(one)]) for one in names], source.options)
    elif view.form == "topics":
        TopicWriter(*out).topics(report.topics)
    elif view.form == "doctor":
        FindingWriter(*out, report.files).write(report.findings)
    sys.stdout.flush()
