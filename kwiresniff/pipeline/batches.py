"""Rows and columns to Arrow: bounded buffers, turned into batches for Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain, islice
from typing import Any

from kwiresniff.export.arrow_arrays import arrow_array
from kwiresniff.model import Exchange
from kwiresniff.pipeline.columns import TABLES, arrow_schema
from kwiresniff.pipeline.entities import Entities
from kwiresniff.pipeline.exchange_table import ExchangeRows
from kwiresniff.pipeline.plan import WorkUnit
from kwiresniff.pipeline.rows import Block, Row, rows_of
from kwiresniff.pipeline.unit_reader import Reading, Settings, UnitReader

#: Rows of a batch for Spark. Large bodies end it sooner: a batch is held as rows, as columns and on the way.
BATCH_ROWS = 4_096
BATCH_BYTES = 8 << 20
#: Rows that are made columns at once.
ROWS_AT_ONCE = 256
#: Columns that tell what bodies speak of.
ENTITY_COLUMNS = frozenset({"topics", "partitions", "groups"})
#: The place of the first of the texts of a record: key, value, headers.
_KEY = [column.name for column in TABLES["records"]].index("key")
#: What a row takes besides its texts, about.
ROW_BYTES = 256


def table_batches(table: str, unit: WorkUnit, settings: Settings, names: Sequence[str] = ()) -> Iterator[Any]:
    """The rows of one table that a unit gives, as ``pyarrow.RecordBatch``, in order; of some columns or of all."""
    reading = UnitReader(unit, settings, text=table == "exchanges")
    if table == "segments":
        return _selected(arrow_batches(table, _blocks(map(reading.rows.segment, reading.segments()))), names)
    return event_batches(table, reading, names)


def event_batches(table: str, reading: Reading, names: Sequence[str] = ()) -> Iterator[Any]:
    """The rows of one table that events give; of some columns or of all."""
    if table == "exchanges":
        return _exchange_batches(reading, names)
    blocks: Iterable[tuple[Block, int]]
    if table == "records":
        exchanges = (event for event in reading.events() if isinstance(event, Exchange))
        blocks = ((block, block_bytes(block)) for one in exchanges for block in reading.rows.records(one))
    else:
        blocks = _blocks(row for event in reading.events() for row in rows_of(table, event, reading.rows))
    return _selected(arrow_batches(table, blocks), names)


def _blocks(rows: Iterator[Row]) -> Iterator[tuple[Block, int]]:
    while some := list(islice(rows, ROWS_AT_ONCE)):
        yield list(zip(*some, strict=True)), sum(map(row_bytes, some))


def _selected(batches: Iterator[Any], names: Sequence[str]) -> Iterator[Any]:
    return (batch.select(list(names)) for batch in batches) if names else batches


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
            if part.rows >= BATCH_ROWS or part.held_bytes >= BATCH_BYTES:
                yield _batch(arrow, part, schema)
                part = table.part()
    if part.rows:
        yield _batch(arrow, part, schema)


def _batch(arrow: Any, part: ExchangeRows, schema: Any) -> Any:
    return arrow.RecordBatch.from_arrays(part.arrays(arrow, schema), schema=schema)


def row_bytes(row: Row) -> int:
    """About what a row takes in memory."""
    return ROW_BYTES + sum([len(value) for value in row if value.__class__ is str or value.__class__ is bytes])


def block_bytes(block: Block) -> int:
    """About what the rows of a block of ``records`` take in memory."""
    texts = [len(value) for column in block[_KEY : _KEY + 3] for value in column if value is not None]
    return ROW_BYTES * len(block[0]) + sum(texts)


def arrow_batches(table: str, blocks: Iterable[tuple[Block, int]]) -> Iterator[Any]:
    """All rows as ``pyarrow.RecordBatch``, in order, from blocks with about what each takes in memory."""
    arrow = import_module("pyarrow")
    schema = arrow_schema(table)
    held: list[Block] = []
    rows = size = 0
    for block, size_bytes in blocks:
        held.append(block)
        rows += len(block[0])
        size += size_bytes
        if rows >= BATCH_ROWS or size >= BATCH_BYTES:
            yield arrow.RecordBatch.from_arrays(columns(held, schema), schema=schema)
            held, rows, size = [], 0, 0
    if held:
        yield arrow.RecordBatch.from_arrays(columns(held, schema), schema=schema)


def columns(blocks: Sequence[Block], schema: Any, *, left_out: int = 0) -> list[Any]:
    """The columns of a schema from blocks, of whose columns the first ones may be left out."""
    values = [list(chain.from_iterable(parts)) for parts in list(zip(*blocks, strict=True))[left_out:]]
    return [arrow_array(column, field.type) for column, field in zip(values, schema, strict=True)]
