"""The fields of an exchange as a tree that can be folded."""

from __future__ import annotations

import textwrap
from typing import ClassVar, Final, NamedTuple

from textual.binding import Binding, BindingType

from kwiresniff.browse.details import Details
from kwiresniff.browse.line_view import LineView
from kwiresniff.model import Direction, Node
from kwiresniff.render.line_wrapping import wrap
from kwiresniff.render.theme import UNICODE, Span
from kwiresniff.render.tree_row import Row

#: Rows up to which a tree is unfolded at once; of a larger one the first levels are.
MAX_UNFOLDED: Final = 400
_LEVELS: Final = 2
_LEAST_WIDTH: Final = 20


#: Lines of one field; the bytes of a longer one are beside it.
MAX_LINES: Final = 12


class _Line(NamedTuple):
    lead: str
    spans: list[Span]
    row: Row
    depth: int
    side: Direction | None


class TreeView(LineView):
    """Shows the rows of ``details``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "choose", "Fold", show=False),
        Binding("right,l", "unfold", "Unfold", show=False),
        Binding("left,h", "fold", "Fold", show=False),
    ]

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.details: Details | None = None
        self.note = ""
        self._folded: set[int] = set()
        self._lines: list[_Line] = []

    def show_details(self, details: Details | None, note: str = "") -> None:
        """Shows an exchange, or a note in its place."""
        self.details, self.note = details, note
        self._folded = set()
        if details is not None:
            todo = [(row, 0) for row in details.rows]
            inner: list[tuple[Row, int]] = []
            count = 0
            while todo:
                row, depth = todo.pop()
                count += 1
                if row.children and depth >= _LEVELS:
                    inner.append((row, depth))
                todo += [(child, depth + 1) for child in row.children]
            if count > MAX_UNFOLDED:
                self._folded = {id(row) for row, _ in inner}
        self._lay_out()
        self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.cursor = 0
        self.show(self._first_wrong())
        self.post_message(self.Moved(self))

    def _first_wrong(self) -> int:
        """The first field that is wrong, the first line where none is."""
        wrong = ("bad", "warn")
        for at, line in enumerate(self._lines):
            if any(kind in wrong for kind, _ in line.spans):
                return at
        return 0

    @property
    def line_count(self) -> int:
        return len(self._lines) if self.details is not None else len(self._note_lines(self.size.width))

    def line(self, number: int, width: int) -> list[Span]:
        if self.details is None:
            return [("dim", self._note_lines(width)[number])]
        return [("dim", self._lines[number].lead), *self._lines[number].spans]

    def _note_lines(self, width: int) -> list[str]:
        return textwrap.wrap(self.note, max(width, _LEAST_WIDTH))

    @property
    def node(self) -> Node | None:
        """The node whose bytes the line of the cursor shows, or None."""
        return self._lines[self.cursor].row.node if self.cursor < len(self._lines) else None

    @property
    def side(self) -> Direction:
        """The message that the line of the cursor is of."""
        found = self._lines[self.cursor].side if self.cursor < len(self._lines) else None
        return found or "request"

    def action_choose(self) -> None:
        if self.cursor < len(self._lines):
            key = id(self._lines[self.cursor].row)
            self._folded ^= {key}
            self._lay_out()
            self.show()

    def action_unfold(self) -> None:
        if self.cursor < len(self._lines):
            row = self._lines[self.cursor].row
            if id(row) in self._folded:
                self.action_choose()
            elif row.children:
                self.go_to(self.cursor + 1)

    def action_fold(self) -> None:
        if self.cursor >= len(self._lines):
            return
        row, depth = self._lines[self.cursor].row, self._lines[self.cursor].depth
        if row.children and id(row) not in self._folded:
            self.action_choose()
            return
        for at in range(self.cursor - 1, -1, -1):
            if self._lines[at].depth < depth:
                self.go_to(at)
                return

    def on_resize(self) -> None:
        row = self._lines[self.cursor].row if self.cursor < len(self._lines) else None
        self._lay_out()
        self.show(next((at for at, line in enumerate(self._lines) if line.row is row), 0))

    def _lay_out(self) -> None:
        self._lines = []
        if self.details is not None:
            sides: tuple[Direction, ...] = ("request", "response")
            for at, row in enumerate(self.details.rows):
                side = sides[at] if at < 2 else None
                self._add(row, "", at == len(self.details.rows) - 1, 0, side)

    def _add(self, row: Row, guides: str, last: bool, depth: int, side: Direction | None) -> None:
        folded = id(row) in self._folded
        lead = guides + (UNICODE.last if last else UNICODE.branch)
        below = guides + (UNICODE.blank if last else UNICODE.pipe)
        mark = "" if not row.children else "▸ " if folded else "▾ "
        further = below + (UNICODE.pipe if row.children and not folded else UNICODE.blank)
        for number, line in enumerate(wrap(row.chunks, max(self.size.width - len(further), _LEAST_WIDTH))):
            if number == MAX_LINES:
                self._lines.append(_Line(further, [("dim", UNICODE.ellipsis)], row, depth, side))
                break
            self._lines.append(_Line(further if number else lead + mark, line, row, depth, side))
        if folded:
            return
        for at, child in enumerate(row.children):
            self._add(child, below, at == len(row.children) - 1, depth + 1, side)
