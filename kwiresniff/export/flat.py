"""One flat row per exchange, for spreadsheets, databases and data frames.

The columns are the same in CSV and Parquet, which adds the bodies; docs/output.md says what they hold.
A value that is not there is an empty field in CSV and null in Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any

from kwiresniff.base.packet_references import PACKET_MASK
from kwiresniff.export.csv_lines import CsvLines, cells
from kwiresniff.export.encode import json_text
from kwiresniff.export.json_objects import file_name
from kwiresniff.export.table_columns import TABLES
from kwiresniff.export.times import rfc3339
from kwiresniff.model import Event, Exchange, Message

_OF_MESSAGES = ("timestamp_ns", "file", "first_packet", "last_packet", "size_bytes")
#: Columns that are not those of the pipeline's table ``exchanges``, or hold texts where that has lists.
_OWN = {
    "connection": "BIGINT",
    "request_time": "STRING",
    "response_time": "STRING",
    "errors": "STRING",
    "error_count": "BIGINT",
    "problems": "STRING",
}
_NAMES = (
    "connection", "client", "broker", "api_key", "api", "api_version", "correlation_id", "client_id", "outcome",
    "waiting", "latency_ns", "queued_ns", "held_ns", "broker_ns",
    *(f"{side}_{name}" for side in ("request", "response") for name in ("time", *_OF_MESSAGES)),
    "errors", "error_count", "problems",
)  # fmt: skip
_TYPES = {column.name: column.type for column in TABLES["exchanges"]} | _OWN
#: Column names and Spark SQL types.
COLUMNS: tuple[tuple[str, str], ...] = tuple((name, _TYPES[name]) for name in _NAMES)


def flat_row(exchange: Exchange, files: Sequence[str]) -> tuple[Any, ...]:
    """The values of ``COLUMNS``, None for what is not there; ``files`` are the captures in reading order."""
    connection, errors, problems = exchange.connection, exchange.errors, exchange.problems
    return (
        connection.id,
        connection.client,
        connection.broker,
        exchange.api_key,
        exchange.api,
        exchange.api_version,
        exchange.correlation_id,
        exchange.client_id,
        exchange.outcome,
        exchange.waiting or None,
        exchange.latency_ns,
        exchange.queued_ns,
        exchange.held_ns,
        exchange.broker_ns,
        *_message(exchange.request, files),
        *_message(exchange.response, files),
        " ".join(dict.fromkeys([name for _, _, name, _ in errors])) if errors else None,
        len(errors),
        " ".join(dict.fromkeys([problem.code for problem in problems])) if problems else None,
    )


def _message(message: Message | None, files: Sequence[str]) -> tuple[Any, ...]:
    if message is None:
        return (None, None, None, None, None, None)
    return (rfc3339(message.first_ns), *message_place(message, files if len(files) > 1 else ()))


def message_place(message: Message, files: Sequence[str]) -> tuple[int, str | None, int, int, int]:
    """The time of a message, its file and packets, and its size in bytes, as columns."""
    first = message.first_packet
    return (
        message.first_ns,
        file_name(first, files),
        first & PACKET_MASK,
        message.last_packet & PACKET_MASK,
        message.size_bytes,
    )


def body_text(message: Message | None) -> bytes | None:
    """The decoded body as JSON in UTF-8, None where there is none."""
    if message is None:
        return None
    if message.text is not None:
        return b"".join(message.text)
    return None if message.body is None else json_text(message.body)


class CsvWriter:
    """Comma-separated values with a header line, UTF-8, lines ended by a newline."""

    def __init__(self, out: IO[bytes], files: Sequence[str] = ()) -> None:
        self._write = out.write
        self._line = CsvLines(files).line
        self._write((cells(name for name, _ in COLUMNS) + "\n").encode())

    def write(self, event: Event) -> None:
        if isinstance(event, Exchange):
            self._write(self._line(event).encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Every line is complete in itself."""
