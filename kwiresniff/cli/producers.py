"""``kwiresniff producers``: idempotent and transactional producers by their ids."""

from __future__ import annotations

import sys

import click

from kwiresniff.analysis.producer_ledger import ProducerLedger
from kwiresniff.cli.collect import FORMS, print_json, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.main import INTERRUPTED
from kwiresniff.cli.options import ReadOptions, TrafficCommand, capture_options
from kwiresniff.model import Event, Exchange


@click.command("producers", cls=TrafficCommand)
@click.option("-o", "form", type=click.Choice(FORMS), default="table", show_default=True)
@capture_options
def command(captures: tuple[str, ...], options: ReadOptions, form: str) -> int:
    """Producers by id: sequences, transactions, and who fenced whom.

    Of sequences, what is missing and what was sent again; of transactions, who began them, how long they were open, and
    whether they were committed, aborted, fenced, or are open still.
    """
    source = EventSource(captures, options, "bodies", screen=False)
    ledger = ProducerLedger(source.topic_name)

    def take(event: Event) -> None:
        if isinstance(event, Exchange):
            ledger.exchange(event)

    finished, messages = read_through(source, take)
    found = ledger.producers()
    if form == "table":
        from kwiresniff.render import use_color, width_of
        from kwiresniff.render.producer_blocks import ProducerWriter

        out = sys.stdout
        ProducerWriter(out, width_of(out), use_color(out, options.color), source.files).producers(found)
    else:
        from kwiresniff.export.producers import producer_json

        print_json((producer_json(one, source.files) for one in found), form)
    if ledger.left_out and not options.quiet:
        print(f"kwiresniff: {ledger.left_out} producers or names found no room and are not listed", file=sys.stderr)
    if not finished:
        return INTERRUPTED
    messages.end()
    return source.exit_code()
