"""``kwiresniff query``: SQL over captures, without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from tempfile import TemporaryDirectory

import click

from kwiresniff.cli.collect import FORMS_OF_SQL, end, print_rows
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.interrupts import interruptible
from kwiresniff.cli.options import ReadOptions, capture_command, form_option
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.errors import ExportError
from kwiresniff.model import Event, Problem
from kwiresniff.pipeline.local_query import LocalQuery
from kwiresniff.pipeline.rows import Rows
from kwiresniff.pipeline.unit_reader import Settings
from kwiresniff.pipeline.unit_tables import UnitTables


@capture_command("query", click.argument("sql", metavar="SQL"))
@form_option(FORMS_OF_SQL)
def command(captures: tuple[str, ...], options: ReadOptions, sql: str, form: str) -> int:
    """SQL over captures, on a laptop: DuckDB over the tables of "pipeline run", without Java.

    Needs the extra "query". Tables: exchanges, connections, problems, records, errors, clusters, clients, topics,
    groups, producers, latency, topic_latency; "DESCRIBE exchanges" tells the columns. SQL is one SELECT. All captures
    are read as one source, as by other commands.
    """
    with interruptible(), _private_folder() as folder, closing(LocalQuery(sql, folder)) as query:
        settings = Settings().for_tables(query.tables)
        needs = settings.needs(text="exchanges" in query.tables)
        source = EventSource(captures, options, needs, screen=False)
        messages = Messages(source)

        def report(event: Event) -> None:
            if isinstance(event, Problem):
                messages.problem(event)

        source.on_event = report
        rows = Rows(_name(source.files), source.files, source.topic_name)
        tables = UnitTables(rows, query.writer, query.tables, None, source.clusters)
        with _room(folder):
            finished = source.read(tables)
            tables.finish()
            names, answer = query.rows()
        print_rows(names, answer, form)
        return end(source, finished, messages)


def _name(files: list[str]) -> str:
    """The name of all files as one source: that of the only one, or of their folder."""
    if len(files) == 1:
        return files[0]
    return os.path.join(os.path.commonpath(map(os.path.abspath, files)), "*") if files else ""


@contextmanager
def _private_folder() -> Iterator[str]:
    """A folder that only this user may look into and that goes away."""
    with TemporaryDirectory(prefix="kwiresniff-", ignore_cleanup_errors=True) as folder:
        yield os.path.realpath(folder)


@contextmanager
def _room(folder: str) -> Iterator[None]:
    """Says what to do where the folder cannot take what is written to it."""
    try:
        yield
    except OSError as error:
        what = os.strerror(error.errno) if error.errno else str(error)
        raise ExportError(f"{os.path.dirname(folder)}: {what}; TMPDIR names a folder with more room") from error
