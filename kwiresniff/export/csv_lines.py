"""Exchanges as lines of CSV (RFC 4180), the columns of ``kwiresniff.export.flat``.

What repeats is kept as the text of its cell: connections and names. How a text is
quoted is left to the ``csv`` module, once for each text. Written for mypyc, and quicker than a tuple for each row
without it, too.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final, final

from kwiresniff.base.packet_references import PACKET_BITS, PACKET_MASK
from kwiresniff.export.escaping import escape_cell
from kwiresniff.export.json_objects import file_name
from kwiresniff.export.times import rfc3339
from kwiresniff.model import Connection, Exchange, Message

#: Texts of cells that are kept; then all are forgotten.
MAX_KEPT: Final = 4096
#: Longer texts are not kept: a client id may have 32 KB.
MAX_KEPT_TEXT: Final = 256
#: Empty fields of a message that is not there.
NO_MESSAGE: Final = ",,,,,,"


def cells(values: Iterable[str | int]) -> str:
    """Cells of a row without the end of its line.

    Control characters other than tabs and newlines become escapes, and so does a first character by which
    spreadsheets would take a text for a formula.
    """
    out = io.StringIO()
    row = [escape_cell(value) if isinstance(value, str) else value for value in values]
    csv.writer(out, lineterminator="\n").writerow(row)
    return out.getvalue()[:-1]


@final
class CsvLines:
    """Makes lines; ``files`` are the captures in reading order."""

    def __init__(self, files: Sequence[str] = ()) -> None:
        self._files = files
        self._connections: dict[Connection, str] = {}
        self._texts: dict[str, str] = {}
        self._file_names: dict[int, str] = {}

    def line(self, exchange: Exchange) -> str:
        """The exchange with a newline at its end. Of a text that is no UTF-8 the surrogates are left as they are."""
        request, response = exchange.request, exchange.response
        latency = queued = held = broker = ""
        if exchange.queued >= 0:
            queued = str(exchange.queued)
        if exchange.held >= 0:
            held = str(exchange.held)
        latency_ns = exchange.latency_ns
        if latency_ns is not None:
            latency = str(latency_ns)
            if queued and held:
                broker = str(latency_ns - exchange.path - exchange.queued - exchange.held)
        client_id = exchange.client_id
        remarks = ",0,"
        if exchange.errors or exchange.problems:
            errors = self._words([name for _, _, name, _ in exchange.errors])
            problems = self._words([problem.code for problem in exchange.problems])
            remarks = f"{errors},{len(exchange.errors)},{problems}"
        return (
            f"{self._connection(exchange.connection)},{exchange.api_key},{self._text(exchange.api)},"
            f"{exchange.api_version},{exchange.correlation_id},{'' if client_id is None else self._text(client_id)},"
            f"{self._text(exchange.outcome)},{self._text(exchange.waiting)},{latency},{queued},{held},{broker},"
            f"{self._message(request)}{self._message(response)}{remarks}\n"
        )

    def _message(self, message: Message | None) -> str:
        if message is None:
            return NO_MESSAGE
        ns = message.first_ns
        file = self._file(message.first_packet >> PACKET_BITS) if len(self._files) > 1 else ""
        first, last = message.first_packet & PACKET_MASK, message.last_packet & PACKET_MASK
        return f"{rfc3339(ns) or ''},{ns},{file},{first},{last},{message.size_bytes},"

    def _connection(self, connection: Connection) -> str:
        text = self._connections.get(connection)
        if text is None:
            if len(self._connections) >= MAX_KEPT:
                self._connections.clear()
            text = cells([connection.id, connection.client, connection.broker])
            self._connections[connection] = text
        return text

    def _words(self, names: list[str]) -> str:
        """Each name once, in order of first appearance."""
        return self._text(" ".join(dict.fromkeys(names)))

    def _text(self, text: str) -> str:
        cell = self._texts.get(text)
        if cell is None:
            cell = cells([text, 0])[:-2]  # a row of one empty cell would be quoted
            if len(text) > MAX_KEPT_TEXT:
                return cell
            if len(self._texts) >= MAX_KEPT:
                self._texts.clear()
            self._texts[text] = cell
        return cell

    def _file(self, index: int) -> str:
        cell = self._file_names.get(index)
        if cell is None:
            cell = self._file_names[index] = self._text(file_name(index << PACKET_BITS, self._files) or "")
        return cell
