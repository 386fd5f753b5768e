"""One line per exchange, in columns that do not move.

Lines are written as they come, so the columns are fixed by the width alone. In a terminal a line never folds: what
matters most stands first and the last column is cut. In a pipe nothing is cut and the times are complete, so that
``grep`` and ``awk`` have something to hold on to.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, Literal, TextIO, TypeAlias

from kwiresniff.model import Connection, Exchange, TopicNames, file_index, packet_number
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.headline import path_text
from kwiresniff.render.info_column import queued_long, words
from kwiresniff.render.line_wrapping import cells, fit, pad, pad_left
from kwiresniff.render.summary_lines import SummaryLines
from kwiresniff.render.terminal import glyphs_for, printable
from kwiresniff.render.theme import OUTCOME_STYLE, Paint, Span

TimeStyle: TypeAlias = Literal["absolute", "relative"]

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


def columns(width: int | None, time: TimeStyle = "absolute") -> list[tuple[str, int]]:
    """The columns that fit ``width``, with their widths; the last one takes what is left (0: no limit).

    ``OffsetForLeaderEpoch v4`` fits the narrowest API column. The wide address column holds two IPv4 endpoints of
    usual length; in a terminal longer ones are cut, in a pipe they push the rest aside.
    """
    room = sys.maxsize if width is None else width
    clock = 27 if width is None else 15 if room >= 100 else 12
    out = [("time", 12 if time == "relative" else clock)] if room >= 60 else []
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


def _mark(exchange: Exchange) -> str:
    """What stands before the line: what is ordinary is not marked as an error."""
    return "ok" if exchange.is_negotiation else exchange.outcome


class SummaryWriter:
    """Writes exchanges as one line each to ``out``.

    ``width`` is the terminal's columns or None for a pipe. ``time`` chooses between the UTC time of the request and
    the seconds since the first exchange that was written. ``topic_name`` gives names to topic ids. ``quick`` writes
    most of the lines; None where nothing does.
    """

    def __init__(
        self,
        out: TextIO,
        width: int | None,
        color: bool,
        *,
        files: Sequence[str] = (),
        time: TimeStyle = "absolute",
        topic_name: TopicNames | None = None,
    ) -> None:
        self._out = out
        self._width = width
        self._paint = Paint(color, glyphs_for(out))
        self._files = files
        self._time = time
        self._topic_name = topic_name
        self._columns = columns(width, time)
        plain = width is None and time == "absolute" and len(files) < 2
        self.quick: SummaryLines | None = SummaryLines(self._paint, dict(self._columns), topic_name) if plain else None
        self._has_numbers = any(name == "connection" for name, _ in self._columns)
        self._told: set[int] = set()  # connections whose ends have been told
        self._start_ns: int | None = None
        self._day = ""

    def write(self, exchange: Exchange) -> None:
        """One exchange, and before it the column titles when a terminal has not seen them for this day."""
        self._out.write(printable(self.text(exchange).decode(), self._out))

    def text(self, exchange: Exchange) -> bytes:
        """Lines as UTF-8."""
        if self.quick is not None and (quick := self.quick.line(exchange)) is not None:
            return quick
        message = exchange.request or exchange.response
        started_ns = message.first_ns if message else 0
        if self._start_ns is None:
            self._start_ns = started_ns
        text = self._line(exchange, started_ns)
        if self._width is not None:
            # The time column has no date, so every day gets its titles; a relative time needs them once.
            day = format_units.date(started_ns) if self._time == "absolute" else "seconds"
            titles = ""
            if day != self._day:
                self._day = day
                titles = f"{self._titles(day)}\n"
            text = f"{titles}{self._legend(exchange.connection)}{text}"
        return f"{text}\n".encode()

    def _legend(self, connection: Connection) -> str:
        """Above the first line of a connection that has only its number there: what the number stands for."""
        if not self._has_numbers or connection.id in self._told:
            return ""
        if len(self._told) >= MAX_TOLD:
            self._told.clear()
        self._told.add(connection.id)
        text = f"#{connection.id} {path_text(connection, self._paint.glyphs.arrow)}"
        if connection.client_id:
            text += f" {escape(connection.client_id)}"
        return self._paint.text("dim", fit(text, self._width or 0, self._paint.glyphs.ellipsis)) + "\n"

    def _titles(self, day: str) -> str:
        titles = {**_TITLES, "time": f"{day}Z" if self._time == "absolute" else day}
        words = [
            pad_left(fit(titles[name], width), width) if name in _RIGHT else pad(fit(titles[name], width), width)
            for name, width in self._columns
        ]
        return self._paint.text("heading", " ".join(words).rstrip())

    def _line(self, exchange: Exchange, started_ns: int) -> str:
        glyphs = self._paint.glyphs
        spans: list[Span] = []
        for name, width in self._columns[:-1]:
            kind, text = self._cell(name, exchange, started_ns)
            if self._width is not None:
                text = fit(text, width, glyphs.ellipsis)
            spans.append((kind, pad_left(text, width) if name in _RIGHT else pad(text, width)))
            spans.append(("", " "))
        spans += self._facts(exchange, self._columns[-1][1])
        return self._paint.spans(spans)

    def _cell(self, name: str, exchange: Exchange, started_ns: int) -> Span:
        request, response = exchange.request, exchange.response
        if name == "time":
            return "dim", self._clock(started_ns)
        if name == "mark":
            kind = "dim" if exchange.is_negotiation else OUTCOME_STYLE[exchange.outcome]
            return kind, self._paint.glyphs.marks[_mark(exchange)]
        if name == "api":
            version = f" v{exchange.api_version}" if exchange.api_version >= 0 else ""
            return (
                "bad" if exchange.outcome == "error" and not exchange.is_negotiation else "api",
                f"{escape(exchange.api) or '?'}{version}",
            )
        if name == "latency":
            text = format_units.duration(exchange.latency_ns, micro=self._paint.glyphs.micro)
            return "wait" if exchange.waiting or queued_long(exchange) else "value", text
        if name == "request":
            return "dim", format_units.size(request.size_bytes if request else None)
        if name == "response":
            return "dim", format_units.size(response.size_bytes if response else None)
        if name == "connection":
            return "dim", f"#{exchange.connection.id}"
        if name == "address":
            return "value", path_text(exchange.connection, self._paint.glyphs.arrow)
        if name == "client":
            return "client", "-" if exchange.client_id is None else escape(exchange.client_id) or '""'
        message = request or response
        return "dim", self._packet(message.first_packet) if message else "-"

    def _clock(self, started_ns: int) -> str:
        if self._time == "relative":
            return f"{(started_ns - (self._start_ns or 0)) / 1e9:12.6f}"
        if self._width is None:
            return format_units.instant(started_ns)
        return format_units.clock(started_ns, 3 if self._columns[0][1] == 12 else 6)

    def _packet(self, reference: int) -> str:
        number = str(packet_number(reference))
        if len(self._files) > 1 and file_index(reference) < len(self._files):
            return f"{escape(self._files[file_index(reference)])}:{number}"
        return number

    def _facts(self, exchange: Exchange, room: int) -> list[Span]:
        """The words of the last column, cut to ``room`` columns."""
        spans: list[Span] = []
        for kind, text in words(exchange, self._topic_name, self._paint.glyphs.micro):
            if self._width is not None:
                if room < 2:
                    break
                text = fit(text, room, self._paint.glyphs.ellipsis)
                room -= cells(text) + 1
            if spans:
                spans.append(("", " "))
            spans.append((kind, text))
        return spans
