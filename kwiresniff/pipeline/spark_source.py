"""The Spark data source ``kwiresniff``: captures as tables.

    spark.read.format("kwiresniff").load("captures/")                              # exchanges
    spark.read.format("kwiresniff").option("table", "problems").load("a.pcap")

    spark.readStream.format("kwiresniff").option("state", "state/").load("captures/")

Options: ``table`` (exchanges, connections, problems, records, segments), ``columns`` (separated by commas), ``where``
(a filter expression), ``grouping`` (series, file, one), ``depth`` (headers, errors, bodies, records), ``redactKey``,
``ports`` (separated by commas), ``decodeAs`` (rules of ``capture.decode_as``, separated by spaces), ``keylog``,
``topics``, ``maxDecompressed`` (a size as of ``--max-decompressed``), ``plugins``, ``schemas`` and ``valueFormats``
(separated by commas, as of ``--plugin``, ``--schemas`` and ``--value-format``), ``parallelism``; of streams ``state``,
``settle``, ``idle``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.types import StructType

from kwiresniff.analysis.filter import compile_filter
from kwiresniff.analysis.parse_units import duration_ns, size_bytes
from kwiresniff.base.depths import DEPTHS, Depth
from kwiresniff.base.process_memory import memory_of_a_pass
from kwiresniff.capture.decode_as import tables_of
from kwiresniff.errors import CaptureError
from kwiresniff.export.table_columns import HEADER_COLUMNS, READABLE, TABLES, ddl
from kwiresniff.pipeline.batches import table_batches
from kwiresniff.pipeline.choice import conditions
from kwiresniff.pipeline.hadoop import is_remote, local_path
from kwiresniff.pipeline.plan import file_at, find_sources, plan, share_out
from kwiresniff.pipeline.software import software
from kwiresniff.pipeline.spark_session import PUSHDOWN
from kwiresniff.pipeline.stream_source import TableStream, Wanted
from kwiresniff.pipeline.unit_reader import Settings
from kwiresniff.plugins import PluginOptions

#: Tasks to aim at by default.
PARALLELISM = 8


class CaptureSource(DataSource):
    """Captures as a table of Spark."""

    @classmethod
    def name(cls) -> str:
        return "kwiresniff"

    def schema(self) -> str:
        table = self._choice("table", READABLE)
        names = self._names("columns")
        unknown = set(names) - {column.name for column in TABLES[table]}
        if unknown:
            raise CaptureError(f"option columns: {table} has no {', '.join(sorted(unknown))}")
        return ddl(table, names)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _TableReader(self._wanted(schema.names))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        for option in ("path", "state"):
            if option not in self.options:
                raise CaptureError(f"option {option}: a stream needs it; state is a folder of its own for each query")
        if self._choice("table", READABLE) == "segments":
            raise CaptureError("a stream has no table segments")
        wanted = self._wanted(schema.names)
        times = [duration_ns(self.options.get(name, default)) for name, default in (("settle", "1m"), ("idle", "1h"))]
        if None in times:
            raise CaptureError("options settle and idle: no duration like 30s, 10m or 1h")
        settle_ns, idle_ns = (time or 0 for time in times)
        return TableStream(wanted, local_path(self.options["state"]), settle_ns / 1e9, idle_ns)

    def _wanted(self, columns: Sequence[str]) -> Wanted:
        paths = self.options.get("paths")
        found = json.loads(paths) if paths else [self.options["path"]] if "path" in self.options else []
        for path in filter(is_remote, found):
            raise CaptureError(f"{path}: not a path; 'kwiresniff pipeline run' copies captures from other file systems")
        table = self._choice("table", READABLE)
        if "where" in self.options:
            compile_filter(self.options["where"])  # a mistake is told before there are tasks
        most = self.options.get("maxDecompressed")
        max_decompressed = None if most is None else size_bytes(most)
        if most is not None and max_decompressed is None:
            raise CaptureError(f"option maxDecompressed: {most!r} is no size like 64KiB or 10MB")
        headers = table == "exchanges" and HEADER_COLUMNS.issuperset(columns)
        settings = Settings(
            cast(Depth, self._choice("depth", DEPTHS, "headers" if headers else "records")),
            tuple(map(int, self._names("ports"))),
            self.options.get("redactKey"),
            keylog=self.options.get("keylog"),
            where=self.options.get("where"),
            software=software(),
            topics=file_at(self.options["topics"]) if "topics" in self.options else None,
            decode_as=self._rules(),
            max_decompressed=max_decompressed,
        )
        plugins = self._names("plugins")
        given = PluginOptions(tuple(self._names("schemas")), tuple(self._names("valueFormats")))
        if plugins or any(given):
            settings = settings.with_plugins(plugins, given)
        grouping = self._choice("grouping", ("series", "file", "one"))
        parallelism = int(self.options.get("parallelism", PARALLELISM))
        return Wanted(table, tuple(columns), tuple(map(local_path, found)), grouping, settings, parallelism)

    def _rules(self) -> tuple[str, ...]:
        rules = tuple(self.options.get("decodeAs", "").split())
        try:
            tables_of(rules)  # a mistake is told before there are tasks
        except ValueError as error:
            raise CaptureError(f"option decodeAs: {error}") from None
        return rules

    def _names(self, option: str) -> list[str]:
        """The values of an option, separated by commas."""
        return [name.strip() for name in self.options.get(option, "").split(",") if name.strip()]

    def _choice(self, option: str, choices: Sequence[str], default: str = "") -> str:
        value = str(self.options.get(option, default or choices[0]))
        if value not in choices:
            raise CaptureError(f"option {option}: {value!r} is not one of {', '.join(choices)}")
        return value


class PushingSource(CaptureSource):
    """The form for sessions that push filters down. Spark refuses it in those that do not."""

    def reader(self, schema: StructType) -> DataSourceReader:
        return _PushingReader(self._wanted(schema.names))


class _TableReader(DataSourceReader):
    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def partitions(self) -> Sequence[InputPartition]:
        wanted = self._wanted
        units = plan(find_sources(wanted.paths, wanted.grouping), wanted.parallelism)
        return list(map(InputPartition, share_out(units, wanted.parallelism)))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        for unit in partition.value:
            with memory_of_a_pass():
                wanted = self._wanted
                yield from table_batches(wanted.table, unit, wanted.settings, wanted.columns)


class _PushingReader(_TableReader):
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes the conditions that are known before bodies are read; Spark tests all of them again."""
        wanted = self._wanted
        if wanted.table in ("exchanges", "records"):
            settings = replace(wanted.settings, pushed=tuple(conditions(filters)))
            self._wanted = wanted._replace(settings=settings)
        return filters


def register(spark: SparkSession) -> None:
    """Makes the data source known to a session."""
    pushes = spark.conf.get(PUSHDOWN, "false") == "true"
    spark.dataSource.register(PushingSource if pushes else CaptureSource)
