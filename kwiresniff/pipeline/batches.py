"""Rows to Arrow: bounded buffers of Python rows, turned into columns at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

from kwiresniff.pipeline.columns import arrow_schema
from kwiresniff.pipeline.rows import Row

#: Rows of a batch for Spark. Large bodies end it sooner: a batch is held as rows, as columns and on the way.
BATCH_ROWS = 4_096
BATCH_BYTES = 8 << 20
#: What a row takes besides its texts, about.
ROW_BYTES = 256


def row_bytes(row: Row) -> int:
    """About what a row takes in memory."""
    return ROW_BYTES + sum([len(value) for value in row if value.__class__ is str or value.__class__ is bytes])


def arrow_batches(table: str, rows: Iterable[Row]) -> Iterator[Any]:
    """All rows as ``pyarrow.RecordBatch``, in order."""
    arrow = import_module("pyarrow")
    schema = arrow_schema(table)
    held: list[Row] = []
    size = 0
    for row in rows:
        held.append(row)
        size += row_bytes(row)
        if len(held) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield arrow.RecordBatch.from_arrays(columns(arrow, held, schema), schema=schema)
            held, size = [], 0
    if held:
        yield arrow.RecordBatch.from_arrays(columns(arrow, held, schema), schema=schema)


def columns(arrow: Any, rows: Sequence[Row], schema: Any) -> list[Any]:
    """The columns of a schema from rows with as many values."""
    return [arrow.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
