"""Parquet: the flat columns, and both bodies as JSON text.

pyarrow is imported here and nowhere else in this package's command line; it comes with the ``parquet`` extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import IO

from kwiresniff.errors import ExportError
from kwiresniff.export.encode import json_text
from kwiresniff.export.flat import COLUMNS
from kwiresniff.export.flat_columns import FlatColumns
from kwiresniff.model import Event, Exchange

#: A row group is held in memory until it is full. Readers like some ten thousand rows; long texts end it sooner.
ROW_GROUP_ROWS = 16_384
ROW_GROUP_BYTES = 16 << 20

BODY_COLUMNS = ("request_body", "response_body")
#: Columns of texts of which none comes twice: a dictionary of them would be made in vain.
UNIQUE = frozenset({*BODY_COLUMNS, "request_time", "response_time"})


class ParquetWriter:
    """Rows are gathered into row groups of bounded size."""

    def __init__(self, out: IO[bytes], files: Sequence[str] = ()) -> None:
        try:
            pyarrow = import_module("pyarrow")
            parquet = import_module("pyarrow.parquet")
        except ImportError as error:
            raise ExportError(
                'Parquet needs pyarrow, which is not installed; pip install "kwiresniff[parquet]"'
            ) from error
        self._arrow = pyarrow
        text, name_type = pyarrow.string(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        types = {"text": name_type, "int16": pyarrow.int16(), "int32": pyarrow.int32(), "int64": pyarrow.int64()}
        columns = [(name, text if name in UNIQUE else types[kind]) for name, kind in COLUMNS]
        self._schema = pyarrow.schema([*columns, *((name, text) for name in BODY_COLUMNS)])
        self._writer = parquet.ParquetWriter(
            out,
            self._schema,
            compression="zstd",
            use_dictionary=[name for name, kind in COLUMNS if kind == "text" and name not in UNIQUE],
            write_statistics=[name for name, _ in COLUMNS],
            store_schema=False,  # whoever reads the file has texts, whether they were numbered here or not
        )
        self._files = files
        self._encode = json_text
        self._rows = self._begun()

    def write(self, event: Event) -> None:
        if not isinstance(event, Exchange):
            return
        # Before a row is added, when nobody holds the texts of the last one any more.
        exchanges = self._rows.exchanges
        if exchanges.rows >= ROW_GROUP_ROWS or exchanges.held_bytes >= ROW_GROUP_BYTES:
            self._flush()
        self._rows.add(event)

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _begun(self) -> FlatColumns:
        return FlatColumns(self._files, self._encode)

    def _flush(self) -> None:
        if not self._rows.exchanges.rows:
            return
        named = self._rows.named()
        arrays = [named[field.name].array(self._arrow, field.type) for field in self._schema]
        self._rows = self._begun()
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
