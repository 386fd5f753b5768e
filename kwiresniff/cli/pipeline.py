"""``kwiresniff pipeline``: many captures at once, on Spark."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from kwiresniff.analysis.units import duration_ns
from kwiresniff.cli.main import FAILED, TRACEBACK, SuggestingGroup
from kwiresniff.errors import SchemaError

if TYPE_CHECKING:
    from kwiresniff.pipeline.batch_run import Job
    from kwiresniff.pipeline.unit_reader import Settings

TABLES = ("exchanges", "connections", "problems", "latency", "topic_latency", "errors", "clients", "audit", "records")
WRITTEN = TABLES[:-2]


#: Spark has no SQL to compile where Python does the work, and begins sooner when it does not try.
_NO_SQL = {"spark__sql__codegen__wholeStage": "false", "spark__sql__codegen__factoryMode": "NO_CODEGEN"}


def _traceback(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    if value:
        ctx.meta[TRACEBACK] = True
    return value


_CLUSTER = (
    click.option("--master", metavar="URL", default="local[*]", show_default=True, help="Spark master."),
    click.option("--remote", metavar="URL", help="Spark Connect server, like sc://host:15002, instead of a master."),
    click.option("-v", "verbose", is_flag=True, callback=_traceback, help="Spark's page while it runs. Tracebacks."),
)
_DECODING = (
    click.option(
        "--write",
        "tables",
        metavar="TABLES",
        default=",".join(WRITTEN),
        show_default=True,
        help="Tables to write; 'records' has a row for each record.",
    ),
    click.option(
        "--grouping",
        type=click.Choice(["series", "file", "one"]),
        default="series",
        show_default=True,
        help="Which files share connections: those of one rotation, none, or all.",
    ),
    click.option("--audit", metavar="RELEASE", help="Write audit too: clients held against that release."),
    click.option("--port", type=click.IntRange(1, 65535), multiple=True, help="A port brokers listen on: a hint."),
    click.option("--redact", is_flag=True, help="Record keys, values and headers as length and keyed hash."),
    click.option("--redact-key", metavar="TEXT", envvar="KWIRESNIFF_REDACT_KEY", help="Key of those hashes."),
)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of everything that starts Spark."""
    return _with(_CLUSTER, command)


def decoding_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of everything that decodes captures."""
    return _with(_DECODING, command)


def _with(options: Sequence[Callable[..., Any]], command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


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
@click.option("--keylog", metavar="FILE", help="TLS keys to decrypt with, through tshark; workers must see it.")
@click.option(
    "--where", metavar="EXPR", help="Only exchanges that a filter as of -Y lets through, and their connections."
)
@click.option("--resume/--fresh", default=True, help="Keep what earlier runs did (default), or do all of it again.")
@click.option("-q", "quiet", is_flag=True, help="No summary on stderr.")
@click.option("--no-progress", "progress", flag_value=False, default=True, help="No progress bar on stderr.")
def run_command(
    inputs: tuple[str, ...],
    out: str,
    master: str,
    remote: str | None,
    verbose: bool,
    partitions: int | None,
    tables: str,
    grouping: str,
    audit: str | None,
    port: tuple[int, ...],
    redact: bool,
    redact_key: str | None,
    both_ends: bool,
    keylog: str | None,
    where: str | None,
    resume: bool,
    quiet: bool,
    progress: bool,
) -> int:
    """Decodes captures into Parquet tables: exchanges by day, connections, problems, latency.

    Files of one rotation are read as one, so connections go on from file to file. Run again it only does what is
    new; stopped in the middle it goes on where it was.
    """
    from kwiresniff.capture.keylog import check_key_log
    from kwiresniff.pipeline.batch_run import Run
    from kwiresniff.pipeline.hadoop import HadoopInputs, is_remote
    from kwiresniff.pipeline.output_store import OutputStore

    if keylog is not None:
        check_key_log(keylog)
        keylog = os.path.abspath(keylog)
    start = _starter(master, remote, verbose)
    run = Run(
        inputs,
        out,
        remote=HadoopInputs(start(), OutputStore(out).inputs) if any(map(is_remote, inputs)) else None,
        settings=_settings(port, redact, redact_key, audit, keylog, where),
        parallelism=partitions or slots(master, remote),
        tables=_tables(tables, audit),
        grouping=grouping,
        resume=resume,
        both_ends=both_ends,
    )
    with _bar(run.job, wanted=progress) as step:
        manifest = run.execute(start, step)
    if not quiet:
        print(f"kwiresniff: {out}: {_summary(manifest)}", file=sys.stderr)
    return FAILED if manifest["failed"] else 0


@command.command("watch")
@click.argument("folder", metavar="DIR")
@click.option("--out", metavar="DIR", required=True, help="Folder of the output; all workers must see it.")
@cluster_options
@decoding_options
@click.option("--every", metavar="TIME", default="10s", show_default=True, help="Time between two looks into DIR.")
@click.option("--settle", metavar="TIME", default="1m", show_default=True,
              help="A file that has not changed for so long is finished, as is one with a successor.")  # fmt: skip
@click.option("--idle", metavar="TIME", default="1h", show_default=True,
              help="Connections silent for so long, by the captures' clock, are ended.")  # fmt: skip
@click.option("--once", is_flag=True, help="Read what is there and stop; connections stay open for the next time.")
@click.option("--finish", is_flag=True, help="The same, and it was all: every file is finished, connections end.")
@click.option("-q", "quiet", is_flag=True, help="No summary on stderr.")
@click.option("--no-progress", "progress", flag_value=False, default=True, help="No progress bar on stderr.")
def watch_command(
    folder: str,
    out: str,
    master: str,
    remote: str | None,
    verbose: bool,
    tables: str,
    grouping: str,
    audit: str | None,
    port: tuple[int, ...],
    redact: bool,
    redact_key: str | None,
    every: str,
    settle: str,
    idle: str,
    once: bool,
    finish: bool,
    quiet: bool,
    progress: bool,
) -> int:
    """Decodes captures as they arrive in DIR, like those of a tcpdump that rotates its files.

    Connections go on from file to file. Stopped, killed and started again it goes on where it was, with nothing twice
    and nothing left out; Ctrl-C stops it. Options are to stay the same from one time to the next. TLS is told as such:
    "pipeline run" decrypts it.
    """
    from kwiresniff.pipeline.watch import Watch

    watch = Watch(
        folder,
        out,
        settings=_settings(port, redact, redact_key, audit),
        idle_ns=_duration(idle, "--idle"),
        settle_s=_duration(settle, "--settle") / 1e9,
        every_s=None if once else _duration(every, "--every") / 1e9,
        finish=finish,
        tables=_tables(tables, audit),
        grouping=grouping,
    )
    with _counter(wanted=progress) as step:
        manifest = watch.execute(_starter(master, remote, verbose), step)
    if not quiet:
        print(f"kwiresniff: {out}: {_summary(manifest)}", file=sys.stderr)
    return FAILED if manifest["this_run"]["failed"] else 0


@command.command("query")
@click.argument("folder", metavar="DIR")
@click.argument("sql", metavar="SQL")
@click.option("-o", "form", type=click.Choice(["table", "jsonl"]), default="table", show_default=True)
@click.option("--variant", is_flag=True, help="Bodies as VARIANT: request_body:topics[0].name.")
@cluster_options
def query_command(
    folder: str, sql: str, form: str, variant: bool, master: str, remote: str | None, verbose: bool
) -> None:
    """SQL over what "pipeline run" wrote to DIR.

    Tables: exchanges, connections, problems, records, errors, clients, audit, and latency and topic_latency, whose
    histograms add up: SELECT api, percentile_ns(collect_list(latency), 0.99) FROM latency GROUP BY api.
    """
    from kwiresniff.pipeline.output_store import OutputStore
    from kwiresniff.pipeline.query import query
    from kwiresniff.pipeline.spark_session import start_session
    from kwiresniff.pipeline.sql_check import check_sql

    OutputStore(folder).check()
    check_sql(sql, TABLES)
    with _warehouse(remote) as settings:
        spark = start_session(master, remote=remote, ui=verbose, **settings)
        names, rows = query(spark, folder, sql, variants=variant)
        _print(names, rows, form)


@contextmanager
def _warehouse(remote: str | None) -> Iterator[dict[str, str]]:
    """Spark's setting for a folder of tables that goes away: it makes one, in the current folder if it is not told
    where, as soon as a name is looked for that is no view's."""
    if remote is not None:
        yield {}
        return
    with TemporaryDirectory(prefix="kwiresniff-", ignore_cleanup_errors=True) as folder:
        yield {"spark__sql__warehouse__dir": Path(folder).as_uri()}


def _print(names: list[str], rows: Iterator[list[Any]], form: str) -> None:
    if form == "jsonl":
        from kwiresniff.export import JsonEncoder, Output

        line = JsonEncoder().line
        with Output("-") as out:
            out.stream.writelines(line(dict(zip(names, row, strict=True))) for row in rows)
        return
    from kwiresniff.render import console, plain_table

    console().print(plain_table(names, [[_cell(value) for value in row] for row in rows]))


def slots(master: str, remote: str | None) -> int:
    """How many tasks can run at once as far as the master's name tells; a guess for clusters."""
    cluster = 64
    if remote is not None or not master.startswith("local"):
        return cluster
    inside = master.removeprefix("local").strip("[]").split(",")[0]
    return int(inside) if inside.isdigit() else 1 if not inside else os.cpu_count() or 1


def _starter(master: str, remote: str | None, verbose: bool) -> Callable[[], Any]:
    def start() -> Any:
        from kwiresniff.pipeline.spark_session import start_session

        spark = start_session(master, remote=remote, ui=verbose, **_NO_SQL)
        if verbose and remote is None:
            print(f"kwiresniff: Spark at {spark.sparkContext.uiWebUrl}", file=sys.stderr)
        return spark

    return start


def _settings(
    port: tuple[int, ...],
    redact: bool,
    redact_key: str | None,
    audit: str | None,
    keylog: str | None = None,
    where: str | None = None,
) -> Settings:
    from kwiresniff.pipeline.unit_reader import Settings

    if where is not None:
        from kwiresniff.analysis.filter import compile_filter

        compile_filter(where)  # a mistake in it is told now

    if audit is not None:
        from kwiresniff.schema import find_release

        try:
            audit = find_release(audit)
        except SchemaError as error:
            raise click.BadParameter(str(error), param_hint="'--audit'") from error
    if redact and redact_key is None:
        redact_key = secrets.token_hex(16)
    return Settings("records", port, redact_key, audit, keylog, where)


def _duration(text: str, option: str) -> int:
    found = duration_ns(text)
    if found is None or found <= 0:
        raise click.BadParameter(f"{text!r} is no duration like 30s, 10m or 1h", param_hint=f"'{option}'")
    return found


def _tables(text: str, audit: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in TABLES:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(TABLES)}", param_hint="'--write'")
    if "audit" in names and audit is None:
        raise click.BadParameter("the table audit needs --audit RELEASE", param_hint="'--write'")
    return names if audit is None or "audit" in names else (*names, "audit")


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _summary(manifest: dict[str, Any]) -> str:
    run, total = manifest["this_run"], manifest["total"]
    new = f"{run['rows'].get('exchanges', 0)} exchanges from {run['files']} files"
    done = f"; {total['rows'].get('exchanges', 0)} exchanges in all" if total != _only_totals(run) else ""
    problems = total["rows"].get("problems", 0)
    told = f", {problems} problems (table problems)" if problems else ""
    failed = f"; failed: {', '.join(manifest['failed'])}" if manifest.get("failed") else ""
    return new + done + told + failed


def _only_totals(run: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in ("sources", "units")}


@contextmanager
def _bar(job: Job, *, wanted: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A bar over bytes when someone is there to see it; the step takes the totals of the run so far."""
    if not (wanted and job.units and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from kwiresniff.render import console

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console("auto", stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("starting Spark", total=job.bytes_to_do)

        def step(done: dict[str, Any]) -> None:
            text = f"{done['files']} files, {done['rows'].get('exchanges', 0)} exchanges"
            bar.update(task, completed=done["bytes"], description=text)

        yield step


@contextmanager
def _counter(*, wanted: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A line of counts when someone is there to see it, without an end in sight."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda _: None
        return
    from kwiresniff.render import console

    with console("auto", stderr=True).status("starting Spark") as status:

        def step(done: dict[str, Any]) -> None:
            status.update(f"{done['files']} files, {done['rows'].get('exchanges', 0)} exchanges")

        yield step
