"""``kwiresniff read``: captures in, exchanges out."""

from __future__ import annotations

import sys
from typing import Final

import click

from kwiresniff.base.api_keys import API_VERSIONS, FETCH, PRODUCE
from kwiresniff.cli.event_output import DEPTH_OF_FORM, encode_for, print_events, screen_for
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.cli.outcomes import INTERRUPTED
from kwiresniff.cli.pager import paged, pager

#: The messages whose bodies a summary does not always look into: of all others it tells what no digest has.
PUT_OFF: Final = frozenset({PRODUCE, FETCH, API_VERSIONS})


@capture_command("read")
@form_option(tuple(DEPTH_OF_FORM), "tree", "Annotated trees, one line per exchange, or JSON.")
@click.option("--no-pager", is_flag=True, help="On a terminal, write straight to it.")
def command(captures: tuple[str, ...], options: ReadOptions, form: str, no_pager: bool) -> int:
    """Decode captures: one annotated tree per exchange, or `-o summary`, `-o jsonl`, `-o json`.

    CAPTURE is a file, a folder or a glob of pcap or pcapng files, compressed or not, or "-" for standard input. On a
    terminal trees and lines go through a pager: KWIRESNIFF_PAGER, PAGER or less.
    """
    screen = screen_for(form, options)
    digests = PUT_OFF if form == "summary" else False
    source = EventSource(
        captures,
        options,
        DEPTH_OF_FORM[form],
        encode=encode_for(form),
        trees=form == "tree" and not options.verbose,
        digests=digests,
        all_views=True,
    )
    # What comes through standard input may be live, and is read as it comes.
    if no_pager or screen is None or "-" in captures or not sys.stdout.isatty():
        finished = print_events(source, form, screen)
    else:
        with paged(pager()):
            finished = print_events(source, form, screen)
    return source.exit_code() if finished else INTERRUPTED
