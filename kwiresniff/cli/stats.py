"""``kwiresniff stats``: latency and traffic tables."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kwiresniff.analysis.named import row_with_names
from kwiresniff.analysis.stats import StatsTable, StatsTables
from kwiresniff.analysis.stats_keys import DIMENSIONS
from kwiresniff.cli.collect import FORMS, end, print_json, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.cli.tables import ByType, needs_bodies, needs_of, print_tables
from kwiresniff.export import stat_json

#: At the foot of tables without them.
HOW_TO_COUNT_RECORDS = "Records are not counted: --records counts them."


@capture_command("stats")
@click.option(
    "--by",
    type=ByType(),
    default="api",
    show_default=True,
    metavar="NAMES",
    help=f"Tables by {', '.join(DIMENSIONS)}; 'api,topic' is two tables, 'api+topic' one of pairs.",
)
@click.option(
    "--records",
    is_flag=True,
    help="Count records too, as tables by partition or group do; reads the headers of all batches, which takes longer.",
)
@form_option(FORMS)
def command(
    captures: tuple[str, ...], options: ReadOptions, by: tuple[tuple[str, ...], ...], records: bool, form: str
) -> int:
    """Latency and traffic by API, client, topic, partition, error and more.

    Latency is last byte of the request to first byte of the response, at the capture point. Exchanges in which the
    broker held the answer back on purpose (long polls, rebalances, throttling) are counted apart.
    """
    records = records or needs_bodies(by)
    source = EventSource(captures, options, needs_of(by, records=records), screen=False)
    tables = [StatsTable(names, source.topic_name, records=records) for names in by]
    finished, messages = read_through(source, StatsTables(tables).add)
    if source.shown or form != "table":
        _print(tables, form, source, () if records else (HOW_TO_COUNT_RECORDS,))
    return end(source, finished, messages)


def _print(tables: Sequence[StatsTable], form: str, source: EventSource, notes: Sequence[str]) -> None:
    if form == "table":
        print_tables(tables, source.options, notes, names=source.names)
        return
    rows = (row_with_names(row, source.names) for table in tables for row in table.rows())
    print_json(map(stat_json, rows), form)
