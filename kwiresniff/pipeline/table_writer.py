"""Tables of one unit to Parquet files, in bounded memory: one file for each table, or for each of its days.

Readers look for some APIs: a row group holds the exchanges of one API, or those of the few of each of several APIs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from importlib import import_module
from typing import Any

from kwiresniff.base.time_units import EPOCH_ORDINAL
from kwiresniff.export.row_buffer import RowBuffer
from kwiresniff.export.table_columns import PARTITIONED_BY, TABLES, arrow_schema
from kwiresniff.pipeline.rows import Row

#: Bytes of rows that a unit holds before it writes the fullest buffer; a process then takes some 200 MB at most.
BUFFER_BYTES = 16 << 20
#: Days one unit may make folders for. A capture may claim any times; those of honest ones span days.
MAX_PARTITIONS = 4_096
#: Files that are written to at once; of more days the oldest file is ended, and another one begun when it comes again.
MAX_OPEN = 16
#: APIs with fewer exchanges share a row group.
MIN_GROUP_ROWS = 4_096
#: Rows of a column that become a page at once, not put together from pieces: more than there are exchanges in 16 MB.
PAGE_ROWS = 1 << 15
#: Hive's and Spark's name of the folder of rows without a value.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
#: Columns whose values hardly repeat, and that no query restricts to a range.
_TEXTS = frozenset({"request_body", "response_body", "problems", "details", "value", "key", "headers"})


class TableWriter:
    """Rows of one unit. ``publish`` moves the files to their names; else ``OutputStore.clean`` removes them."""

    def __init__(self, out: str, staging: str, unit: str) -> None:
        self._out = out
        self._staging = staging
        self._unit = unit
        self._arrow = import_module("pyarrow")
        self._buffers: dict[tuple[str, str, str], RowBuffer] = {}  # by table, folder, and API of an exchange
        self._held = 0
        self._files = _Files(staging)
        self.counts = dict.fromkeys(TABLES, 0)
        os.makedirs(staging)

    def add(self, table: str, row: Row) -> None:
        """Adds a row, and writes the fullest buffer where too much is held."""
        folder, api = table, ""
        if table in PARTITIONED_BY:
            folder, row = self._files.folder(table, row[0]), row[1:]
        if table == "exchanges":
            api = row[0] or ""
        key = table, folder, api
        buffer = self._buffers.get(key)
        if buffer is None:
            buffer = self._buffers[key] = RowBuffer()
        self._held += buffer.add(row)
        self.counts[table] += 1
        if self._held >= BUFFER_BYTES:
            self._write([max(self._buffers, key=lambda one: self._buffers[one].held_bytes)])

    def publish(self) -> list[str]:
        """Writes what is held, gives the files their names, and returns those, relative to the output folder."""
        few: dict[str, list[tuple[str, str, str]]] = {}
        for key in sorted(self._buffers, key=lambda one: (one[1], -self._buffers[one].rows, one[2])):
            if self._buffers[key].rows < MIN_GROUP_ROWS:
                few.setdefault(key[1], []).append(key)
            else:
                self._write([key])
        for keys in few.values():
            self._write(keys)
        names = []
        for staged, folder, number in self._files.ended():
            name = os.path.join(folder, f"{self._unit}-{number}.parquet")
            path = os.path.join(self._out, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.replace(staged, path)
            names.append(name)
        shutil.rmtree(self._staging, ignore_errors=True)
        return names

    def discard(self) -> None:
        """Leaves everything as it is, for ``OutputStore.clean``."""
        self._files.discard()

    def _write(self, keys: list[tuple[str, str, str]]) -> None:
        """Writes buffers of one folder as a row group."""
        table, folder, _ = keys[0]
        schema = arrow_schema(table, without=PARTITIONED_BY.get(table, ()))
        tables = []
        for key in keys:
            buffer = self._buffers.pop(key)
            self._held -= buffer.held_bytes
            tables.append(self._arrow.Table.from_arrays(buffer.arrays(schema), schema=schema))
        self._files.append(folder, self._arrow.concat_tables(tables))


class _Files:
    """Parquet files that are being written, by the folders that they will be in."""

    def __init__(self, staging: str) -> None:
        self._staging = staging
        self._parquet = import_module("pyarrow.parquet")
        self._open: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}
        self._made: list[tuple[str, str, int]] = []

    def folder(self, table: str, day: int | None) -> str:
        """The folder of a day; that of no day for one too many."""
        folder = _day_folder(table, day)
        if folder not in self._numbers and len(self._numbers) >= MAX_PARTITIONS:
            return _day_folder(table, None)
        return folder

    def append(self, folder: str, table: Any) -> None:
        """The rows of a table as a row group of the folder's file."""
        file = self._open.get(folder)
        if file is None:
            if len(self._open) >= MAX_OPEN:
                oldest = next(iter(self._open))
                self._open[oldest].close()
                del self._open[oldest]
            number = self._numbers.get(folder, 0)
            self._numbers[folder] = number + 1
            staged = os.path.join(self._staging, f"{len(self._made)}.parquet")
            self._made.append((staged, folder, number))
            file = self._open[folder] = self._parquet.ParquetWriter(staged, table.schema, **_options(table.schema))
        file.write_table(table, row_group_size=max(table.num_rows, 1))

    def discard(self) -> None:
        """Leaves the files as they are. pyarrow would try once more to end each of them when it is collected."""
        for file in self._open.values():
            file.is_open = False

    def ended(self) -> list[tuple[str, str, int]]:
        """All files, complete: where each is, its folder, its number there."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        return self._made


def _options(schema: Any) -> dict[str, Any]:
    """zstd; dictionaries where values repeat, differences where they grow or are small, statistics where somebody asks
    for those of a range. That they are dictionaries here is of no interest to who reads the file (``store_schema``).

    In pages of version 2 what tells nulls and lists apart stands before what is compressed: so the values are not
    copied once more, and a page without values is not compressed. Truth values would be in runs there, which not every
    reader knows, so they stay as they are.
    """
    types = import_module("pyarrow").types
    dictionaries = []
    encodings = {}
    for field in schema:
        kind = field.type
        encodings.update(dict.fromkeys(_truth_values(types, field.name, kind), "PLAIN"))
        if field.name in _TEXTS:
            continue
        if types.is_list(kind) and _repeats(types, kind.value_type):
            dictionaries.append(f"{field.name}.list.element")
        elif _repeats(types, kind) or types.is_int16(kind):
            dictionaries.append(field.name)
        elif types.is_int64(kind) or types.is_int32(kind) or types.is_timestamp(kind):
            encodings[field.name] = "DELTA_BINARY_PACKED"
    return {
        "compression": "zstd",
        "use_dictionary": dictionaries,
        "column_encoding": encodings,
        "write_statistics": [field.name for field in schema if field.name not in _TEXTS],
        "store_schema": False,
        "data_page_version": "2.0",
        "write_batch_size": PAGE_ROWS,
    }


def _truth_values(types: Any, path: str, kind: Any) -> Iterator[str]:
    """The Parquet paths of the truth values in a column."""
    if types.is_boolean(kind):
        yield path
    elif types.is_list(kind):
        yield from _truth_values(types, f"{path}.list.element", kind.value_type)
    elif types.is_struct(kind):
        for member in kind:
            yield from _truth_values(types, f"{path}.{member.name}", member.type)


def _repeats(types: Any, kind: Any) -> bool:
    return bool(types.is_string(kind))


@lru_cache(maxsize=1024)
def _day_folder(table: str, day: int | None) -> str:
    value = NO_VALUE if day is None else date.fromordinal(EPOCH_ORDINAL + day).isoformat()
    return os.path.join(table, f"date={value}")
