"""One flat row per exchange, for spreadsheets, databases and data frames.

Columns, in this order (the same in CSV and Parquet; Parquet adds the bodies):

==========================  =====================================================================
connection                  integer, stable within one output
client, broker              ``ip:port``
api_key, api, api_version   what was asked; -1 and empty when the request was not seen
correlation_id, client_id
outcome                     ok, error, no_response_expected, unanswered, request_missing, undecoded
waiting                     why the broker held the answer back on purpose, or empty
latency_ns                  last byte of the request to first byte of the response, or empty
queued_ns, held_ns          of it: behind the answer before, held back on purpose; empty where not known
broker_ns                   the rest of it
request_* and response_*    time, timestamp_ns, file (with several captures), first_packet, last_packet,
                            size_bytes
errors                      error names, each once, in order, separated by spaces
error_count                 how many non-zero error codes the response holds
problems                    problem codes, each once, in order, separated by spaces
==========================  =====================================================================

A value that is not there is an empty field in CSV and null in Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from kwiresniff.export.csv_lines import CsvLines, cells
from kwiresniff.export.table_columns import TABLES
from kwiresniff.model import Event, Exchange

_OF_MESSAGES = ("timestamp_ns", "file", "first_packet", "last_packet", "size_bytes")
#: Columns that are not those of the pipeline's table ``exchanges``, or hold texts where that has lists.
_OWN = {
    "connection": "int64",
    "request_time": "text",
    "response_time": "text",
    "errors": "text",
    "error_count": "int64",
    "problems": "text",
}
_TYPES = {"BIGINT": "int64", "INT": "int32", "SMALLINT": "int16", "STRING": "text"}
_NAMES = (
    "connection", "client", "broker", "api_key", "api", "api_version", "correlation_id", "client_id", "outcome",
    "waiting", "latency_ns", "queued_ns", "held_ns", "broker_ns",
    *(f"{side}_{name}" for side in ("request", "response") for name in ("time", *_OF_MESSAGES)),
    "errors", "error_count", "problems",
)  # fmt: skip


_SHARED = {column.name: column.type for column in TABLES["exchanges"]}
#: Column names and what they hold: ``text`` or an integer type.
COLUMNS: tuple[tuple[str, str], ...] = tuple(
    (name, _OWN[name] if name in _OWN else _TYPES[_SHARED[name]]) for name in _NAMES
)


class CsvWriter:
    """Comma-separated values with a header line, UTF-8, lines ended by a newline."""

    def __init__(self, out: IO[bytes], files: Sequence[str] = ()) -> None:
        self._write = out.write
        self._line = CsvLines(files).line
        self._write((cells(name for name, _ in COLUMNS) + "\n").encode())

    def write(self, event: Event) -> None:
        if event.__class__ is Exchange:
            self._write(self._line(event).encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Every line is complete in itself."""
