"""One pass over the captures for commands that collect everything before they print it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.outcomes import INTERRUPTED
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.export.csv_table import csv_lines, csv_rows
from kwiresniff.export.encode import json_line, json_text
from kwiresniff.export.output import Output
from kwiresniff.model import Event, Exchange, Problem
from kwiresniff.render.tables import plain_table
from kwiresniff.render.terminal import console

FORMS = ("table", "csv", "json", "jsonl")
#: The same, and one line for each, for commands whose table takes several.
FORMS_OF_ROWS = ("table", "lines", "csv", "json", "jsonl")
#: Of the rows that SQL gives.
FORMS_OF_SQL = ("table", "csv", "jsonl")


def read_through(
    source: EventSource, take: Callable[[Exchange], None], other: Callable[[Event], None] | None = None
) -> tuple[bool, Messages]:
    """Calls ``take`` with every exchange, ``other`` with all other events, and prints problems on stderr.

    Returns False when the user interrupted it, and what is left to print on stderr.
    """
    messages = Messages(source)

    def report(event: Event) -> None:
        if other is not None:
            other(event)
        if isinstance(event, Problem):
            messages.problem(event)

    return source.read(CallingSink(take, report)), messages


def end(source: EventSource, finished: bool, messages: Messages, *left_out: str, told: str = "", code: int = 0) -> int:
    """Prints on stderr what the output leaves out, what ``messages`` has kept, and ``told``, what came of it all;
    returns the exit code, ``code`` when all went well.

    ``finished`` and ``messages`` are what ``read_through`` returned. Empty texts are none.
    """
    if not source.options.quiet:
        for what in filter(None, left_out):
            print(f"kwiresniff: {what}", file=sys.stderr)
    if not finished:
        return INTERRUPTED
    source.report_problems()  # plugins may fail as they are asked for what they have found
    messages.end()
    if told and not source.options.quiet:
        print(f"kwiresniff: {told}", file=sys.stderr)
    return source.exit_code(code)


def print_objects(objects: Iterable[dict[str, Any]], form: str) -> None:
    """One JSON array, one object a line, or CSV. JSON one at a time: they may be many, and their text takes more than
    they do.
    """
    with Output("-") as out:
        if form == "csv":
            out.stream.writelines(csv_lines(objects))
            return
        if form == "jsonl":
            out.stream.writelines(map(json_line, objects))
            return
        before = b"["
        for one in objects:
            out.stream.write(before + json_text(one))
            before = b","
        out.stream.write(b"]\n" if before == b"," else b"[]\n")


def print_rows(names: Sequence[str], rows: Iterable[Sequence[Any]], form: str) -> None:
    """What SQL gives: a table, one object a line, or CSV with the names of the columns at its top."""
    if form == "table":
        console().print(plain_table(names, [["" if value is None else str(value) for value in row] for row in rows]))
        return
    with Output("-") as out:
        if form == "csv":
            out.stream.writelines(csv_rows(names, rows))
        else:
            out.stream.writelines(json_line(dict(zip(names, row, strict=True))) for row in rows)
