"""Batches of rows for Spark, of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

from kwiresniff.export.row_buffer import RowBuffer
from kwiresniff.export.table_columns import arrow_schema
from kwiresniff.model import Exchange
from kwiresniff.pipeline.entities import Entities
from kwiresniff.pipeline.plan import WorkUnit
from kwiresniff.pipeline.rows import Row, rows_of
from kwiresniff.pipeline.unit_reader import Pass, Settings, UnitReader

#: Rows of a batch for Spark. Large bodies end it sooner: a batch is held as rows, as columns and on the way.
BATCH_ROWS = 4_096
BATCH_BYTES = 8 << 20
#: Columns with names from bodies.
ENTITY_COLUMNS = frozenset({"topics", "partitions", "groups"})


def table_batches(table: str, unit: WorkUnit, settings: Settings, names: Sequence[str] = ()) -> Iterator[Any]:
    """The rows of one table that a unit gives, as ``pyarrow.RecordBatch``, in order; of some columns or of all."""
    reading = UnitReader(unit, settings, text=table == "exchanges")
    if table == "segments":
        return _row_batches(table, names, map(reading.rows.segment, reading.segments()))
    return event_batches(table, reading, names)


def event_batches(table: str, reading: Pass, names: Sequence[str] = ()) -> Iterator[Any]:
    """The rows of one table that events give; of some columns or of all."""
    rows = reading.rows
    if table == "exchanges":
        return _row_batches(table, names, _exchange_rows(reading, names))
    return _row_batches(table, names, (row for event in reading.events() for row in rows_of(table, event, rows)))


def _exchange_rows(reading: Pass, names: Sequence[str]) -> Iterator[Row]:
    has_entities = not names or not ENTITY_COLUMNS.isdisjoint(names)
    entities = Entities(reading.rows.topic_name)
    for event in reading.events():
        if isinstance(event, Exchange):
            if has_entities:
                entities.find(event)
            yield reading.rows.exchange(event, entities)


def _row_batches(table: str, names: Sequence[str], rows: Iterable[Row]) -> Iterator[Any]:
    schema = arrow_schema(table)

    def batch(buffer: RowBuffer) -> Any:
        found = import_module("pyarrow").RecordBatch.from_arrays(buffer.arrays(schema), schema=schema)
        return found.select(names or schema.names)

    buffer = RowBuffer()
    for row in rows:
        buffer.add(row)
        if buffer.rows >= BATCH_ROWS or buffer.held_bytes >= BATCH_BYTES:
            yield batch(buffer)
            buffer = RowBuffer()
    if buffer.rows:
        yield batch(buffer)
