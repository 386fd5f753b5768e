"""The streaming data source behind ``pipeline watch``: an offset is a round of arrivals, a partition a source's batch.

Spark's checkpoint says which rounds a micro-batch covers, so one that was interrupted is done again with the same
files. The rows of the stream are commits; what was decoded is in the output folder by then.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from kwiresniff.pipeline.arrivals import Arrivals
from kwiresniff.pipeline.carry import Batch, batches, run_batch
from kwiresniff.pipeline.reading import Settings
from kwiresniff.pipeline.store import Store


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


class _WatchReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job
        self._found: Arrivals | None = None
        self._target: int | None = None

    def _arrivals(self) -> Arrivals:
        """Looked up where offsets are asked for: the reader also travels to executors, which have no use for it."""
        if self._found is None:
            self._found = Arrivals(self._job["folder"], Store(self._job["out"]).watch, self._job["settle_s"])
        return self._found

    def __getstate__(self) -> dict[str, Any]:
        return {"_job": self._job, "_found": None, "_target": None}

    def initialOffset(self) -> dict[str, int]:
        return {"round": self._arrivals().first}

    def prepareForTriggerAvailableNow(self) -> None:
        # Without this Spark would do one batch alone, which may be one that was interrupted.
        self._target = self._look()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        return {"round": self._look() if self._target is None else self._target}

    def _look(self) -> int:
        return self._arrivals().look(time.time_ns(), finish=self._job["finish"])

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        rounds = list(self._arrivals().rounds(start["round"], end["round"]))
        folder = Store(self._job["out"]).watch
        work = batches(rounds, end["round"], self._job["folder"], self._job["grouping"], folder)
        return [InputPartition(asdict(batch)) for batch in work] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, str]]:
        if partition.value is None:
            return
        job = self._job
        batch = Batch.from_json(partition.value)
        commit = run_batch(batch, Settings.from_json(job["settings"]), job["tables"], job["out"], job["idle_ns"])
        yield batch.id, json.dumps(commit)

    def commit(self, end: dict[str, int]) -> None:
        self._arrivals().forget(end["round"])
