"""One annotated tree per exchange: what was asked, what was answered, what it means and what is wrong.

The first line says who, what, how long and with which outcome; below it hang the request and the response. Lines are
folded to the width of a terminal under their own branch; in a pipe a line is never folded or cut.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TextIO

from kwiresniff.model import (
    Direction,
    Dissection,
    Exchange,
    Message,
    Node,
    Problem,
    TopicNames,
    file_index,
    packet_number,
)
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.gutter import Gutter
from kwiresniff.render.headline import headline
from kwiresniff.render.line_wrapping import GAP, Chunk, wrap
from kwiresniff.render.paint import Paint
from kwiresniff.render.problems import problem_chunk
from kwiresniff.render.style import VALUE_LIMIT, Style
from kwiresniff.render.terminal import glyphs_for, printable
from kwiresniff.render.tree_row import Row
from kwiresniff.render.tree_rows import struct_rows
from kwiresniff.render.value_rows import ValueRows
from kwiresniff.render.values import is_wrong, scalar

#: Problems of one message listed below it at verbosity 0; the first ones explain the rest.
PROBLEMS_SHOWN = 8

#: Columns a terminal must have for sixteen bytes in hex on a row, and for eight.
WIDE = 120
NARROW = 76


_NO_GUTTER = Gutter(0, None, 0)


class TreeWriter:
    """Writes exchanges as trees to ``out``.

    ``width`` is the terminal's columns or None for a pipe; ``verbosity`` 1 adds offsets and header fields and shows
    everything in full, 2 the bytes. ``files`` are the names behind the packet references, shown when several.
    ``topic_name`` gives the names of topic ids in what is drawn from values.
    """

    def __init__(
        self,
        out: TextIO,
        width: int | None,
        color: bool,
        verbosity: int = 0,
        *,
        files: Sequence[str] = (),
        topic_name: TopicNames | None = None,
    ) -> None:
        self._out = out
        self._width = width
        self._color = color
        self._paint = Paint(color, glyphs_for(out))
        self._verbosity = verbosity
        self._files = files
        self._style = Style(self._paint.glyphs, verbosity, _value_limit(width, verbosity))
        self._first = True
        self._values = ValueRows(self._style, topic_name)

    def rows(self, exchange: Exchange, which: Direction) -> list[Row] | None:
        """The rows of a message from its values; None for one that has to be dissected: with ``-v``, or where there is
        more to show than values.
        """
        message = exchange.request if which == "request" else exchange.response
        return None if message is None or self._verbosity else self._values.rows(exchange, message, which)

    def write(
        self,
        exchange: Exchange,
        request: Dissection | list[Row] | None = None,
        response: Dissection | list[Row] | None = None,
    ) -> None:
        """One exchange, each message by its dissection or by its ``rows``; None when there is no such message or nobody
        read its body.
        """
        self._out.write(printable(self.text(exchange, request, response).decode(), self._out))

    def text(
        self, exchange: Exchange, request: Dissection | list[Row] | None, response: Dissection | list[Row] | None
    ) -> bytes:
        """The lines of an exchange in UTF-8, see ``write``."""
        lines: list[str] = [] if self._first else [""]
        self._first = False
        parts = self.branches(exchange, request, response)
        self._draw(Row(headline(exchange, self._paint, self._style)), "", "    ", None, lines)
        for index, row in enumerate(parts):
            gutter: Gutter | None = None
            if self._verbosity:
                message = (exchange.request, exchange.response, None)[min(index, 2)]
                gutter = Gutter(self._verbosity, message.frame if message else None, self._bytes_per_row())
            self._branch(row, "", index == len(parts) - 1, gutter, lines)
        lines.append("")
        return "\n".join(lines).encode()

    def branches(
        self, exchange: Exchange, request: Dissection | list[Row] | None, response: Dissection | list[Row] | None
    ) -> list[Row]:
        """The rows of an exchange below its first line: request, response, and what is wrong or was noted."""
        asked = request if isinstance(request, Dissection) else None
        answered = response if isinstance(response, Dissection) else None
        parts = [self._message(exchange, "request", request), self._message(exchange, "response", response)]
        if exchange.problems or exchange.notes:
            parts += [*self._exchange_problems(exchange, asked, answered), *self._notes(exchange)]
        return parts

    def write_message(self, exchange: Exchange, which: Direction, dissection: Dissection) -> None:
        """One side of an exchange alone, without the capture that it may have come from."""
        message: Message = getattr(exchange, which)
        lines: list[str] = []
        head: list[Chunk] = [
            [("api", f"{escape(exchange.api)} v{exchange.api_version}"), ("title", f" {which}")],
            [("value", format_units.size(message.size_bytes))],
        ]
        if message.header_version >= 0:
            head.append([("dim", f"header version {message.header_version}")])
            head.append([("name", "correlation_id "), ("value", str(exchange.correlation_id))])
            if exchange.client_id:
                head.append([("name", "client_id "), ("client", escape(exchange.client_id))])
        known = {problem.message for problem in dissection.problems}
        known |= _problem_texts(dissection, {problem.message for problem in exchange.problems} - known)
        rows = self._content(dissection, message.size_bytes)
        rows += self._problems([problem for problem in exchange.problems if problem.message not in known])
        self._draw(Row(head), "", "    ", None, lines)
        gutter = Gutter(self._verbosity, message.frame, self._bytes_per_row())
        for index, row in enumerate(rows):
            self._branch(row, "", index == len(rows) - 1, gutter, lines)
        lines.append("")
        self._out.write(printable("\n".join(lines), self._out))

    def _bytes_per_row(self) -> int:
        if self._width is None or self._width >= WIDE:
            return 16
        return 8 if self._width >= NARROW else 4

    def _message(self, exchange: Exchange, which: Direction, read: Dissection | list[Row] | None) -> Row:
        message = exchange.request if which == "request" else exchange.response
        if message is None:
            return Row([[("title", which), ("dim", f"  {_why_missing(exchange, which)}")]])
        head: list[Chunk] = [
            [("title", which)],
            [("value", format_units.size(message.size_bytes))],
            [("dim", self._packets(message))],
            [("dim", format_units.instant(message.first_ns))],
        ]
        if message.version >= 0 and message.version != exchange.api_version and exchange.api_version >= 0:
            head.append([("warn", f"read as version {message.version}")])
        row = Row(head)
        if isinstance(read, list):
            row.children = read
        elif read is not None:
            if self._verbosity:
                row.chunks.insert(2, [("dim", f"header version {message.header_version}")])
            row.children = self._content(read, message.size_bytes)
        return row

    def _content(self, dissection: Dissection, size: int) -> list[Row]:
        """The rows of a message of ``size`` bytes: its fields, the bytes behind them, and its problems."""
        header, body = _parts(dissection)
        rows: list[Row] = []
        if header is not None and (self._verbosity or is_wrong(header)):
            rows.append(Row([[("key", "header")]], struct_rows(header.children, self._style)))
        rows += struct_rows(body.children, self._style)
        left = size - dissection.end
        if left > 0 and all(problem.code != "trailing_bytes" for problem in dissection.problems):
            # Only counted: undecoded bytes may hold a password.
            rest = f"{self._paint.glyphs.ellipsis} {format_units.count(left, 'byte')} not decoded"
            rows.append(Row([[("dim", rest)]]))
        if dissection.problems:
            known = _problem_texts(dissection, {problem.message for problem in dissection.problems})
            rows += self._problems([problem for problem in dissection.problems if problem.message not in known])
        return rows

    def _exchange_problems(
        self, exchange: Exchange, request: Dissection | None, response: Dissection | None
    ) -> list[Row]:
        """The exchange's problems that no dissection has shown already."""
        if not exchange.problems:
            return []
        known = {problem.message for dissection in (request, response) if dissection for problem in dissection.problems}
        left = [problem for problem in exchange.problems if problem.message not in known]
        if left:
            looked_for = {problem.message for problem in left}
            for dissection in (request, response):
                if dissection:
                    known |= _problem_texts(dissection, looked_for)
        return self._problems([problem for problem in left if problem.message not in known])

    def _problems(self, problems: Sequence[Problem]) -> list[Row]:
        shown = problems if self._verbosity else problems[:PROBLEMS_SHOWN]
        rows = [Row([problem_chunk(problem)]) for problem in shown]
        if len(shown) < len(problems):
            text = f"{self._paint.glyphs.ellipsis} {format_units.count(len(problems) - len(shown), 'more problem')}"
            rows.append(Row([[("dim", text)]]))
        return rows

    def _notes(self, exchange: Exchange) -> list[Row]:
        """The notes of plugins about the exchange."""
        rows = []
        for note in exchange.notes:
            chunks: list[Chunk] = [[("key", escape(str(note.get("plugin", "plugin"))))]]
            for name, value in note.items():
                if name != "plugin":
                    chunks.append([("name", f"{escape(name)} "), scalar(value, self._style)])
            rows.append(Row(chunks))
        return rows

    def _packets(self, message: Message) -> str:
        first, last = packet_number(message.first_packet), packet_number(message.last_packet)
        text = f"packet {first}" if first == last else f"packets {first}-{last}"
        if len(self._files) > 1 and file_index(message.first_packet) < len(self._files):
            text += f" of {escape(self._files[file_index(message.first_packet)])}"
        return text

    def _branch(self, row: Row, guides: str, last: bool, gutter: Gutter | None, lines: list[str]) -> None:
        glyphs = self._paint.glyphs
        below = guides + (glyphs.blank if last else glyphs.pipe)
        lead = guides + (glyphs.last if last else glyphs.branch)
        if gutter is None and self._width is None:
            lines.append(self._line(lead, row.chunks))
        else:
            # A folded line keeps the guide of its own children.
            self._draw(row, lead, below + (glyphs.pipe if row.children else glyphs.blank), gutter, lines)
        left = len(row.children)
        for child in row.children:
            left -= 1
            self._branch(child, below, not left, gutter, lines)

    def _line(self, lead: str, chunks: list[Chunk]) -> str:
        """A row that need not be folded."""
        if self._color:
            return self._paint.text("dim", lead) + GAP.join([self._paint.spans(chunk) for chunk in chunks])
        texts = [lead]
        for chunk in chunks:
            for _, text in chunk:
                texts.append(text)
            texts.append(GAP)
        texts.pop()
        return "".join(texts)

    def _draw(self, row: Row, lead: str, hang: str, gutter: Gutter | None, lines: list[str]) -> None:
        """One row: its first line after ``lead``, what is folded and its further bytes after ``hang``."""
        paint = self._paint
        gutter = gutter or _NO_GUTTER
        room = None if self._width is None else self._width - gutter.width - max(len(lead), len(hang))
        margins = gutter.lines(row.node)
        for text in wrap(row.chunks, room):
            margin = next(margins, None) or gutter.blank()
            lines.append(paint.text("dim", margin + lead) + paint.spans(text))
            lead = hang
        lines += [paint.text("dim", (margin + hang).rstrip()) for margin in margins]


def _value_limit(width: int | None, verbosity: int) -> int | None:
    if verbosity:
        return None
    return VALUE_LIMIT if width is None else max(width - 32, 48)


def _parts(dissection: Dissection) -> tuple[Node | None, Node]:
    """The header and the body of a message; a dissection of a body alone has no header."""
    parts = {child.name: child for child in dissection.root.children if child.type == "STRUCT"}
    if "header" not in parts:
        return None, dissection.root
    # Without a body the bytes behind the header could not be decoded.
    return parts["header"], parts.get("body", Node("body", "STRUCT", dissection.end, 0))


def _why_missing(exchange: Exchange, which: str) -> str:
    if which == "request":
        return "not in the capture"
    if exchange.outcome == "no_response_expected":
        return "none, the request asked for no acknowledgement"
    return "none seen"


def _problem_texts(dissection: Dissection, looked_for: Collection[str]) -> set[str]:
    """The problems at nodes of a dissection, of the texts that are looked for; most are at its end."""
    texts: set[str] = set()
    stack = [dissection.root]
    while stack and len(texts) < len(looked_for):
        node = stack.pop()
        if node.problem and node.problem in looked_for:
            texts.add(node.problem)
        stack += node.children
    return texts
