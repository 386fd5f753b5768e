"""Parquet: the flat columns, and both bodies as JSON text.

pyarrow is imported here and nowhere else in this package's command line; it comes with the ``parquet`` extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import IO, Any

from kwiresniff.errors import ExportError
from kwiresniff.export.encode import JsonEncoder
from kwiresniff.export.flat import COLUMNS, flat_row
from kwiresniff.model import Event, Exchange, Message

#: A row group is held in memory until it is full. Readers like some ten thousand rows; long texts end it sooner.
ROW_GROUP_ROWS = 16_384
ROW_GROUP_BYTES = 16 << 20

BODY_COLUMNS = ("request_body", "response_body")


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
        types = {"text": pyarrow.string(), "int16": pyarrow.int16(), "int32": pyarrow.int32(), "int64": pyarrow.int64()}
        columns = [(name, types[kind]) for name, kind in COLUMNS] + [(name, types["text"]) for name in BODY_COLUMNS]
        self._schema = pyarrow.schema(columns)
        self._writer = parquet.ParquetWriter(out, self._schema, compression="zstd")
        self._files = files
        self._line = JsonEncoder().line
        self._rows: list[tuple[Any, ...]] = []
        self._text_bytes = 0

    def write(self, event: Event) -> None:
        if not isinstance(event, Exchange):
            return
        request, response = self._body(event.request), self._body(event.response)
        row = flat_row(event, self._files)
        self._text_bytes += sum([len(value) for value in row if value.__class__ is str])
        self._rows.append((*row, request, response))
        if len(self._rows) >= ROW_GROUP_ROWS or self._text_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _body(self, message: Message | None) -> str | None:
        if message is None or message.body is None:
            return None
        text = self._line(message.body)[:-1].decode()
        self._text_bytes += len(text)
        return text

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = [
            self._arrow.array(values, column.type)
            for values, column in zip(zip(*self._rows, strict=True), self._schema, strict=True)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(columns, schema=self._schema))
        self._rows.clear()
        self._text_bytes = 0
