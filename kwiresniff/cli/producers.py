"""``kwiresniff producers``: idempotent and transactional producers by their ids."""

from __future__ import annotations

from kwiresniff.analysis.producer_ledger import ProducerLedger
from kwiresniff.cli.collect import FORMS, end, print_objects, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.export.producers import producer_json
from kwiresniff.render.producer_blocks import ProducerWriter
from kwiresniff.render.terminal import stdout_for


@capture_command("producers")
@form_option(FORMS)
def command(captures: tuple[str, ...], options: ReadOptions, form: str) -> int:
    """Producers by id: sequences, transactions, and who fenced whom.

    Of sequences, what is missing and what was sent again; of transactions, who began them, how long they were open, and
    whether they were committed, aborted, fenced, or are open still.
    """
    source = EventSource(captures, options, ProducerLedger.NEEDS, screen=False)
    ledger = ProducerLedger(source.topic_name, source.clusters)

    finished, messages = read_through(source, ledger.exchange)
    found = ledger.producers()
    if form == "table":
        ProducerWriter(*stdout_for(options.color), source.files).producers(found, ledger.last_ns)
    else:
        print_objects((producer_json(one, source.files) for one in found), form)
    left_out = f"{ledger.left_out} producers or names found no room and are not listed" if ledger.left_out else ""
    return end(source, finished, messages, left_out)
