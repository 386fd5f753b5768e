"""Rows to Arrow: buffers that know what they hold, and batches of bounded size for Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain
from typing import Any

from kwiresniff.analysis.latency import Histogram
from kwiresniff.export.arrow_arrays import arrow_array
from kwiresniff.model import Exchange
from kwiresniff.pipeline.aggregate import SketchColumn
from kwiresniff.pipeline.columns import TABLES, arrow_schema
from kwiresniff.pipeline.entities import Entities
from kwiresniff.pipeline.exchange_table import ExchangeRows
from kwiresniff.pipeline.plan import WorkUnit
from kwiresniff.pipeline.rows import Block, Row, rows_of
from kwiresniff.pipeline.unit_reader import Reading, Settings, UnitReader

#: Rows of a batch for Spark. Large bodies end it sooner: a batch is held as rows, as columns and on the way.
BATCH_ROWS = 4_096
BATCH_BYTES = 8 << 20
#: Columns that tell what bodies speak of.
ENTITY_COLUMNS = frozenset({"topics", "partitions", "groups"})
#: The place of the first of the texts of a record: key, value, headers.
_KEY = [column.name for column in TABLES["records"]].index("key")
#: What a row takes besides its texts, about.
ROW_BYTES = 256


class RowBuffer:
    """Rows of a table other than ``exchanges`` until they become arrays. ``rows`` counts them, ``held_bytes`` is about
    what they take in memory."""

    def __init__(self) -> None:
        self.rows = 0
        self.held_bytes = 0
        self._rows: list[Row] = []
        self._blocks: list[Block] = []

    def add(self, row: Row) -> int:
        """One more row; returns about what it takes in memory."""
        self._rows.append(row)
        self.rows += 1
        size = ROW_BYTES + sum([len(value) for value in row if value.__class__ is str or value.__class__ is bytes])
        self.held_bytes += size
        return size

    def add_records(self, block: Block) -> int:
        """Some more rows of ``records``; returns about what they take in memory."""
        self._blocks.append(block)
        self.rows += len(block[0])
        texts = [len(value) for column in block[_KEY : _KEY + 3] for value in column if value is not None]
        size = ROW_BYTES * len(block[0]) + sum(texts)
        self.held_bytes += size
        return size

    def arrays(self, schema: Any, *, left_out: int = 0) -> list[Any]:
        """The columns of a schema, which has not the first ``left_out`` ones of the table."""
        blocks = [*self._blocks, list(zip(*self._rows, strict=True))] if self._rows else self._blocks
        values = [list(chain.from_iterable(parts)) for parts in list(zip(*blocks, strict=True))[left_out:]]
        return [_array(column, field.type) for column, field in zip(values, schema, strict=True)]


def _array(values: list[Any], kind: Any) -> Any:
    if not values or values[0].__class__ is not Histogram:
        return arrow_array(values, kind)
    column = SketchColumn()
    for value in values:
        column.add(value)
    return column.array(import_module("pyarrow"), kind)


def table_batches(table: str, unit: WorkUnit, settings: Settings, names: Sequence[str] = ()) -> Iterator[Any]:
    """The rows of one table that a unit gives, as ``pyarrow.RecordBatch``, in order; of some columns or of all."""
    reading = UnitReader(unit, settings, text=table == "exchanges")
    if table == "segments":
        return _row_batches(table, names, map(reading.rows.segment, reading.segments()), RowBuffer.add)
    return event_batches(table, reading, names)


def event_batches(table: str, reading: Reading, names: Sequence[str] = ()) -> Iterator[Any]:
    """The rows of one table that events give; of some columns or of all."""
    rows, events = reading.rows, reading.events()
    if table == "exchanges":
        return _exchange_batches(reading, names)
    if table == "records":
        blocks = (block for event in events if isinstance(event, Exchange) for block in rows.records(event))
        return _row_batches(table, names, blocks, RowBuffer.add_records)
    return _row_batches(table, names, (row for event in events for row in rows_of(table, event, rows)), RowBuffer.add)


def _row_batches(
    table: str, names: Sequence[str], pieces: Iterable[Any], add: Callable[[RowBuffer, Any], int]
) -> Iterator[Any]:
    """Batches of the rows that ``add`` puts into a buffer, piece by piece."""
    arrow = import_module("pyarrow")
    schema = arrow_schema(table)
    buffer = RowBuffer()
    for piece in pieces:
        add(buffer, piece)
        if _is_full(buffer):
            yield _batch(arrow, buffer.arrays(schema), schema).select(names or schema.names)
            buffer = RowBuffer()
    if buffer.rows:
        yield _batch(arrow, buffer.arrays(schema), schema).select(names or schema.names)


def _exchange_batches(reading: Reading, names: Sequence[str]) -> Iterator[Any]:
    arrow = import_module("pyarrow")
    schema = arrow_schema("exchanges", names)
    speaks = not names or not ENTITY_COLUMNS.isdisjoint(names)
    entities = Entities(reading.rows.topic_name)
    table = reading.rows.exchange_table()
    part = table.part()
    for event in reading.events():
        if event.__class__ is Exchange:
            if speaks:
                entities.find(event)
            table.add_to(part, event, entities)
            if _is_full(part):
                yield _batch(arrow, part.arrays(arrow, schema), schema)
                part = table.part()
    if part.rows:
        yield _batch(arrow, part.arrays(arrow, schema), schema)


def _is_full(rows: RowBuffer | ExchangeRows) -> bool:
    return rows.rows >= BATCH_ROWS or rows.held_bytes >= BATCH_BYTES


def _batch(arrow: Any, arrays: list[Any], schema: Any) -> Any:
    return arrow.RecordBatch.from_arrays(arrays, schema=schema)
