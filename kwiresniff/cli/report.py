"""``kwiresniff report``: one page to hand on."""

from __future__ import annotations

import click

from kwiresniff.analysis.report import Reporter
from kwiresniff.cli.collect import end, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command
from kwiresniff.cli.outcomes import one_line
from kwiresniff.cli.plugin_examiners import examiners_of
from kwiresniff.export.output import Output, refuse_capture
from kwiresniff.render.page import check, page


@capture_command("report")
@click.option("-O", "--output", metavar="FILE", required=True, help="The page, as report.html, or '-'.")
@click.option("--title", default="Kafka on the wire", show_default=True, help="What stands at its top.")
def command(captures: tuple[str, ...], options: ReadOptions, output: str, title: str) -> int:
    """One self-contained HTML page: findings, plots over time, tables, clients, groups.

    It needs no network. It shows names, counts and times, never record keys or values.
    """
    check()
    source = EventSource(captures, options, Reporter.NEEDS, screen=False, payloads=True)
    refuse_capture(source.files, output)
    reporter = Reporter(source.topic_name, examiners_of(source.plugins), source.clusters, source.names)
    finished, messages = read_through(source, reporter.exchange, reporter.add)
    with Output(output) as out:
        out.stream.write(page(reporter.report(title, source.files)).encode("utf-8"))
    told = f"{one_line(output)}: {source.shown} exchanges" if source.exchanges and output != "-" else ""
    return end(source, finished, messages, told=told)
