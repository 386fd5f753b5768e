"""``kwiresniff stats``: latency and traffic tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from kwiresniff.analysis.named import row_with_names
from kwiresniff.analysis.stats import StatsTable, StatsTables
from kwiresniff.analysis.stats_keys import DIMENSIONS
from kwiresniff.cli.collect import FORMS, end, print_objects, read_through
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import DurationType, ReadOptions, capture_command, form_option
from kwiresniff.cli.tables import ByType, needs_bodies, needs_of, print_tables
from kwiresniff.export.json_objects import stat_json
from kwiresniff.export.times import rfc3339
from kwiresniff.render.terminal import stdout_for
from kwiresniff.render.time_table import write_over_time, write_sparklines
from kwiresniff.results.stats import StatRow

#: Slices without an exchange that are shown between two with one, so that a clock that jumped fills no screen.
MAX_EMPTY_SLICES = 1_000

#: At the foot of tables without them.
HOW_TO_COUNT_RECORDS = "Records are not counted: --records counts them."


@capture_command("stats")
@click.option(
    "--by",
    type=ByType(),
    metavar="NAMES",
    help=f"Tables by {', '.join(DIMENSIONS)}; 'api,topic' is two tables, 'api+topic' one of pairs.  [default: api]",
)
@click.option(
    "--every", type=DurationType(), metavar="TIME", help="A row for each slice of time, like 10s; --by splits them."
)
@click.option(
    "--records",
    is_flag=True,
    help="Count records too, as tables by partition or group do; reads the headers of all batches, which takes longer.",
)
@form_option((*FORMS, "sparkline"))
def command(
    captures: tuple[str, ...],
    options: ReadOptions,
    by: tuple[tuple[str, ...], ...] | None,
    every: int | None,
    records: bool,
    form: str,
) -> int:
    """Latency and traffic by API, client, topic, partition, error and more.

    Latency is last byte of the request to first byte of the response, at the capture point. Exchanges in which the
    broker held the answer back on purpose (long polls, rebalances, throttling) are counted apart.
    With --every, an exchange counts in the slice in which its request begins.
    """
    if form == "sparkline" and not every:
        raise click.UsageError("-o sparkline is over time: it needs --every, like --every 10s")
    if by is None:
        by = ((),) if every else (("api",),)
    records = records or needs_bodies(by)
    source = EventSource(captures, options, needs_of(by, records=records), screen=False)
    tables = [StatsTable(names, source.topic_name, records=records, every_ns=every or 0) for names in by]
    finished, messages = read_through(source, StatsTables(tables).add)
    if source.shown or form not in ("table", "sparkline"):
        if every:
            _print_over_time(tables, every, form, source)
        else:
            _print(tables, form, source, () if records else (HOW_TO_COUNT_RECORDS,))
    return end(source, finished, messages)


def _print(tables: Sequence[StatsTable], form: str, source: EventSource, notes: Sequence[str]) -> None:
    if form == "table":
        print_tables([(one.by, one.rows()) for one in tables], source.options, notes, names=source.names)
        return
    rows = (row_with_names(row, source.names) for table in tables for row in table.rows())
    print_objects(map(stat_json, rows), form)


def _print_over_time(tables: Sequence[StatsTable], every_ns: int, form: str, source: EventSource) -> None:
    """The tables by time, each in the order of time."""
    listed = [_in_order(table, every_ns, source) for table in tables]
    if form in ("table", "sparkline"):
        for index, rows in enumerate(listed):
            if index:
                sys.stdout.write("\n")
            out = stdout_for(source.options.color)
            if form == "table":
                write_over_time(*out, rows, every_ns)
            else:
                write_sparklines(*out, rows, _slices(rows, every_ns))
        return
    print_objects((stat_json(_with_time(row)) for rows in listed for row in rows), form)


def _in_order(table: StatsTable, every_ns: int, source: EventSource) -> list[StatRow]:
    """The rows in the order of time; those of time alone with the empty slices between them."""
    rows = sorted((row_with_names(row, source.names) for row in table.rows()), key=lambda row: row.key)
    if len(table.by) > 1:
        return rows
    known = {row.key: row for row in rows}
    empty = [(str(ns),) for ns in _slices(rows, every_ns) if (str(ns),) not in known]
    return sorted([*rows, *[StatRow(table.by, key, 0, 0, 0, 0, 0, None) for key in empty]], key=lambda row: row.key)


def _slices(rows: Sequence[StatRow], every_ns: int) -> list[int]:
    """Where the slices of rows begin, those between two included unless they are too many."""
    found: list[int] = []
    for begun in sorted({int(row.key[0]) for row in rows if row.key[0].isdigit()}):
        if found and (begun - found[-1]) // every_ns <= MAX_EMPTY_SLICES:
            found += range(found[-1] + every_ns, begun, every_ns)
        found.append(begun)
    return found


def _with_time(row: StatRow) -> StatRow:
    """The row with its time as JSON has times."""
    time = row.key[0]
    return row._replace(key=((rfc3339(int(time)) or time) if time.isdigit() else time, *row.key[1:]))
