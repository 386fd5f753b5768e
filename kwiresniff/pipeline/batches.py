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
    return [_column(arrow, values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]


def _column(arrow: Any, values: Sequence[Any], kind: Any) -> Any:
    try:
        return arrow.array(values, kind)
    except UnicodeEncodeError:  # the name of a file may be any bytes
        return arrow.array([_encodable(value) for value in values], kind)


def _encodable(value: Any) -> Any:
    """The value with half surrogate pairs as visible escapes, which UTF-8 has no form for."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {name: _encodable(inner) for name, inner in value.items()}
    return [_encodable(inner) for inner in value] if isinstance(value, list | tuple) else value
