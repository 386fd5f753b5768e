"""Streams of files that arrive in a folder: an offset is a round of arrivals, a partition a source's batch.

Spark's checkpoint says which rounds a micro-batch covers, so one that was interrupted is done again with the same
files, from the same state. The rows of ``pipeline watch`` are commits: what was decoded is in the output folder then.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from kwiresniff.base.process_memory import memory_of_a_pass
from kwiresniff.pipeline.batches import event_batches
from kwiresniff.pipeline.file_watcher import FileWatcher
from kwiresniff.pipeline.open_state import Batch, BatchReading, States, batches, run_batch
from kwiresniff.pipeline.output_store import OutputStore
from kwiresniff.pipeline.plain_values import from_plain
from kwiresniff.pipeline.unit_reader import Settings


class WatchSource(DataSource):
    """Option ``job``: JSON with ``folder``, ``out``, ``grouping``, ``settle_s``, ``idle_ns``, ``settings``,
    ``tables`` and ``finish``."""

    @classmethod
    def name(cls) -> str:
        return "kwiresniff-watch"

    def schema(self) -> str:
        return "batch STRING, commit STRING"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _WatchReader(json.loads(self.options["job"]))


class _RoundsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets and partitions of ``watched``, by what is remembered in ``folder``."""

    def __init__(self, watched: str, folder: str, grouping: str, settle_s: float, *, finish: bool = False) -> None:
        self._watched = watched
        self._folder = folder
        self._grouping = grouping
        self._settle_s = settle_s
        self._finish = finish
        self._found: FileWatcher | None = None
        self._target: int | None = None

    def _watcher(self) -> FileWatcher:
        """Looked up where offsets are asked for: the reader also travels to executors, which have no use for it."""
        if self._found is None:
            self._found = FileWatcher(self._watched, self._folder, self._settle_s)
        return self._found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_found": None, "_target": None}

    def initialOffset(self) -> dict[str, int]:
        return {"round": self._watcher().first}

    def prepareForTriggerAvailableNow(self) -> None:
        # Without this Spark would do one batch alone, which may be one that was interrupted.
        self._target = self._poll()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        return {"round": self._poll() if self._target is None else self._target}

    def _poll(self) -> int:
        return self._watcher().poll(time.time_ns(), finish=self._finish)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        rounds = list(self._watcher().rounds(start["round"], end["round"]))
        work = batches(rounds, end["round"], self._watched, self._grouping, self._folder)
        return list(map(InputPartition, work)) or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if partition.value is not None:
            with memory_of_a_pass():
                yield from self.batch(partition.value)

    def batch(self, batch: Batch) -> Iterator[Any]:
        """The rows of a batch of a source."""
        raise NotImplementedError

    def commit(self, end: dict[str, int]) -> None:
        self._watcher().forget(end["round"])


class _WatchReader(_RoundsReader):
    def __init__(self, job: dict[str, Any]) -> None:
        watched, folder = job["folder"], OutputStore(job["out"]).watch
        super().__init__(watched, folder, job["grouping"], job["settle_s"], finish=job["finish"])
        self._job = job

    def batch(self, batch: Batch) -> Iterator[tuple[str, str]]:
        job = self._job
        commit = run_batch(batch, from_plain(Settings, job["settings"]), job["tables"], job["out"], job["idle_ns"])
        yield batch.id, json.dumps(commit)


class Wanted(NamedTuple):
    """The wishes of a query: ``columns`` of a table, in whose order; of a stream ``paths`` is one folder."""

    table: str
    columns: tuple[str, ...]
    paths: tuple[str, ...]
    grouping: str
    settings: Settings
    parallelism: int


class TableStream(_RoundsReader):
    """The rows of a table as files arrive. ``state`` is a folder of this query alone that all workers see, in which it
    is written what connections left open."""

    def __init__(self, wanted: Wanted, state: str, settle_s: float, idle_ns: int) -> None:
        super().__init__(os.path.abspath(wanted.paths[0]), os.path.abspath(state), wanted.grouping, settle_s)
        self._wanted = wanted
        self._idle_ns = idle_ns

    def batch(self, batch: Batch) -> Iterator[Any]:
        wanted, states = self._wanted, States(self._folder, batch.source_id)
        text = wanted.table == "exchanges"
        reading = BatchReading(batch, wanted.settings, self._idle_ns, states.before(batch.round), text=text)
        yield from event_batches(wanted.table, reading, wanted.columns)
        states.write(batch.round, *reading.state())
