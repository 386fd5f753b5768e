"""``kwiresniff pipeline``: many captures at once, on Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from kwiresniff.capture.keylog import check_key_log
from kwiresniff.cli.click_commands import SuggestingGroup
from kwiresniff.cli.collect import FORMS_OF_SQL, print_rows
from kwiresniff.cli.options import form_option
from kwiresniff.cli.outcomes import FAILED, one_line
from kwiresniff.cli.pipeline_options import (
    Cluster,
    Decoding,
    cluster_options,
    decoding_options,
    duration_option,
    output_options,
)
from kwiresniff.cli.pipeline_progress import bar, counter, summary
from kwiresniff.export.table_columns import QUERYABLE
from kwiresniff.pipeline.hadoop import HadoopInputs, is_remote
from kwiresniff.pipeline.sql_check import check_sql

_keylog_option = click.option("--keylog", metavar="FILE", help="TLS keys to decrypt with; workers must see it.")
_fresh_option = click.option(
    "--resume/--fresh", default=True, help="Keep what was done into DIR before (default), or do all of it again."
)


@click.group("pipeline", cls=SuggestingGroup, no_args_is_help=False)
def command() -> None:
    """Many captures at once, on Spark: decoded to Parquet, and SQL over it.

    Needs the extra "spark". Without a cluster all cores of this machine are used.
    """


@command.command("run")
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@click.option("--out", metavar="DIR", required=True, help="Folder of the output; all workers must see it.")
@cluster_options
@click.option("--partitions", type=click.IntRange(1), metavar="N", help="Tasks to aim at; default: the cores.")
@decoding_options
@click.option(
    "--both-ends", is_flag=True, help="Tell a connection once that several hosts captured; reads all packets twice."
)
@_keylog_option
@_fresh_option
@output_options
def run_command(
    inputs: tuple[str, ...],
    out: str,
    cluster: Cluster,
    partitions: int | None,
    decoding: Decoding,
    both_ends: bool,
    keylog: str | None,
    resume: bool,
    quiet: bool,
    progress: bool,
) -> int:
    """Decodes captures into Parquet tables: exchanges by day, connections, problems, latency.

    Files of one rotation are read as one, so connections go on from file to file. Run again it only does what is
    new; stopped in the middle it goes on where it was.
    """
    from kwiresniff.pipeline.batch_run import Run
    from kwiresniff.pipeline.output_store import OutputStore

    if keylog is not None:
        check_key_log(keylog)
        keylog = os.path.abspath(keylog)
    settings, tables = decoding.settings(keylog), decoding.tables
    remote = None
    if any(map(is_remote, inputs)):
        remote = HadoopInputs(cluster.start_for_work(), OutputStore(out).inputs)
    run = Run(
        inputs,
        out,
        settings=settings,
        parallelism=partitions or cluster.slots,
        tables=tables,
        grouping=decoding.grouping,
        resume=resume,
        both_ends=both_ends,
        remote=remote,
    )
    with bar(run.job, enabled=progress) as step:
        manifest = run.execute(cluster.start_for_work, step)
    if not quiet:
        print(f"kwiresniff: {one_line(out)}: {summary(manifest)}", file=sys.stderr)
    return FAILED if manifest["failed"] or not manifest["total"]["files"] else 0


@command.command("watch")
@click.argument("folder", metavar="DIR")
@click.option("--out", metavar="DIR", required=True, help="Folder of the output; all workers must see it.")
@cluster_options
@decoding_options
@duration_option("--every", default="10s", help="Time between two looks into DIR.")
@duration_option(
    "--settle", default="1m", help="A file that has not changed for so long is finished, as is one with a successor."
)
@duration_option("--idle", default="1h", help="Connections silent for so long, by the captures' clock, are ended.")
@_keylog_option
@click.option("--once", is_flag=True, help="Read what is there and stop; connections stay open for the next time.")
@click.option("--finish", is_flag=True, help="The same, and it was all: every file is finished, connections end.")
@_fresh_option
@output_options
def watch_command(
    folder: str,
    out: str,
    cluster: Cluster,
    decoding: Decoding,
    every: int,
    settle: int,
    idle: int,
    keylog: str | None,
    once: bool,
    finish: bool,
    resume: bool,
    quiet: bool,
    progress: bool,
) -> int:
    """Decodes captures as they arrive in DIR, like those of a tcpdump that rotates its files.

    Connections go on from file to file. Stopped, killed and started again it goes on where it was, with nothing twice
    and nothing left out; Ctrl-C stops it. Options must stay the same from one time to the next. A key log is read again
    with every file: what is kept of open connections has no keys.
    """
    from kwiresniff.pipeline.watch import Watch

    watch = Watch(
        folder,
        out,
        settings=decoding.settings(None if keylog is None else os.path.abspath(keylog)),
        idle_ns=idle,
        settle_s=settle / 1e9,
        every_s=None if once else every / 1e9,
        finish=finish,
        tables=decoding.tables,
        grouping=decoding.grouping,
        fresh=not resume,
        private=cluster.is_local,
    )
    with counter(enabled=progress) as step:
        manifest = watch.execute(cluster.start_for_work, step)
    if not quiet:
        print(f"kwiresniff: {one_line(out)}: {summary(manifest)}", file=sys.stderr)
    return FAILED if manifest["this_run"]["failed"] or not manifest["total"]["files"] else 0


@command.command("query")
@click.argument("folder", metavar="DIR")
@click.argument("sql", metavar="SQL")
@form_option(FORMS_OF_SQL)
@click.option("--variant", is_flag=True, help="Bodies as VARIANT: request_body:topics[0].name.")
@cluster_options
def query_command(folder: str, sql: str, form: str, variant: bool, cluster: Cluster) -> None:
    """SQL over what "pipeline run" wrote to DIR.

    Tables: exchanges, connections, problems, records, errors, clusters, clients, topics, logs, groups, producers,
    audit, and latency and topic_latency, whose histograms add up: SELECT api, percentile_ns(collect_list(latency),
    0.99) FROM latency GROUP BY api.
    """
    from kwiresniff.pipeline.output_store import OutputStore
    from kwiresniff.pipeline.query import query

    OutputStore(folder).check()
    check_sql(sql, QUERYABLE)
    with _warehouse(cluster.remote) as settings:
        names, rows = query(cluster.start(**settings), folder, sql, variants=variant)
        print_rows(names, rows, form)


@contextmanager
def _warehouse(remote: str | None) -> Iterator[dict[str, str]]:
    """Spark's setting for a folder of tables that goes away: it makes one, in the current folder if it is not told
    where, as soon as a name is looked for that is no view's."""
    if remote is not None:
        yield {}
        return
    with TemporaryDirectory(prefix="kwiresniff-", ignore_cleanup_errors=True) as folder:
        yield {"spark__sql__warehouse__dir": Path(folder).as_uri()}
