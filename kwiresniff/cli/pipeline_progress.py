"""The messages of the pipeline's commands on stderr, while they run and at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kwiresniff.cli.outcomes import one_line
from kwiresniff.render.terminal import console

#: Files that are named at the end of a run; manifest.json names all of them.
MAX_NAMED_FILES = 5

if TYPE_CHECKING:
    from kwiresniff.pipeline.batch_run import Job


def summary(manifest: dict[str, Any]) -> str:
    """The counts of a run, and those of the whole folder."""
    run, total = manifest["this_run"], manifest["total"]
    exchanges = run["rows"].get("exchanges", 0)
    # A file counts with the first task that reads it; an earlier run may have done that one.
    read = "files that were begun before" if exchanges and not run["files"] else f"{run['files']} files"
    new = f"{exchanges} exchanges from {read}" if total["files"] else "nothing was read"
    done = f"; {total['rows'].get('exchanges', 0)} exchanges in all" if total != _only_totals(run) else ""
    problems = total["rows"].get("problems", 0)
    problem_text = f", {problems} problems (table problems)" if problems else ""
    failed = f"; failed: {', '.join(manifest['failed'])}" if manifest.get("failed") else ""
    return new + done + problem_text + _named("not read", run["not_read"]) + failed


def _named(what: str, files: list[str]) -> str:
    """Some of the files, and how many there are besides."""
    if not files:
        return ""
    more = f" and {len(files) - MAX_NAMED_FILES} more" if len(files) > MAX_NAMED_FILES else ""
    return f"; {what}: {', '.join(map(one_line, files[:MAX_NAMED_FILES]))}{more}"


def _only_totals(run: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in ("sources", "units")}


def _counts(done: dict[str, Any]) -> str:
    return f"{done['files']} files, {done['rows'].get('exchanges', 0)} exchanges"


@contextmanager
def bar(job: Job, *, enabled: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A bar over bytes when someone is there to see it; the step takes the totals of the run so far."""
    if not (enabled and job.units and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console("auto", stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task("starting Spark", total=job.bytes_to_do)
        yield lambda done: progress.update(task, completed=done["bytes"], description=_counts(done))


@contextmanager
def counter(*, enabled: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A line of counts when someone is there to see it, without an end in sight."""
    if not (enabled and sys.stderr.isatty()):
        yield lambda _: None
        return
    with console("auto", stderr=True).status("starting Spark") as status:
        yield lambda done: status.update(_counts(done))
