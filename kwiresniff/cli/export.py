"""``kwiresniff export``: decoded sessions into a file."""

from __future__ import annotations

import sys

import click

from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.base.needs import Needs
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command
from kwiresniff.cli.outcomes import INTERRUPTED, one_line
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.errors import ExportError
from kwiresniff.export.encode import json_text
from kwiresniff.export.output import Output, refuse_capture
from kwiresniff.export.writers import WRITERS, Writer, format_of
from kwiresniff.model import Event, Problem
from kwiresniff.plugins.exporting import PluginWriter
from kwiresniff.plugins.loading import load_plugins


@capture_command("export")
@click.option(
    "-O",
    "--output",
    metavar="FILE",
    required=True,
    help="Name ending in .jsonl, .json, .csv or .parquet, then .gz or .zst to compress.",
)
@click.option("-o", "form", metavar="FORMAT", help="The format, where the name's ending does not say it.")
def command(captures: tuple[str, ...], options: ReadOptions, output: str, form: str | None) -> int:
    """Decoded sessions to a file, in the format its name asks for.

    CSV and Parquet have one row per exchange; JSON Lines and JSON also hold connections and problems; plugins may add
    formats. The file appears under its name when it is complete.
    """
    plugins = load_plugins(options.plugin, options.plugin_options)
    try:
        name = format_of(output, form, plugins.exporters)
    except ExportError as error:
        raise click.UsageError(str(error)) from None
    needs = Needs("records", text=json_text if name in WRITERS else None)
    source = EventSource(captures, options, needs, screen=False, all_views=True, plugins=plugins)
    messages = Messages(source)
    refuse_capture(source.files, output)
    with Output(output) as out:
        writer: Writer
        if name in WRITERS:
            writer = WRITERS[name](out.stream, source.files)
        else:
            writer = PluginWriter(plugins.exporters[name], out.stream, source.files)

        def use(event: Event) -> None:
            writer.write(event)
            if isinstance(event, Problem):
                messages.problem(event)

        finished = source.read(CallingSink(writer.write, use))
        writer.close()
    if not finished:
        return INTERRUPTED
    messages.end()
    if source.exchanges and not options.quiet:
        print(f"kwiresniff: {one_line(output)}: {source.shown} exchanges", file=sys.stderr)
    return source.exit_code()
