"""Writers: each takes events one at a time and writes them to a binary stream as one format.

``close`` ends the document; the stream stays open, it belongs to whoever opened it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import IO, Protocol

from kwiresniff.errors import ExportError
from kwiresniff.export.encode import json_line, json_text
from kwiresniff.export.fast_json_lines import ExchangeLines
from kwiresniff.export.flat import CsvWriter
from kwiresniff.export.json_objects import event_json, exchange_json
from kwiresniff.export.output import split_name
from kwiresniff.export.parquet import ParquetWriter
from kwiresniff.model import Event, Exchange


class Writer(Protocol):
    """The interface of all formats."""

    def write(self, event: Event) -> None:
        """Writes one event; formats that are one row per exchange pass over everything else."""

    def close(self) -> None:
        """Ends the document."""


class JsonLinesWriter:
    """One JSON object a line, every kind of event."""

    def __init__(self, out: IO[bytes], files: Sequence[str] = ()) -> None:
        self._write = out.write
        self._files = files
        self._text_line = ExchangeLines(json_text, files).line

    def write(self, event: Event) -> None:
        if event.__class__ is not Exchange:
            self._write(json_line(event_json(event, self._files)))
        elif (pieces := self._text_line(event)) is None:
            self._write(json_line(exchange_json(event, self._files)))
        else:
            for piece in pieces:
                self._write(piece)

    def close(self) -> None:
        """Every line is complete in itself."""


class JsonArrayWriter:
    """One JSON array of the same objects, written as they come."""

    def __init__(self, out: IO[bytes], files: Sequence[str] = ()) -> None:
        self._write = out.write
        self._files = files
        self._text_line = ExchangeLines(json_text, files).line
        self._separator = b"[\n"

    def write(self, event: Event) -> None:
        pieces = self._text_line(event) if isinstance(event, Exchange) else None
        if pieces is None:
            pieces = [json_line(event_json(event, self._files))]
        self._write(self._separator)
        for piece in pieces[:-1]:
            self._write(piece)
        self._write(pieces[-1][:-1])
        self._separator = b",\n"

    def close(self) -> None:
        self._write(b"[]\n" if self._separator == b"[\n" else b"\n]\n")


#: Formats by the ending of a file's name.
WRITERS: dict[str, Callable[[IO[bytes], Sequence[str]], Writer]] = {
    "jsonl": JsonLinesWriter,
    "json": JsonArrayWriter,
    "csv": CsvWriter,
    "parquet": ParquetWriter,
}


def format_of(path: str, form: str | None = None, more: Collection[str] = ()) -> str:
    """The format that ``form`` names or, without it, a file's name asks for; ``more`` are formats besides ``WRITERS``.

    Raises ExportError when it is none that is written.
    """
    if path == "-":
        raise ExportError(
            "-: an export is a file; 'kwiresniff read CAPTURE -o jsonl' writes the same to standard output"
        )
    ending, compression = split_name(path)
    name = form or ending
    if name not in WRITERS and name not in more:
        names = [*WRITERS, *sorted(more)]
        if form is not None:
            raise ExportError(f"{form}: unknown format; it is one of {', '.join(names)}")
        endings = ", ".join(f".{one}" for one in names)
        raise ExportError(f"{path}: unknown format; end the name with one of {endings} (and .gz or .zst to compress)")
    if name == "parquet" and compression:
        raise ExportError(f"{path}: Parquet compresses by itself; leave {compression} off the name")
    return name
