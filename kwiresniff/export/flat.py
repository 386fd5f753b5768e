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
from kwiresniff.model import Event, Exchange

_MESSAGE_COLUMNS = (
    ("time", "text"),
    ("timestamp_ns", "int64"),
    ("file", "text"),
    ("first_packet", "int64"),
    ("last_packet", "int64"),
    ("size_bytes", "int64"),
)

#: Column names and what they hold: ``text`` or an integer type.
COLUMNS: tuple[tuple[str, str], ...] = (
    ("connection", "int64"),
    ("client", "text"),
    ("broker", "text"),
    ("api_key", "int16"),
    ("api", "text"),
    ("api_version", "int16"),
    ("correlation_id", "int32"),
    ("client_id", "text"),
    ("outcome", "text"),
    ("waiting", "text"),
    ("latency_ns", "int64"),
    ("queued_ns", "int64"),
    ("held_ns", "int64"),
    ("broker_ns", "int64"),
    *((f"request_{name}", kind) for name, kind in _MESSAGE_COLUMNS),
    *((f"response_{name}", kind) for name, kind in _MESSAGE_COLUMNS),
    ("errors", "text"),
    ("error_count", "int64"),
    ("problems", "text"),
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
