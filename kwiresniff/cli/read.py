"""``kwiresniff read``: captures in, exchanges out."""

from __future__ import annotations

import sys

import click

from kwiresniff.cli.event_output import FORMS, needs_of_form, print_events, screen_for
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.cli.outcomes import INTERRUPTED


@capture_command("read")
@form_option(FORMS, "tree", "Annotated trees, one line per exchange, or JSON.")
@click.option(
    "-e",
    "fields",
    multiple=True,
    metavar="FIELD",
    help="Print this field of each exchange, as filters name it; may be repeated; tabs are between.",
)
@click.option("--no-pager", is_flag=True, help="On a terminal, write straight to it.")
@click.option(
    "-w", "--write", metavar="FILE", help="Write the packets of the exchanges into a capture, and print nothing."
)
@click.option("--anonymise", is_flag=True, help="With -w: pseudonyms for names and addresses, nothing in records.")
@click.option(
    "--anonymise-key-file", "key_file", metavar="FILE", help="File with the key of the pseudonyms; random without it."
)
def command(
    captures: tuple[str, ...],
    options: ReadOptions,
    form: str,
    fields: tuple[str, ...],
    no_pager: bool,
    write: str | None,
    anonymise: bool,
    key_file: str | None,
) -> int:
    """Decode captures: one annotated tree per exchange, or `-o summary`, `-o jsonl`, `-o json`.

    CAPTURE is a file, a folder or a glob of pcap or pcapng files, compressed or not, or "-" for standard input. On a
    terminal trees and lines go through a pager: KWIRESNIFF_PAGER, PAGER or less.
    """
    if write is not None:
        if options.redact or options.redact_key is not None or options.redact_key_file is not None:
            raise click.UsageError("--redact changes what is printed; --anonymise changes the packets that -w writes")
        if key_file is not None and not anonymise:
            raise click.UsageError("--anonymise-key-file changes nothing without --anonymise: say that, too")
        from kwiresniff.cli.packet_output import write_exchanges  # with the doctor, which nothing else needs here

        return write_exchanges(captures, options, write, anonymise=anonymise, key_file=key_file)
    if anonymise or key_file is not None:
        raise click.UsageError("--anonymise changes the packets that -w FILE writes; --redact changes what is printed")
    if fields:
        if form != "tree":
            raise click.UsageError("-e and -o are two forms of output")
        from kwiresniff.cli.field_output import needs_of_fields, print_fields

        chosen = EventSource(captures, options, needs_of_fields(fields), screen=False, all_views=True)
        return chosen.exit_code() if print_fields(chosen, fields) else INTERRUPTED
    screen = screen_for(form, options)
    source = EventSource(captures, options, needs_of_form(form, options), all_views=True)
    # What comes through standard input may be live, and is read as it comes.
    if no_pager or screen is None or "-" in captures or not sys.stdout.isatty():
        finished = print_events(source, form, screen)
    else:
        from kwiresniff.cli.pager import paged, pager

        with paged(pager()):
            finished = print_events(source, form, screen)
    return source.exit_code() if finished else INTERRUPTED
