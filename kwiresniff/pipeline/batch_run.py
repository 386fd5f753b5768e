"""The driver of ``pipeline run``: what is there, what is done already, what is left to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kwiresniff import __version__
from kwiresniff.errors import ExportError
from kwiresniff.export.table_columns import WRITTEN
from kwiresniff.pipeline.deduplication import shared
from kwiresniff.pipeline.failures import spark_errors, wait_for
from kwiresniff.pipeline.hadoop import HadoopInputs, is_remote, local_path
from kwiresniff.pipeline.observed_connections import ObservedConnection
from kwiresniff.pipeline.output_store import Commit, OutputStore
from kwiresniff.pipeline.plain_values import from_plain
from kwiresniff.pipeline.plan import CaptureSeries, WorkUnit, grouped, local_files, plan, share_out
from kwiresniff.pipeline.software import software
from kwiresniff.pipeline.spark_tasks import observe, run_units
from kwiresniff.pipeline.task import add_totals, options_of, settings_text, totals
from kwiresniff.pipeline.unit_reader import Settings


@dataclass(frozen=True, slots=True)
class Job:
    """The work of a run: ``units`` are left, ``stale`` are commits that do not hold any more."""

    units: tuple[WorkUnit, ...]
    stale: tuple[str, ...]

    @property
    def bytes_to_do(self) -> int:
        """On disk, of all sources that have a unit left."""
        return sum(unit.source.size_bytes for unit in self.units if unit.shard == 0)


def make_job(sources: Sequence[CaptureSeries], parallelism: int, commits: dict[str, Commit], settings: str) -> Job:
    """Compares what is wanted with what is committed.

    A source counts as done when all shards of it are committed for exactly these files and settings, into however
    many shards it was split; a unit of it that is done is kept. ``stale`` are commits of these sources that do not
    fit any more. Raises ExportError when reading a source again would lose what was read from files that are gone.
    """
    units: list[WorkUnit] = []
    stale: list[str] = []
    planned = plan(sources, parallelism)
    by_source: dict[str, list[WorkUnit]] = {}
    for unit in planned:
        by_source.setdefault(unit.source.id, []).append(unit)
    for source_id, unit_list in by_source.items():
        source = unit_list[0].source
        mine = {name: commit for name, commit in commits.items() if name.startswith(f"{source_id}-")}
        good = {
            name
            for name, commit in mine.items()
            if commit["failed"] is None
            and commit["fingerprint"]
            == WorkUnit(source, commit["unit"]["shard"], commit["unit"]["shards"]).fingerprint(settings)
        }
        whole = {mine[name]["unit"]["shards"] for name in good}
        kept = next((set(_names(source, n)) for n in whole if good.issuperset(_names(source, n))), None)
        if kept is None and mine and _only_fewer(source, mine.values()):
            kept = set(mine)
        if kept is None:
            kept = good & {unit.id for unit in unit_list}
            units += [unit for unit in unit_list if unit.id not in kept]
        stale += [name for name in mine if name not in kept]
    left = set(units)
    return Job(tuple(unit for unit in planned if unit in left), tuple(stale))


def _only_fewer(source: CaptureSeries, commits: Iterable[Commit]) -> bool:
    """Whether all that has changed since the commits is that some files are gone, as a rotation deletes them."""
    for commit in commits:
        known = {file.path: file for file in from_plain(WorkUnit, commit["unit"]).source.files}
        gone = sorted(known.keys() - {file.path for file in source.files})
        if not gone:
            return False
        if any(known.get(file.path) != file for file in source.files):
            raise ExportError(
                f"{gone[0]}: gone since an earlier run, while others of {source.name} are new, and a series is read "
                "as a whole; use --grouping file, or another --out"
            )
    return True


def _names(source: CaptureSeries, shards: int) -> list[str]:
    return [WorkUnit(source, shard, shards).id for shard in range(shards)]


def assign_connections(
    sources: Sequence[CaptureSeries], seen: dict[str, list[ObservedConnection]]
) -> list[CaptureSeries]:
    """The sources, each connection assigned to one of those that have seen it (``LeftOut``, ``Filled``)."""
    left_out, filled = shared(seen)
    by_name = {source.name: source for source in sources}
    found = []
    for source in sources:
        more = tuple(filled.get(source.name, ()))
        others = tuple(by_name[name] for name in sorted({one.other for one in more}))
        found.append(replace(source, left_out=tuple(left_out.get(source.name, ())), filled=more, others=others))
    return found


def keep_assignments(sources: Sequence[CaptureSeries], before: Iterable[CaptureSeries]) -> list[CaptureSeries]:
    """The sources, with the assignments of earlier runs to captures that have been deleted since."""
    by_name = {source.name: source for source in before}
    gone = by_name.keys() - {source.name for source in sources}
    found = []
    for source in sources:
        earlier = by_name.get(source.name, source)
        left = tuple(one for one in earlier.left_out if one.kept in gone)
        if earlier.files == source.files and (left or any(one.other in gone for one in earlier.filled)):
            found.append(earlier)
        else:
            found.append(replace(source, left_out=(*source.left_out, *left)))
    return found


class Run:
    """One run into an output folder, prepared: ``job`` is what it is going to do."""

    def __init__(
        self,
        inputs: Sequence[str],
        out: str,
        *,
        settings: Settings,
        parallelism: int,
        tables: Sequence[str] = WRITTEN,
        grouping: str = "series",
        resume: bool = True,
        both_ends: bool = False,
        remote: HadoopInputs | None = None,
    ) -> None:
        """With ``both_ends`` a connection that two sources have captured is reported by one of them.

        ``remote`` is needed when some of the inputs are URIs of other file systems.
        """
        self.store = OutputStore(out)
        self._settings = replace(settings, software=software())
        self._tables = tuple(tables)
        self._parallelism = parallelism
        self._remote = remote
        files = local_files([local_path(one) for one in inputs if not is_remote(one)])
        if remote is not None:
            files += remote.files([one for one in inputs if is_remote(one)])
        self._sources = grouped(files, grouping)
        if os.path.isdir(self.store.watch):
            raise ExportError(f"{out}: holds the output of 'pipeline watch'; name another folder")
        self._fresh = not resume
        self._both_ends = both_ends
        self._options = {**options_of(settings, tables, grouping), "--both-ends": both_ends}
        self.store.check_options(self._options, fresh=self._fresh)
        self._done = totals([])
        self.job = self._make_job()

    def execute(self, start_session: Callable[[], Any], progress: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Does what is left and returns the manifest. ``progress`` gets the totals of this run from time to time."""
        with self.store.locked():
            if self._both_ends:
                self._leave_out(start_session)
            if self._fresh:
                self.store.empty()
            self.store.create(self._options)
            self.store.forget(self.job.stale)
            self.store.clean()
            if self.job.units:
                with self._fetched([unit.source for unit in self.job.units]):
                    self._submit(start_session(), progress)
                self.store.clean()  # attempts that were given up
            manifest = self._manifest()
            self.store.write_manifest(manifest)
            return manifest

    def _fetched(self, sources: Iterable[CaptureSeries]) -> AbstractContextManager[None]:
        if self._remote is None:
            return nullcontext()
        return self._remote.fetched(file for source in sources for file in source.all_files)

    def _make_job(self) -> Job:
        commits = {} if self._fresh else self.store.commits()
        return make_job(self._sources, self._parallelism, commits, settings_text(self._settings, self._tables))

    def _leave_out(self, start_session: Callable[[], Any]) -> None:
        """Looks at the packets of all sources, and leaves each connection to one of them."""
        seen: dict[str, list[ObservedConnection]] = {}
        if len(self._sources) > 1:
            with self._fetched(self._sources):
                spark = start_session()
                with spark_errors():
                    seen = observe(spark, list(map(WorkUnit, self._sources)), self._settings)
        commits = {} if self._fresh else self.store.commits()
        before = [from_plain(WorkUnit, one["unit"]).source for one in commits.values()]
        self._sources = keep_assignments(assign_connections(self._sources, seen), before)
        self.job = self._make_job()

    def _submit(self, spark: Any, progress: Callable[[dict[str, Any]], None]) -> None:
        tasks = share_out(self.job.units, self._parallelism)
        work = partial(run_units, spark, tasks, self._settings, self._tables, self.store.out)
        # A session of this process stops its jobs by itself; one on a server does not.
        wait_for(work, lambda: progress(self._this_run()), spark.interruptAll)

    def _this_run(self) -> dict[str, Any]:
        """The totals of what this run has done."""
        mine = {unit.id for unit in self.job.units}
        new = self.store.new_commits()
        self._done = add_totals(self._done, totals([commit for name, commit in new.items() if name in mine]))
        return self._done

    def _manifest(self) -> dict[str, Any]:
        commits = self.store.commits()
        return {
            "kwiresniff": __version__,
            "sources": len({commit["unit"]["source"]["name"] for commit in commits.values()}),
            "this_run": {"sources": len(self._sources), "units": len(self.job.units), **self._this_run()},
            "total": totals(list(commits.values())),
            "failed": {
                commit["unit"]["source"]["name"]: commit["failed"] for commit in commits.values() if commit["failed"]
            },
        }
