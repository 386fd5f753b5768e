"""``kwiresniff diff``: what changed from one capture to another."""

from __future__ import annotations

from typing import NamedTuple

import click

from kwiresniff.analysis.comparison.compare import compare
from kwiresniff.analysis.comparison.survey import Found, Survey
from kwiresniff.analysis.doctor import SEVERITIES
from kwiresniff.cli.collect import end, print_objects, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import Moment, MomentType, ReadOptions, capture_command, form_option
from kwiresniff.cli.outcomes import FAILED, INTERRUPTED
from kwiresniff.cli.plugin_examiners import examiners_of
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.export.comparison import comparison_json
from kwiresniff.export.output import Output
from kwiresniff.render.comparison import ComparisonWriter
from kwiresniff.render.page import check, comparison_page
from kwiresniff.render.terminal import stdout_for


class _Side(NamedTuple):
    source: EventSource
    found: Found
    finished: bool
    messages: Messages

    def end(self, name: str, told: str = "", code: int = 0) -> int:
        left_out = f"{self.found.left_out} more are not compared" if self.found.left_out else ""
        empty = "" if self.found.exchanges else f"{name} has no exchanges: check the captures, the times and the filter"
        return end(self.source, self.finished, self.messages, left_out, empty, told=told, code=code)


@capture_command("diff", metavar="BEFORE AFTER")
@click.option(
    "--at", type=MomentType(), metavar="TIME", help="One capture, before and after this time, written as for --since."
)
@form_option(("table", "json", "jsonl", "html"))
@click.option(
    "--fail-on",
    type=click.Choice([*SEVERITIES, "never"]),
    default="error",
    show_default=True,
    help="Exit with 1 when there is a change as severe as this or worse.",
)
def command(captures: tuple[str, ...], options: ReadOptions, at: Moment | None, form: str, fail_on: str) -> int:
    """What changed from BEFORE to AFTER: latency, errors, traffic, clients, versions, groups, findings.

    Each is a capture, a folder or a quoted glob; they may be of unequal length. A change of what is measured is told
    when like captures would differ so much in one of a hundred comparisons at most. -v adds what is too little to
    tell from chance. --at compares one capture before and after that time.
    """
    if form == "html":
        check()
    before, after = (_surveyed(source) for source in _sources(captures, options, at))
    names = (captures[0], captures[-1])
    comparison = compare(before.found, after.found, names, (before.source.files, after.source.files))
    if form == "table":
        ComparisonWriter(*stdout_for(options.color), doubts=options.verbose > 0).write(comparison)
    elif form == "html":
        with Output("-") as out:
            out.stream.write(comparison_page(comparison).encode())
    else:
        print_objects([comparison_json(comparison)], form)
    counts = {name: sum(one.severity == name for one in comparison.changes) for name in SEVERITIES}
    listed = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    severe = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on != "never" else ()
    failed = any(counts[name] for name in severe)
    codes = before.end("before"), after.end("after", f"changes: {listed or 'none'}", FAILED if failed else 0)
    return INTERRUPTED if INTERRUPTED in codes else max(codes)


def _sources(captures: tuple[str, ...], options: ReadOptions, at: Moment | None) -> list[EventSource]:
    """Both sides, opened; raises UsageError for more or fewer than there must be."""
    if at is None:
        if len(captures) != 2:
            raise click.UsageError(f"two captures are compared, BEFORE and AFTER, not {len(captures)}")
        if captures == ("-", "-"):
            raise click.UsageError("standard input is one side at most")
        return [EventSource((name,), options, Survey.NEEDS, screen=False) for name in captures]
    if len(captures) != 1 or captures == ("-",):
        raise click.UsageError("--at compares one capture file, before and after that time")
    parts = options._replace(until=at), options._replace(since=at)
    return [EventSource(captures, part, Survey.NEEDS, screen=False) for part in parts]


def _surveyed(source: EventSource) -> _Side:
    survey = Survey(source.topic_name, examiners_of(source.plugins), source.clusters)
    finished, messages = read_through(source, survey.exchange, survey.add)
    return _Side(source, survey.found(), finished, messages)
