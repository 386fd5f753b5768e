"""A list of lines with a cursor, drawn line by line as they are seen, so that millions cost no more than a page.

Lines are spans of ``kwiresniff.render``: a kind of thing, and text that is escaped. Nothing is ever markup.
"""

from __future__ import annotations

from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kwiresniff.render.line_wrapping import cells, fit
from kwiresniff.render.theme import STYLES, Span

#: Class of a component for a kind of thing.
_CLASS = "kind--"


class LineView(ScrollView, can_focus=True):
    """Shows ``line_count`` lines, and above them ``header`` where there is one.

    A view that derives from it has ``line_count`` and ``line``, and calls ``show`` when they have changed.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"{_CLASS}{kind or 'value'}" for kind in STYLES), "line--cursor", "line--focused", "line--lit",
    }  # fmt: skip
    DEFAULT_CSS = """
    LineView {
        background: $background;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
        & > .kind--api { text-style: bold; }
        & > .kind--title { text-style: bold; }
        & > .kind--ident { text-style: bold; }
        & > .kind--heading { color: $text-muted; text-style: bold; }
        & > .kind--bad { color: $text-error; text-style: bold; }
        & > .kind--warn { color: $text-warning; text-style: bold; }
        & > .kind--good { color: $text-success; }
        & > .kind--meaning { color: $text-success; }
        & > .kind--client { color: $text-primary; }
        & > .kind--key { color: $text-primary; }
        & > .kind--wait { color: $text-secondary; text-style: italic; }
        & > .kind--dim { color: $text-muted; }
        & > .kind--name { color: $text-muted; }
        & > .line--cursor { background: $primary 25%; }
        & > .line--focused { background: $primary 60%; color: $text; }
        & > .line--lit { background: $accent; color: $background; text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False),
        Binding("home", "go(0)", "First", show=False),
        Binding("end", "go(-1)", "Last", show=False),
        Binding("enter", "choose", "Open", show=False),
    ]

    class Moved(Message):
        """The cursor is on another line, or on another thing."""

        def __init__(self, view: LineView) -> None:
            super().__init__()
            self.view = view

        @property
        def control(self) -> LineView:
            return self.view

    class Chosen(Moved):
        """Enter, or a second click, on the line of the cursor."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.cursor = 0

    # -- what a view has to say ---------------------------------------------------------------------------------

    @property
    def line_count(self) -> int:
        """Lines without the header."""
        return 0

    def line(self, number: int, width: int) -> list[Span]:
        """A line, which may be longer than ``width``."""
        raise NotImplementedError

    def header(self, width: int) -> list[Span] | None:
        """The line that stays above the others."""
        return None

    # -- the cursor ---------------------------------------------------------------------------------------------

    @property
    def _head(self) -> int:
        return 0 if self.header(max(self.size.width, 1)) is None else 1

    def show(self, cursor: int | None = None) -> None:
        """Draws anew what has changed, with the cursor where it was or is to be."""
        count = self.line_count
        self.virtual_size = Size(1, count + self._head)
        moved = cursor is not None and cursor != self.cursor
        self.cursor = max(min(self.cursor if cursor is None else cursor, count - 1), 0)
        if moved:
            self._reveal()
        self.refresh()

    def go_to(self, line: int) -> None:
        """Puts the cursor on a line."""
        count = self.line_count
        line = max(min(line, count - 1), 0)
        if line != self.cursor and count:
            self.cursor = line
            self._reveal()
            self.refresh()
            self.post_message(self.Moved(self))

    def _reveal(self) -> None:
        """Scrolls to the cursor: line by line where it is near, else so that it stands in the middle."""
        room = max(self.size.height - self._head, 1)
        top = round(self.scroll_offset.y)
        last = top + room - 1
        if top <= self.cursor <= last:
            return
        if self.cursor == top - 1:
            to = self.cursor
        elif self.cursor == last + 1:
            to = top + 1
        else:
            to = max(self.cursor - room // 2, 0)
        self.scroll_to(y=to, animate=False, force=True, immediate=True)

    def action_move(self, by: int) -> None:
        self.go_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        self.go_to(self.cursor + by * max(self.size.height - self._head - 1, 1))

    def action_go(self, line: int) -> None:
        self.go_to(line if line >= 0 else self.line_count - 1)

    def action_choose(self) -> None:
        if self.line_count:
            self.post_message(self.Chosen(self))

    def on_resize(self) -> None:
        self.show()
        self._reveal()

    def on_click(self, event: events.Click) -> None:
        line = event.y - self._head + round(self.scroll_offset.y)
        if event.y < self._head:
            self.on_header_click(event.x)
        elif line < self.line_count:
            again = line == self.cursor and event.chain > 1
            self.go_to(line)
            if again:
                self.action_choose()

    def on_header_click(self, x: int) -> None:
        """A click on the header."""

    # -- drawing ------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        head = self._head
        if y < head:
            return self._strip(self.header(width) or [], width, self.rich_style)
        number = y - head + round(self.scroll_offset.y)
        if not 0 <= number < self.line_count:
            return Strip.blank(width, self.rich_style)
        base = self.rich_style
        if number == self.cursor:
            base = self.get_component_rich_style("line--focused" if self.has_focus else "line--cursor")
        return self._strip(self.line(number, width), width, base)

    def _strip(self, spans: list[Span], width: int, base: Style) -> Strip:
        pieces: list[Segment] = []
        room = width
        for kind, text in spans:
            if room <= 0:
                break
            text = fit(text, room)
            room -= cells(text)
            pieces.append(Segment(text, base + self._kind(kind)))
        if room > 0:
            pieces.append(Segment(" " * room, base))
        return Strip(pieces, width)

    def _kind(self, kind: str) -> Style:
        """The style of a kind of thing, without its background; ``lit`` is what is pointed at."""
        if kind == "lit":
            return self.get_component_rich_style("line--lit")
        style = self.get_component_rich_style(f"{_CLASS}{kind or 'value'}")
        return Style(color=style.color, bold=style.bold, italic=style.italic)


_STYLES: Final = {"title": "bold", "key": "cyan", "dim": "dim", "warn": "yellow", "bad": "bold red", "good": "green"}


def text_of(spans: list[Span]) -> Text:
    """Spans as a text of rich on one line, for what is not drawn line by line."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for kind, piece in spans:
        text.append(piece, _STYLES.get(kind, ""))
    return text
