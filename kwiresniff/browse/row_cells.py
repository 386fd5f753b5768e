"""The cells of a row of the list of exchanges, and the columns that fit a width."""

from __future__ import annotations

from typing import Final, NamedTuple

from kwiresniff.base.packet_references import PACKET_MASK
from kwiresniff.index import ExchangeIndex
from kwiresniff.index.exchange_index import NEGOTIATION, WAIT_SHIFT, WAITS
from kwiresniff.model import OUTCOMES
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import fit, pad, pad_left
from kwiresniff.render.theme import OUTCOME_STYLE, OUTCOME_WORDS, UNICODE, Span
from kwiresniff.schema import API_NAMES


class Column(NamedTuple):
    """A column: what it is called, how wide it is, what rows are sorted by for it."""

    name: str
    width: int
    order: str = ""


_RIGHT: Final = frozenset({"packet", "latency", "size", "conn"})
#: Kinds of the cells of columns whose rows look alike.
_KINDS: Final = {"packet": "dim", "time": "dim", "conn": "dim", "size": "dim", "client": "client", "broker": "dim"}


#: All columns before the last, with room for long names.
_ALL: Final = (
    Column("packet", 8, "time"), Column("time", 15, "time"), Column("", 1, "outcome"), Column("api", 30, "api"),
    Column("latency", 8, "latency"), Column("size", 8, "size"), Column("broker", 21, "broker"),
    Column("conn", 5, "connection"), Column("client", 48, "client"),
)  # fmt: skip
#: How many columns can be scrolled out at the left.
MAX_SCROLLED: Final = len(_ALL)


def columns_of(width: int, scrolled: int = 0) -> list[Column]:
    """The columns that fit, the last of which takes what is left. Where some were scrolled out, they begin with the one
    behind those of all.
    """
    if scrolled:
        shown = list(_ALL[scrolled:])
        while len(shown) > 1 and sum(one.width + 1 for one in shown[:-1]) >= width:
            shown.pop()
        return [*shown, Column("about", max(width - sum(one.width + 1 for one in shown), 1))]
    found = [Column("time", 15 if width >= 100 else 12, "time"), Column("", 1, "outcome")]
    found += [Column("api", 26 if width >= 130 else 18, "api"), Column("latency", 8, "latency")]
    if width >= 96:
        found.append(Column("size", 8, "size"))
    if width >= 160:
        found.insert(0, Column("packet", 8, "time"))
        found.append(Column("broker", 21, "broker"))
    if width >= 70:
        found += [Column("conn", 5, "connection"), Column("client", 22 if width >= 130 else 14, "client")]
    used = sum(one.width + 1 for one in found)
    return [*found, Column("about", max(width - used, 1))]


class RowCells:
    """Draws rows of an index."""

    def __init__(self, index: ExchangeIndex) -> None:
        self._index = index

    def spans(self, row: int, columns: list[Column]) -> list[Span]:
        """The line of a row."""
        line: list[Span] = []
        for column in columns[:-1]:
            kind, text = self._cell(row, column)
            text = fit(text, column.width)
            line.append((kind, pad_left(text, column.width) if column.name in _RIGHT else pad(text, column.width)))
            line.append(("", " "))
        return [*line, *self._about(row)]

    def text(self, row: int) -> str:
        """What a search looks through: everything that a wide line shows."""
        index = self._index
        connection = index.connections[index.connection.get(row)]
        parts = [self.api(row), self.client_id(row) or "", connection.client, connection.broker]
        parts += [text for _, text in self._about(row)]
        return " ".join(parts)

    def api(self, row: int) -> str:
        """``Fetch v17``, a question mark where the request is missing."""
        key, version = self._index.apis[2 * row], self._index.apis[2 * row + 1]
        if key < 0:
            return "?"
        return f"{API_NAMES.get(key, f'API {key}')} v{version}"

    def client_id(self, row: int) -> str | None:
        """The client id as it came."""
        index = self._index
        found = index.values[index.client_id.get(row)]
        return None if found is None else str(found)

    def _cell(self, row: int, column: Column) -> Span:
        index, name = self._index, column.name
        if name == "":
            outcome = OUTCOMES[index.outcomes[row]]
            calm = index.flags[row] & NEGOTIATION
            return ("dim", UNICODE.marks["ok"]) if calm else (OUTCOME_STYLE[outcome], UNICODE.marks[outcome])
        if name == "api":
            bad = OUTCOMES[index.outcomes[row]] == "error" and not index.flags[row] & NEGOTIATION
            return "bad" if bad else "api", self.api(row)
        if name == "latency":
            ns = index.latency_ns(row)
            waits = WAITS[index.flags[row] >> WAIT_SHIFT] or index.queued.get(row) * 2 > max(ns, 0)
            return "wait" if waits else "value", format_units.duration(ns if ns >= 0 else None)
        if name == "time":
            return "dim", format_units.clock(index.started_ns[row], 3 if column.width == 12 else 6)
        connection = index.connections[index.connection.get(row)]
        texts = {
            "packet": lambda: str(index.packets[row] & PACKET_MASK),
            "conn": lambda: f"#{connection.id}",
            "size": lambda: format_units.size(index.request_bytes.get(row) + index.response_bytes.get(row)),
            "broker": lambda: connection.broker,
            "client": lambda: escape(self.client_id(row) or "") or connection.client,
        }
        return _KINDS[name], texts[name]()

    def _about(self, row: int) -> list[Span]:
        """The last column: what went wrong, what it is about, what it waited for."""
        index = self._index
        spans: list[Span] = []
        errors = index.errors_of(row)
        if errors:
            kind = "dim" if index.flags[row] & NEGOTIATION else "bad"
            spans.append((kind, ", ".join(map(escape, errors))))
        elif words := OUTCOME_WORDS[OUTCOMES[index.outcomes[row]]]:
            spans.append((OUTCOME_STYLE[OUTCOMES[index.outcomes[row]]], words))
        topics, groups = index.names_of(row)
        if topics:
            spans.append(("value", ", ".join(map(escape, topics))))
        if groups:
            spans.append(("key", f"group {', '.join(map(escape, groups))}"))
        if waits := WAITS[index.flags[row] >> WAIT_SHIFT]:
            spans.append(("wait", waits))
        elif index.queued.get(row) * 2 > index.latency_ns(row) > 0:
            spans.append(("wait", f"queued {format_units.duration(index.queued.get(row))}"))
        line: list[Span] = []
        for span in spans:
            line += [("", "  "), span] if line else [span]
        return line


def column_at(x: int, columns: list[Column]) -> Column | None:
    """The column under a place of the line."""
    at = 0
    for column in columns:
        at += column.width + 1
        if x < at:
            return column
    return None


def header_spans(columns: list[Column], order: str, reverse: bool) -> list[Span]:
    """The names of the columns; that which rows are sorted by has an arrow."""
    line: list[Span] = []
    for column in columns:
        arrow = ("▼" if reverse else "▲") if column.order == order and column.name and order else ""
        text = fit(column.name + arrow, column.width)
        line.append(("heading", pad_left(text, column.width) if column.name in _RIGHT else pad(text, column.width)))
        line.append(("", " "))
    return line
