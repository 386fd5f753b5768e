"""``kwiresniff export``: decoded sessions into a file."""

from __future__ import annotations

import sys

import click

from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command
from kwiresniff.cli.outcomes import INTERRUPTED, one_line
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.errors import ExportError
from kwiresniff.export import WRITERS, Output, format_of, json_text
from kwiresniff.model import Event, Problem


@capture_command("export")
@click.option(
    "-O",
    "--output",
    metavar="FILE",
    required=True,
    help="Name ending in .jsonl, .json, .csv or .parquet, then .gz or .zst to compress.",
)
def command(captures: tuple[str, ...], options: ReadOptions, output: str) -> int:
    """Decoded sessions to a file, in the format its name asks for.

    CSV and Parquet have one row per exchange; JSON Lines and JSON also hold connections and problems. The file
    appears under its name when it is complete.
    """
    try:
        form = format_of(output)
    except ExportError as error:
        raise click.UsageError(str(error)) from None
    source = EventSource(captures, options, "records", screen=False, encode=json_text)
    messages = Messages(source)
    with Output(output) as out:
        writer = WRITERS[form](out.stream, source.files)

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
