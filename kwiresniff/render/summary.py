"""One line per exchange, in columns that do not move.

Lines are written as they come, so the columns are fixed by the width alone. In a terminal a line never folds: what
matters most stands first and the last column is cut. In a pipe nothing is cut and the times are complete, so that
``grep`` and ``awk`` have something to hold on to.

Cells that repeat are kept by their values, which takes a third of the time of ``read -o summary``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO, final

from kwiresniff.base.time_units import SECOND_NS
from kwiresniff.model import Connection, Exchange, Message, TopicNames, file_index, packet_number
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.headline import path_text
from kwiresniff.render.info_column import queued_long, words
from kwiresniff.render.line_wrapping import cells, fit, pad, pad_left
from kwiresniff.render.paint import Paint
from kwiresniff.render.terminal import glyphs_for, printable
from kwiresniff.render.theme import OUTCOME_STYLE

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Titles of the columns, and which of them are right-aligned.
_TITLES: Final = {
    "time": "time",
    "mark": "",
    "api": "API",
    "latency": "latency",
    "request": "request",
    "response": "response",
    "connection": "#",
    "address": "client and broker",
    "client": "client_id",
    "packet": "packet",
    "facts": "about",
}
#: Connections that are remembered to have been told; then they are told again.
MAX_TOLD: Final = 50_000
_RIGHT: Final = frozenset(["latency", "request", "response", "packet"])

#: Widths of ``2020-07-09T13:54:09.428585Z`` and ``13:54:09.428``.
FULL_TIME: Final = 27
SHORT_TIME: Final = 12

#: Cells of a column that are kept; then all are forgotten.
KEPT: Final = 4096


def columns(width: int | None) -> list[tuple[str, int]]:
    """The columns that fit ``width``, with their widths; the last one takes what is left (0: no limit).

    ``OffsetForLeaderEpoch v4`` fits the narrowest API column. The wide address column holds two IPv4 endpoints of
    usual length; in a terminal longer ones are cut, in a pipe they push the rest aside.
    """
    room = sys.maxsize if width is None else width
    out = [("time", FULL_TIME if width is None else 15 if room >= 100 else SHORT_TIME)] if room >= 60 else []
    out += [("mark", 1), ("api", 28 if room >= 180 else 23 if room >= 72 else 16), ("latency", 8)]
    if room >= 100:
        out += [("request", 7), ("response", 8)]
    if room >= 150:
        out += [("address", 31), ("client", 14)]
    elif room >= 72:
        out.append(("connection", 4))
        if room >= 120:
            out.append(("client", 14))
    if width is None:
        return [*out, ("packet", 7), ("facts", 0)]
    used = sum([size + 1 for _, size in out])
    return [*out, ("facts", width - used)]


@final
class SummaryWriter:
    """Writes exchanges as one line each to ``out``.

    ``width`` is the terminal's columns or None for a pipe. ``topic_name`` gives names to topic ids. The number of
    a connection is told once with the addresses that it stands for, on a line of its own.
    """

    def __init__(
        self,
        out: TextIO,
        width: int | None,
        color: bool,
        *,
        files: Sequence[str] = (),
        topic_name: TopicNames | None = None,
    ) -> None:
        self._out = out
        self._is_cut = width is not None
        self._width = width or 0
        self._paint = Paint(color, glyphs_for(out))
        self._files = files
        self._topic_name = topic_name
        self._columns = columns(width)
        self._widths = dict(self._columns)
        self._names = [name for name, _ in self._columns[:-1]]
        self._has_legend = "connection" in self._widths
        self._titles_day = ""
        self._told: set[int] = set()  # connections whose ends have been told
        self._second: i64 = -1
        self._second_text = ""
        self._apis: dict[int, str] = {}  # by API key, version, and whether that is an error
        self._requests: dict[int, str] = {}  # by size in bytes, as are these
        self._responses: dict[int, str] = {}
        self._peers: dict[int, tuple[Connection, str]] = {}  # by its number
        self._clients: dict[str | None, str] = {}  # by client id

    def write(self, exchange: Exchange) -> None:
        """One exchange, and before it the column titles when a terminal has not seen them for this day."""
        self._out.write(printable(self.text(exchange).decode(), self._out))

    def text(self, exchange: Exchange) -> bytes:
        """Lines as UTF-8."""
        message = exchange.request or exchange.response
        started_ns = message.first_ns if message is not None else 0
        row = [self._cell(name, exchange, started_ns) for name in self._names]
        row.append(self._facts(exchange))
        line = " ".join(row) + "\n"
        if self._has_legend:
            line = self._legend(exchange.connection) + line
        if self._is_cut and (day := format_units.date(started_ns)) != self._titles_day:
            # The time column has no date, so every day gets its titles.
            self._titles_day = day
            line = f"{self._titles(day)}\n{line}"
        return line.encode()

    def _legend(self, connection: Connection) -> str:
        """Above the first line of a connection that has only its number there: what the number stands for."""
        if connection.id in self._told:
            return ""
        if len(self._told) >= MAX_TOLD:
            self._told.clear()
        self._told.add(connection.id)
        text = f"#{connection.id} {self._path(connection)}"
        if connection.client_id:
            text += f" {escape(connection.client_id)}"
        return self._paint.text("dim", fit(text, self._width, self._paint.glyphs.ellipsis)) + "\n"

    def _path(self, connection: Connection) -> str:
        return path_text(connection.client, connection.broker, connection.proxied, self._paint.glyphs.arrow)

    def _titles(self, day: str) -> str:
        titles = {**_TITLES, "time": f"{day}Z"}
        return self._paint.text(
            "heading", " ".join([self._fitted(name, titles[name]) for name in self._widths]).rstrip()
        )

    def _fitted(self, name: str, text: str, ellipsis: str = "…") -> str:
        """A text as wide as its column; in a pipe it may be wider."""
        width = self._widths[name]
        if self._is_cut:
            text = fit(text, width, ellipsis)
        return pad_left(text, width) if name in _RIGHT else pad(text, width)

    def _painted(self, name: str, kind: str, text: str) -> str:
        return self._paint.text(kind, self._fitted(name, text, self._paint.glyphs.ellipsis))

    def _cell(self, name: str, exchange: Exchange, started_ns: int) -> str:
        if name == "time":
            return self._time(started_ns)
        if name == "mark":
            return self._mark(exchange)
        if name == "api":
            return self._api(exchange)
        if name == "latency":
            return self._latency(exchange)
        if name == "request":
            return self._size(name, self._requests, exchange.request)
        if name == "response":
            return self._size(name, self._responses, exchange.response)
        if name == "packet":
            return self._painted(name, "dim", self._packet(exchange))
        return self._peer(name, exchange)

    def _time(self, started_ns: i64) -> str:
        width = self._widths["time"]
        second: i64 = started_ns // SECOND_NS
        micros: i64 = (started_ns - second * SECOND_NS) // 1_000
        if second != self._second:
            self._second = second
            clock = format_units.clock(second * SECOND_NS, 9)[:-9]  # 13:54:09.
            self._second_text = f"{format_units.date(started_ns)}T{clock}" if width == FULL_TIME else clock
        digits = str(micros).zfill(6)
        text = f"{self._second_text}{digits[:3] if width == SHORT_TIME else digits}"
        return self._paint.text("dim", f"{text}Z" if width == FULL_TIME else text)

    def _mark(self, exchange: Exchange) -> str:
        """The sign of the outcome: what is ordinary is not marked as an error."""
        calm = exchange.is_negotiation
        kind = "dim" if calm else OUTCOME_STYLE[exchange.outcome]
        return self._paint.text(kind, self._paint.glyphs.marks["ok" if calm else exchange.outcome])

    def _api(self, exchange: Exchange) -> str:
        wrong = exchange.outcome == "error" and not exchange.is_negotiation
        key = 2 * ((exchange.api_key << 16) + exchange.api_version) + wrong
        text = self._apis.get(key)
        if text is None:
            version = f" v{exchange.api_version}" if exchange.api_version >= 0 else ""
            text = self._painted("api", "bad" if wrong else "api", f"{escape(exchange.api) or '?'}{version}")
            _keep(self._apis, key, text)
        return text

    def _latency(self, exchange: Exchange) -> str:
        waited = exchange.waiting != "" or queued_long(exchange)
        duration = format_units.duration(exchange.latency_ns, micro=self._paint.glyphs.micro)
        return self._painted("latency", "wait" if waited else "value", duration)

    def _size(self, name: str, kept: dict[int, str], message: Message | None) -> str:
        size = -1 if message is None else message.size_bytes
        text = kept.get(size)
        if text is None:
            text = self._painted(name, "dim", format_units.size(size if size >= 0 else None))
            _keep(kept, size, text)
        return text

    def _peer(self, name: str, exchange: Exchange) -> str:
        """The number or the ends of a connection, or the client id."""
        connection, client_id = exchange.connection, exchange.client_id
        if name == "client":
            text = self._clients.get(client_id)
            if text is None:
                client = "-" if client_id is None else escape(client_id) or '""'
                text = self._painted(name, "client", client)
                _keep(self._clients, client_id, text)
            return text
        known = self._peers.get(connection.id)
        if known is not None and known[0] is connection:
            return known[1]
        if name == "connection":
            text = self._painted(name, "dim", f"#{connection.id}")
        else:
            text = self._painted(name, "value", self._path(connection))
        if len(self._peers) >= KEPT:
            self._peers.clear()
        self._peers[connection.id] = connection, text
        return text

    def _packet(self, exchange: Exchange) -> str:
        message = exchange.request or exchange.response
        if message is None:
            return "-"
        reference = message.first_packet
        number = str(packet_number(reference))
        if len(self._files) > 1 and file_index(reference) < len(self._files):
            return f"{escape(self._files[file_index(reference)])}:{number}"
        return number

    def _facts(self, exchange: Exchange) -> str:
        """The words of the last column, cut to what is left of the line."""
        spans = words(exchange, self._topic_name, self._paint.glyphs.micro)
        if not self._is_cut:
            return " ".join([self._paint.text(kind, text) for kind, text in spans])
        room = self._widths["facts"]
        shown: list[str] = []
        for kind, text in spans:
            if room < 2:
                break
            text = fit(text, room, self._paint.glyphs.ellipsis)
            room -= cells(text) + 1
            shown.append(self._paint.text(kind, text))
        return " ".join(shown)


def _keep(kept: dict[Any, str], key: object, text: str) -> None:
    if len(kept) >= KEPT:
        kept.clear()
    kept[key] = text
