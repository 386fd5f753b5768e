"""Parquet: the flat columns, and both bodies as JSON text.

pyarrow is imported here and nowhere else in this package's command line; it comes with the ``parquet`` extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import IO

from kwiresniff.errors import ExportError
from kwiresniff.export.flat import COLUMNS, body_text, flat_row
from kwiresniff.export.row_buffer import RowBuffer
from kwiresniff.export.table_columns import arrow_type
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
        columns = [*COLUMNS, *((name, "STRING") for name in BODY_COLUMNS)]
        self._schema = pyarrow.schema([(name, arrow_type(kind)) for name, kind in columns])
        self._writer = parquet.ParquetWriter(
            out,
            self._schema,
            compression="zstd",
            use_dictionary=[name for name, kind in COLUMNS if kind == "STRING" and name not in UNIQUE],
            write_statistics=[name for name, _ in COLUMNS],
            store_schema=False,
        )
        self._files = files
        self._rows = RowBuffer()

    def write(self, event: Event) -> None:
        if not isinstance(event, Exchange):
            return
        self._rows.add((*flat_row(event, self._files), body_text(event.request), body_text(event.response)))
        if self._rows.rows >= ROW_GROUP_ROWS or self._rows.held_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows.rows:
            arrays = self._rows.arrays(self._schema)
            self._rows = RowBuffer()
            self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
