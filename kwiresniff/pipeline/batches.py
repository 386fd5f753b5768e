"""Rows to Arrow: buffers that know what they hold, and batches of bounded size for Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, TypeVar

from kwiresniff.export.nested_columns import struct_of
from kwiresniff.export.table_columns import arrow_schema
from kwiresniff.model import Exchange
from kwiresniff.pipeline.entities import Entities
from kwiresniff.pipeline.exchange_table import ExchangeRows
from kwiresniff.pipeline.plan import WorkUnit
from kwiresniff.pipeline.rows import Row, rows_of
from kwiresniff.pipeline.unit_reader import Pass, Settings, UnitReader

#: Rows of a batch for Spark. Large bodies end it sooner: a batch is held as rows, as columns and on the way.
BATCH_ROWS = 4_096
BATCH_BYTES = 8 << 20
#: Columns that tell what bodies speak of.
ENTITY_COLUMNS = frozenset({"topics", "partitions", "groups"})


class RowBuffer:
    """Rows of a table other than ``exchanges`` until they become arrays. ``rows`` counts them, ``held_bytes`` is about
    what they take in memory."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.rows = 0
        self.held_bytes = 0
        self._columns = struct_of(import_module("pyarrow"), schema)

    def add(self, row: Row) -> int:
        """One more row; returns about what it takes in memory."""
        size = self._columns.append(row)
        self.rows += 1
        self.held_bytes += size
        return size

    def arrays(self, schema: Any) -> list[Any]:
        """The columns as arrays of a schema with the same fields."""
        return self._columns.arrays(import_module("pyarrow"), schema)


def table_batches(table: str, unit: WorkUnit, settings: Settings, names: Sequence[str] = ()) -> Iterator[Any]:
    """The rows of one table that a unit gives, as ``pyarrow.RecordBatch``, in order; of some columns or of all."""
    reading = UnitReader(unit, settings, text=table == "exchanges")
    if table == "segments":
        return _row_batches(table, names, map(reading.rows.segment, reading.segments()))
    return event_batches(table, reading, names)


def event_batches(table: str, reading: Pass, names: Sequence[str] = ()) -> Iterator[Any]:
    """The rows of one table that events give; of some columns or of all."""
    if table == "exchanges":
        return _exchange_batches(reading, names)
    return _row_batches(
        table, names, (row for event in reading.events() for row in rows_of(table, event, reading.rows))
    )


def _row_batches(table: str, names: Sequence[str], rows: Iterable[Row]) -> Iterator[Any]:
    schema = arrow_schema(table)
    for batch in _batches(rows, lambda: RowBuffer(schema), RowBuffer.add, schema):
        yield batch.select(names or schema.names)


def _exchange_batches(reading: Pass, names: Sequence[str]) -> Iterator[Any]:
    speaks = not names or not ENTITY_COLUMNS.isdisjoint(names)
    entities = Entities(reading.rows.topic_name)
    table = reading.rows.exchange_table()

    def add(part: ExchangeRows, exchange: Exchange) -> None:
        if speaks:
            entities.find(exchange)
        table.add_to(part, exchange, entities)

    exchanges = (event for event in reading.events() if event.__class__ is Exchange)
    return _batches(exchanges, table.part, add, arrow_schema("exchanges", names))


Rows = TypeVar("Rows", RowBuffer, ExchangeRows)


def _batches(
    pieces: Iterable[Any], begin: Callable[[], Rows], add: Callable[[Rows, Any], object], schema: Any
) -> Iterator[Any]:
    """Batches of what ``add`` puts piece by piece into rows that ``begin`` makes."""
    batch = import_module("pyarrow").RecordBatch
    rows = begin()
    for piece in pieces:
        add(rows, piece)
        if rows.rows >= BATCH_ROWS or rows.held_bytes >= BATCH_BYTES:
            yield batch.from_arrays(rows.arrays(schema), schema=schema)
            rows = begin()
    if rows.rows:
        yield batch.from_arrays(rows.arrays(schema), schema=schema)
