"""SQL over what ``pipeline run`` wrote: its tables as views, and functions for its histograms."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator
from datetime import UTC, date, timedelta
from typing import Any

from kwiresniff.export.table_columns import TABLES, WRITABLE, ddl
from kwiresniff.pipeline.aggregate import merged
from kwiresniff.pipeline.failures import spark_errors
from kwiresniff.pipeline.output_store import OutputStore

#: The characters of Hadoop's patterns and of its escapes.
_PATTERN = re.compile(r"[\\*?\[\]{}]")


#: A log across sources: topics of one name in two clusters are two. A source that was never told a cluster's id has the
#: one that another source, or batch, was told of one of its brokers, at the time that is nearest.
_LOGS = """
CREATE OR REPLACE TEMPORARY VIEW logs AS
WITH named AS (
  SELECT here.source, here.cluster, min_by(there.cluster_id, struct(
    there.source <> here.source,
    greatest(
      0,
      unix_micros(here.first_time) - unix_micros(there.last_time),
      unix_micros(there.first_time) - unix_micros(here.last_time)),
    there.cluster_id)) AS cluster_id
  FROM clusters here JOIN clusters there ON there.broker = here.broker
  WHERE here.cluster_id IS NULL AND there.cluster_id IS NOT NULL
  GROUP BY here.source, here.cluster),
seen AS (
  SELECT source, cluster, topic, explode(from_json(get_json_object(details, '$.partitions'), 'ARRAY<STRUCT<
    partition: INT, high_watermark: BIGINT,
    produced: STRUCT<records: BIGINT, bytes: BIGINT>, consumed: STRUCT<records: BIGINT, bytes: BIGINT>>>')) AS log
  FROM topics)
SELECT coalesce(named.cluster_id, seen.cluster) AS cluster, topic, log.partition AS partition,
  max(log.high_watermark) AS high_watermark,
  sum(log.produced.records) AS produced_records, sum(log.produced.bytes) AS produced_bytes,
  sum(log.consumed.records) AS consumed_records, sum(log.consumed.bytes) AS consumed_bytes,
  array_sort(collect_set(seen.source)) AS sources
FROM seen LEFT JOIN named ON named.source = seen.source AND named.cluster = seen.cluster
GROUP BY 1, 2, 3
"""


def percentile_ns(sketches: list[Any] | None, fraction: float) -> int | None:
    """The latency at or below which ``fraction`` of all values of several histograms lie, within 1 %."""
    total = merged(sketches or ())
    return total.percentiles([float(fraction)])[0] if total.count else None


def with_variants(frame: Any) -> Any:
    """The frame with its bodies as VARIANT, for ``request_body:topics[0].name``; null where Spark finds one too big."""
    names = {name: f"try_parse_json({name}) AS {name}" for name in ("request_body", "response_body")}
    return frame.selectExpr(*(names.get(name, f"`{name}`") for name in frame.columns))


def open_views(spark: Any, out: str, tables: Collection[str] = WRITABLE, *, variants: bool = False) -> None:
    """Makes tables of an output folder views, and ``percentile_ns(collect_list(latency), 0.99)`` a function.

    With ``variants`` bodies are VARIANT there. Of ``topics`` and ``clusters`` there is a view ``logs`` besides.
    """
    store = OutputStore(out)
    store.check()
    for table in tables:
        # Complete files alone, one by one: a run may be writing others beside them.
        reader = spark.read.schema(ddl(table)).option("basePath", f"{store.out}/{table}")
        files = store.files(table)
        if files:
            frame = reader.parquet(*map(_escaped, files)).select(*(column.name for column in TABLES[table]))
        else:
            frame = spark.createDataFrame([], ddl(table))
        (with_variants(frame) if variants else frame).createOrReplaceTempView(table)
    if {"topics", "clusters"}.issubset(tables):
        spark.sql(_LOGS)
    spark.udf.register("percentile_ns", percentile_ns, "BIGINT")


def query(spark: Any, out: str, sql: str, *, variants: bool = False) -> tuple[list[str], Iterator[list[Any]]]:
    """Column names and rows of a question; raises KwiresniffError for one that Spark does not understand."""
    words = sql.lower() + " topics clusters" * ("logs" in sql.lower())
    open_views(spark, out, [table for table in WRITABLE if table in words], variants=variants)
    # Besides raising them, Spark writes errors to stderr as JSON.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    with spark_errors("query"):
        frame = spark.sql(sql)
        return frame.columns, _rows(frame)


def _rows(frame: Any) -> Iterator[list[Any]]:
    kinds = [field.dataType for field in frame.schema.fields]
    # What is wrong with a value shows when its row comes.
    with spark_errors("query"):
        for row in frame.toLocalIterator():
            yield [_plain(value, kind) for value, kind in zip(row, kinds, strict=True)]


def _escaped(path: str) -> str:
    """The path with what Hadoop takes for a pattern in it as it is."""
    return _PATTERN.sub(r"\\\g<0>", path)


def _plain(value: Any, kind: Any) -> Any:
    """A value of a Spark SQL type: rows inside rows as mappings, times in UTC (RFC 3339); everything else as it is."""
    name = kind.typeName()
    if value is None:
        return None
    if name == "struct":
        fields = zip(kind.fields, value, strict=True)
        return {field.name: _plain(inner, field.dataType) for field, inner in fields}
    if name == "array":
        return [_plain(inner, kind.elementType) for inner in value]
    if name == "map":
        inner_kinds = kind.keyType, kind.valueType
        return {_plain(key, inner_kinds[0]): _plain(inner, inner_kinds[1]) for key, inner in value.items()}
    if name == "timestamp":  # which Spark gives as the local time of this process
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if name == "timestamp_ntz":
        return value.isoformat(timespec="microseconds")
    if name == "variant":
        return value.toPython()
    if name == "decimal":
        return float(value) if kind.scale else int(value)
    if isinstance(value, date | timedelta):
        return str(value)
    return bytes(value) if isinstance(value, bytearray) else value
