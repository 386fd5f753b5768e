"""Writers: each takes events one at a time and writes them to a binary stream as one format.

``close`` ends the document; the stream stays open, it belongs to whoever opened it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import IO, Any, Protocol

import orjson

from kwiresniff.errors import ExportError
from kwiresniff.export.encode import json_line
from kwiresniff.export.flat import CsvWriter
from kwiresniff.export.json_objects import event_json, exchange_json
from kwiresniff.export.output import split_name
from kwiresniff.export.parquet import ParquetWriter
from kwiresniff.model import Event, Exchange, Message


class Writer(Protocol):
    """The interface of all formats."""

    def write(self, event: Event) -> None:
        """Writes one event; formats that are one row per exchange pass over everything else."""

    def close(self) -> None:
        """Ends the document."""


#: The place of a body that is text already: a byte that no JSON text has.
_PLACE = b"\0"
_FRAGMENT = orjson.Fragment(_PLACE)


def event_pieces(event: Event, files: Sequence[str]) -> list[bytes]:
    """The JSON object of an event and a newline, in pieces: a body that is text already is not copied."""
    if not isinstance(event, Exchange):
        return [json_line(event_json(event, files))]
    texts = [message.text for message in (event.request, event.response) if message is not None and message.text]
    if not texts:
        return [json_line(exchange_json(event, files))]
    try:
        around = json_line(exchange_json(event, files, _body_or_place)).split(_PLACE)
    except TypeError:  # a lone surrogate or a number of more than 64 bits, which orjson refuses
        return [json_line(exchange_json(event, files))]
    pieces = [around[0]]
    for text, behind in zip(texts, around[1:], strict=True):
        pieces += [*text, behind]
    return pieces


def _body_or_place(message: Message) -> Any:
    return _FRAGMENT if message.text else message.body


class JsonLinesWriter:
    """One JSON object a line, every kind of event."""

    def __init__(self, out: IO[bytes], files: Sequence[str] = ()) -> None:
        self._out = out
        self._files = files

    def write(self, event: Event) -> None:
        self._out.writelines(event_pieces(event, self._files))

    def close(self) -> None:
        """Every line is complete in itself."""


class JsonArrayWriter:
    """One JSON array of the same objects, written as they come."""

    def __init__(self, out: IO[bytes], files: Sequence[str] = ()) -> None:
        self._out = out
        self._files = files
        self._separator = b"[\n"

    def write(self, event: Event) -> None:
        pieces = event_pieces(event, self._files)
        pieces[-1] = pieces[-1][:-1]
        self._out.write(self._separator)
        self._out.writelines(pieces)
        self._separator = b",\n"

    def close(self) -> None:
        self._out.write(b"[]\n" if self._separator == b"[\n" else b"\n]\n")


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
