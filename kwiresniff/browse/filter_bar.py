"""The line in which a filter is typed, with what is wrong with it below."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static

from kwiresniff.errors import FilterError

#: Seconds without a key after which what has been typed is tried.
PAUSE_S = 0.35


class FilterBar(Vertical):
    """Takes an expression; ``check`` raises FilterError where it cannot be understood."""

    DEFAULT_CSS = """
    FilterBar { height: auto; }
    FilterBar Input { padding: 0 1; background: $boost; }
    FilterBar Input:focus { background: $primary 20%; }
    FilterBar #filter-error { height: auto; color: $text-error; padding: 0 1; display: none; }
    """

    class Changed(Message):
        """Another expression, which can be understood; empty for all exchanges."""

        def __init__(self, expression: str) -> None:
            super().__init__()
            self.expression = expression

    class Left(Message):
        """Enter or Escape: the list is wanted again."""

    def __init__(self, check: Callable[[str], object], expression: str = "") -> None:
        super().__init__()
        self._check = check
        self._applied = expression
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Input(
            self._applied, placeholder="f: filter, like  api == Fetch and latency > 100ms", id="filter", compact=True
        )
        yield Static("", id="filter-error")

    def set(self, expression: str, *, silent: bool = False) -> None:
        """Puts an expression in the line and applies it, unless somebody else has."""
        line = self.query_one("#filter", Input)
        if line.value.strip() != expression:
            with line.prevent(Input.Changed):
                line.value = expression
        if silent:
            self._applied = expression
        self._apply()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._error(event.value)
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(PAUSE_S, self._apply)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._apply():
            self.post_message(self.Left())

    def key_escape(self) -> None:
        self.post_message(self.Left())

    def _error(self, expression: str) -> bool:
        """Shows what is wrong with an expression, under the place; whether anything is."""
        found = self.query_one("#filter-error", Static)
        try:
            if expression.strip():
                self._check(expression)
        except FilterError as error:
            found.update(Text(" " * error.position + "^\n" + str(error), no_wrap=False))
            found.display = True
            return True
        found.display = False
        return False

    def _apply(self) -> bool:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        expression = self.query_one("#filter", Input).value.strip()
        if self._error(expression):
            return False
        if expression != self._applied:
            self._applied = expression
            self.post_message(self.Changed(expression))
        return True
