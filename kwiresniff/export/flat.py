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

import csv
import io
from collections.abc import Iterable, Sequence
from typing import IO, Any

from kwiresniff.export.controls import escape_cell
from kwiresniff.export.objects import file_name
from kwiresniff.export.times import rfc3339
from kwiresniff.model import Event, Exchange, Message, packet_number

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

_NO_MESSAGE: tuple[None, ...] = (None,) * len(_MESSAGE_COLUMNS)


def flat_row(exchange: Exchange, files: Sequence[str] = ()) -> tuple[Any, ...]:
    """The values of ``COLUMNS`` for one exchange."""
    several = len(files) > 1
    return (
        exchange.connection.id,
        exchange.connection.client,
        exchange.connection.broker,
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
        *_message_values(exchange.request, files, several),
        *_message_values(exchange.response, files, several),
        _words(name for _, _, name, _ in exchange.errors),
        len(exchange.errors),
        _words(problem.code for problem in exchange.problems),
    )


def _message_values(message: Message | None, files: Sequence[str], several: bool) -> tuple[Any, ...]:
    if message is None:
        return _NO_MESSAGE
    return (
        rfc3339(message.first_ns),
        message.first_ns,
        file_name(message.first_packet, files) if several else None,
        packet_number(message.first_packet),
        packet_number(message.last_packet),
        message.size_bytes,
    )


def _words(names: Iterable[str]) -> str | None:
    """Each name once, in order of first appearance."""
    return " ".join(dict.fromkeys(names)) or None


class CsvWriter:
    """Comma-separated values with a header line, UTF-8, lines ended by a newline (RFC 4180 quoting).

    Control characters other than tabs and newlines are written as escapes, and so is a first character by which
    spreadsheets would take a text for a formula.
    """

    def __init__(self, out: IO[bytes], files: Sequence[str] = ()) -> None:
        self._text = io.TextIOWrapper(out, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._writer.writerow([name for name, _ in COLUMNS])
        self._files = files

    def write(self, event: Event) -> None:
        if isinstance(event, Exchange):
            row = flat_row(event, self._files)
            self._writer.writerow([escape_cell(value) if isinstance(value, str) else value for value in row])

    def close(self) -> None:
        self._text.detach()
