"""``kwiresniff read``: captures in, exchanges out."""

from __future__ import annotations

import click

from kwiresniff.cli.main import INTERRUPTED
from kwiresniff.cli.options import ReadOptions, TrafficCommand, capture_options
from kwiresniff.cli.printing import DEPTHS, encode_for, print_events
from kwiresniff.cli.reading import Reading


@click.command("read", cls=TrafficCommand)
@click.option(
    "-o",
    "form",
    type=click.Choice(list(DEPTHS)),
    default="tree",
    show_default=True,
    help="Annotated trees, one line per exchange, or JSON.",
)
@capture_options
def command(captures: tuple[str, ...], options: ReadOptions, form: str) -> int:
    """Decode captures: one annotated tree per exchange, or `-o summary`, `-o jsonl`, `-o json`.

    CAPTURE is a file, a folder or a glob of pcap or pcapng files, compressed or not, or "-" for standard input.
    """
    reading = Reading(captures, options, DEPTHS[form], encode=encode_for(form))
    if not print_events(reading, form):
        return INTERRUPTED
    return reading.exit_code()
