"""What stands before the screen for a moment: help, and a question."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

HELP = (
    ("Everywhere", (
        ("1 to 6", "Exchanges, Timeline, Stats, Topics, Groups, Doctor"),
        ("Tab", "next part of the screen"),
        ("Up Down", "move; PgUp, PgDn, Home, End, j, k and the mouse, too"),
        ("Enter", "open: an exchange, a row's exchanges, a finding's packets"),
        ("Esc", "back: from a part to the list, then to what was listed before"),
        ("p End", "live: pause; follow the newest exchange"),
        ("d", "dark or light"),
        ("q", "quit"),
    )),
    ("Exchanges", (
        ("f", "type a filter; what read takes with -Y"),
        ("c i t g", "only this connection, client id, topic, group"),
        ("e E", "next error, the one before"),
        ("/", "search what lines show; n and N find the next and the one before"),
        ("o O", "sort by time, latency, size, API, outcome; the other way round"),
        ("Left Right", "scroll the columns of the list"),
        ("v", "all fields, each with its offset, or the short tree"),
        ("x", "bytes beside the tree, those of the field lit"),
        ("s", "save the listed exchanges as JSON lines"),
        ("w", "write their packets into a capture file"),
    )),
    ("Tree", (("Space", "fold and unfold"), ("Left Right", "fold, unfold, go to the parent"))),
    ("Timeline", (("Left Right", "slice"), ("+ -", "zoom in and out; 0 shows everything"), ("Enter", "its exchanges"))),
    ("Stats", (("b", "by API, client, topic, group, broker, error, connection"),)),
    ("Doctor", (("s w", "the same with the exchanges of a finding"),)),
)  # fmt: skip


class HelpScreen(ModalScreen[None]):
    """The keys."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll {
        width: 78; max-width: 100%; height: auto; max-height: 100%; border: round $primary; background: $surface;
        padding: 0 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            for title, keys in HELP:
                yield Static(Text(title, "bold"))
                table = Table.grid(padding=(0, 2))
                for key, what in keys:
                    table.add_row("", Text(f"{key:<10}", "bold"), what)
                yield Static(table)


class Question(ModalScreen[str | None]):
    """Asks for a line of text."""

    DEFAULT_CSS = """
    Question { align: center bottom; }
    Question Vertical { height: auto; width: 100%; background: $surface; border-top: solid $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Back")]

    def __init__(self, question: str, value: str = "") -> None:
        super().__init__()
        self._question = question
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._question))
            yield Input(self._value, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)

    def action_give_up(self) -> None:
        self.dismiss(None)
