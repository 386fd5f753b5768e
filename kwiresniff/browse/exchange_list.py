"""The list of exchanges."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from kwiresniff.browse.line_view import LineView
from kwiresniff.browse.row_cells import MAX_SCROLLED, RowCells, column_at, columns_of, header_spans
from kwiresniff.browse.selection import Selection
from kwiresniff.render.theme import Span


class ExchangeList(LineView):
    """Lists the rows of a selection. Its columns can be scrolled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "scroll_columns(1)", "Columns", show=False),
        Binding("left,h", "scroll_columns(-1)", "Columns", show=False),
    ]

    class Sorted(Message):
        """A click on the name of a column, by which rows can be sorted."""

        def __init__(self, order: str) -> None:
            super().__init__()
            self.order = order

    def __init__(self, selection: Selection, id: str) -> None:
        super().__init__(id)
        self.selection = selection
        self.cells = RowCells(selection.index)
        self._scrolled = 0

    def action_scroll_columns(self, by: int) -> None:
        self._scrolled = max(min(self._scrolled + by, MAX_SCROLLED), 0)
        self.refresh()

    @property
    def line_count(self) -> int:
        return len(self.selection.rows)

    @property
    def row(self) -> int | None:
        """The row of the index under the cursor."""
        rows = self.selection.rows
        return rows[self.cursor] if self.cursor < len(rows) else None

    def line(self, number: int, width: int) -> list[Span]:
        return self.cells.spans(self.selection.rows[number], columns_of(width, self._scrolled))

    def header(self, width: int) -> list[Span]:
        order = self.selection.order
        return header_spans(columns_of(width, self._scrolled), order.name, order.reverse)

    def on_header_click(self, x: int) -> None:
        column = column_at(x, columns_of(self.size.width, self._scrolled))
        if column is not None and column.order:
            self.post_message(self.Sorted(column.order))
