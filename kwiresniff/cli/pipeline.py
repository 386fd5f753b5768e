"""``kwiresniff pipeline``: many captures at once, on Spark."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from kwiresniff.cli.main import FAILED, TRACEBACK

if TYPE_CHECKING:
    from kwiresniff.pipeline.run import Job

TABLES = ("exchanges", "connections", "problems", "latency", "topic_latency", "records")


def _traceback(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    if value:
        ctx.meta[TRACEBACK] = True
    return value


_CLUSTER = (
    click.option("--master", metavar="URL", default="local[*]", show_default=True, help="Spark master."),
    click.option("--remote", metavar="URL", help="Spark Connect server, like sc://host:15002, instead of a master."),
    click.option("-v", "verbose", is_flag=True, callback=_traceback, help="Spark's page while it runs. Tracebacks."),
)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of everything that starts Spark."""
    for option in reversed(_CLUSTER):
        command = option(command)
    return command


@click.group("pipeline")
def command() -> None:
    """Many captures at once, on Spark: decoded to Parquet, and SQL over it.

    Needs the extra "spark". Without a cluster all cores of this machine are used.
    """


@command.command("run")
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@click.option("--out", metavar="DIR", required=True, help="Folder of the output; all workers must see it.")
@cluster_options
@click.option("--partitions", type=click.IntRange(1), metavar="N", help="Tasks to aim at; default: the cores.")
@click.option(
    "--write",
    "tables",
    metavar="TABLES",
    default=",".join(TABLES[:-1]),
    show_default=True,
    help="Tables to write; 'records' has a row for each record.",
)
@click.option(
    "--grouping",
    type=click.Choice(["series", "file", "one"]),
    default="series",
    show_default=True,
    help="Which files share connections: those of one rotation, none, or all.",
)
@click.option("--port", type=click.IntRange(1, 65535), multiple=True, help="A port brokers listen on: a hint.")
@click.option("--redact", is_flag=True, help="Record keys, values and headers as length and keyed hash.")
@click.option("--redact-key", metavar="TEXT", envvar="KWIRESNIFF_REDACT_KEY", help="Key of those hashes.")
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
    port: tuple[int, ...],
    redact: bool,
    redact_key: str | None,
    resume: bool,
    quiet: bool,
    progress: bool,
) -> int:
    """Decodes captures into Parquet tables: exchanges by date and API, connections, problems, latency.

    Files of one rotation are read as one, so connections go on from file to file. Run again it only does what is
    new; stopped in the middle it goes on where it was.
    """
    from kwiresniff.pipeline.reading import Settings
    from kwiresniff.pipeline.run import Run
    from kwiresniff.pipeline.start import start_session

    if redact and redact_key is None:
        redact_key = secrets.token_hex(16)
    run = Run(
        inputs,
        out,
        settings=Settings("records", port, redact_key),
        parallelism=partitions or slots(master, remote),
        tables=_tables(tables),
        grouping=grouping,
        resume=resume,
    )

    def start() -> Any:
        spark = start_session(master, remote=remote, ui=verbose)
        if verbose and remote is None:
            print(f"kwiresniff: Spark at {spark.sparkContext.uiWebUrl}", file=sys.stderr)
        return spark

    with _bar(run.job, wanted=progress) as step:
        manifest = run.execute(start, step)
    if not quiet:
        print(f"kwiresniff: {out}: {_summary(manifest)}", file=sys.stderr)
    return FAILED if manifest["failed"] else 0


@command.command("query")
@click.argument("folder", metavar="DIR")
@click.argument("sql", metavar="SQL")
@click.option("-o", "form", type=click.Choice(["table", "jsonl"]), default="table", show_default=True)
@cluster_options
def query_command(folder: str, sql: str, form: str, master: str, remote: str | None, verbose: bool) -> None:
    """SQL over what "pipeline run" wrote to DIR.

    Tables: exchanges, connections, problems, records, and the aggregates latency and topic_latency, whose histograms
    add up: SELECT api, percentile_ns(collect_list(latency), 0.99) FROM latency GROUP BY api.
    """
    from kwiresniff.pipeline.query import query
    from kwiresniff.pipeline.start import start_session
    from kwiresniff.pipeline.store import Store

    Store(folder).check()
    names, rows = query(start_session(master, remote=remote, ui=verbose), folder, sql)
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


def _tables(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in TABLES:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(TABLES)}", param_hint="'--write'")
    return names


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _summary(manifest: dict[str, Any]) -> str:
    run, total = manifest["this_run"], manifest["total"]
    new = f"{run['rows'].get('exchanges', 0)} exchanges from {run['files']} files"
    done = f"; {total['rows'].get('exchanges', 0)} exchanges in all" if total != _only_totals(run) else ""
    problems = total["rows"].get("problems", 0)
    told = f", {problems} problems (table problems)" if problems else ""
    failed = f"; failed: {', '.join(manifest['failed'])}" if manifest["failed"] else ""
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
