"""The driver of ``pipeline watch``: a streaming query over the files that arrive in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from kwiresniff import __version__
from kwiresniff.errors import ExportError, KwiresniffError
from kwiresniff.export.table_columns import WRITTEN
from kwiresniff.pipeline.failures import spark_errors, wait_for
from kwiresniff.pipeline.hadoop import is_remote, local_path
from kwiresniff.pipeline.output_store import OutputStore
from kwiresniff.pipeline.software import software
from kwiresniff.pipeline.task import add_totals, options_of, totals
from kwiresniff.pipeline.unit_reader import Settings

#: Spark waits ten seconds for a new Python, which no setting changes: now and then too short on a busy machine. A query
#: that has ended so goes on where it stopped.
STARTS = 3
_LATE = "failed to connect back"


class Watch:
    """One watch of a folder, prepared to write into an output folder.

    ``idle_ns`` is after how much silence, in capture time, a connection is ended; ``settle_s`` for how long a file
    must not have changed to be finished. ``every_s`` is the time between two looks into the folder; None looks once,
    reads what is there and stops, leaving open what is open. ``finish`` does that too, takes every file for finished
    and then ends all connections.
    """

    def __init__(
        self,
        folder: str,
        out: str,
        *,
        settings: Settings,
        idle_ns: int,
        settle_s: float,
        every_s: float | None,
        finish: bool = False,
        tables: Sequence[str] = WRITTEN,
        grouping: str = "series",
        fresh: bool = False,
        private: bool = False,
    ) -> None:
        """``fresh`` does all of it again. ``private`` is where only one user reads and writes what is remembered."""
        if is_remote(folder):
            raise ExportError(f"{folder}: not a path; watch a folder that workers see as one")
        folder = local_path(folder)
        if not os.path.isdir(folder):
            raise ExportError(f"{folder}: no such folder to watch")
        self.store = OutputStore(out)
        if not os.path.isdir(self.store.watch) and self.store.commits():
            raise ExportError(f"{out}: holds the output of 'pipeline run'; watch into another folder")
        if os.path.commonpath([os.path.abspath(folder), self.store.out]) == os.path.abspath(folder):
            raise ExportError(f"{out}: lies in the folder that is watched; name another")
        self._options = {
            "DIR": os.path.abspath(folder), **options_of(settings, tables, grouping), "--idle": f"{idle_ns / 1e9:g}s",
        }  # fmt: skip
        self._fresh = fresh
        self._private = private
        self.store.check_options(self._options, fresh=fresh)
        self._every_s = None if finish else every_s
        self._job = {
            "folder": os.path.abspath(folder),
            "out": self.store.out,
            "grouping": grouping,
            "settle_s": settle_s,
            "idle_ns": idle_ns,
            "settings": asdict(replace(settings, software=software())),
            "tables": list(tables),
            "finish": finish,
        }
        self._before = totals([])
        self._now = totals([])

    def execute(self, start_session: Callable[[], Any], progress: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Watches until interrupted, or once; returns the manifest. ``progress`` gets the totals of this watch."""
        spark = start_session()
        with self.store.locked():
            if self._fresh:
                self.store.empty()
            self.store.create(self._options)
            self.store.create_watch(private=self._private)
            self.store.clean()
            self._before = self._new_totals()
            for left in reversed(range(STARTS)):
                try:
                    with spark_errors():
                        query = self._start(spark)
                    wait_for(query.awaitTermination, lambda: self._report(progress), query.stop)
                    break
                except KwiresniffError as error:
                    if not left or _LATE not in str(error):
                        raise
            return self._manifest()

    def _start(self, spark: Any) -> Any:
        from kwiresniff.pipeline.stream_source import WatchSource

        spark.dataSource.register(WatchSource)
        frame = spark.readStream.format("kwiresniff-watch").option("job", json.dumps(self._job)).load()
        # Reading a batch writes its tables and commits them; what is left to do with a row of the stream is nothing.
        writer = frame.writeStream.format("noop").queryName("kwiresniff watch")
        writer = writer.option("checkpointLocation", os.path.join(self.store.watch, "checkpoint"))
        if self._every_s is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self._every_s} seconds").start()

    def _report(self, progress: Callable[[dict[str, Any]], None]) -> None:
        found = self._new_totals()
        if found["files"] or found["rows"]:
            self._now = add_totals(self._now, found)
            progress(self._now)
            self.store.write_manifest(self._manifest())

    def _new_totals(self) -> dict[str, Any]:
        return totals(list(self.store.new_commits().values()))

    def _manifest(self) -> dict[str, Any]:
        return {"kwiresniff": __version__, "this_run": self._now, "total": add_totals(self._before, self._now)}
