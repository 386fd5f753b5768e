"""The three screens of the live view that lie behind each other: tables, the exchanges of a row, one exchange.

Each keeps where somebody is in it. ``press`` takes a key and says whether that leads into the next screen, back to the
one before, or nowhere; the view goes there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

from kwiresniff.analysis.stats_keys import Key
from kwiresniff.cli.live_counts import LiveCounts
from kwiresniff.cli.panels import ORDERS, Panel
from kwiresniff.cli.recent import ExchangeRenderer, LastExchanges
from kwiresniff.model import Exchange
from kwiresniff.render.live_screen import LivePanel, rows_per_panel

Way = Literal["in", "back", "nowhere"]
_INTO = ("enter", "right", "l")
_BACK = ("escape", "left", "h", "backspace")
_UP = ("up", "k", "page up")
_DOWN = ("down", "j", "page down")


class Tables:
    """All tables, or one of them alone; a row of one may be chosen."""

    def __init__(self) -> None:
        self.zoomed = -1  # the only table that is shown
        self.at = 0  # the table in which a row is chosen
        self.chosen: Key | None = None
        self._orders = deque(ORDERS)

    @property
    def order(self) -> str:
        """What rows are sorted by."""
        return self._orders[0]

    def draw(self, counts: LiveCounts, now: float, height: int) -> list[LivePanel]:
        """What is shown of the tables on a screen of ``height`` lines."""
        shown = counts.panels if self.zoomed < 0 else counts.panels[self.zoomed : self.zoomed + 1]
        sizes = rows_per_panel(height, [len(one.table) for one in shown])
        return [
            panel.draw(now, size, self.order, self.chosen if panel is counts.panels[self.at] else None)
            for panel, size in zip(shown, sizes, strict=True)
            if size
        ]

    def press(self, key: str, panels: list[Panel], height: int) -> Way:
        """Moves, zooms or sorts; Enter leads to the exchanges of the row."""
        if key in _INTO:
            return "in"
        if key in (*_UP, *_DOWN):
            step = height if key.startswith("page") else 1
            self._move(panels, -step if key in _UP else step)
        elif key in ("tab", "back tab"):
            self.zoomed = (self.zoomed + (2 if key == "tab" else 0)) % (len(panels) + 1) - 1
            self.at, self.chosen = max(self.zoomed, 0), None
        elif key in ("s", "S"):
            self._orders.rotate(-1 if key == "s" else 1)
        elif key == "escape":
            self.chosen, self.zoomed, self.at = None, -1, 0
        return "nowhere"

    def _move(self, panels: list[Panel], step: int) -> None:
        """Chooses another row: on to the next table at the end of one, unless it is alone and scrolls."""
        panel = panels[self.at]
        if self.chosen not in panel.shown:
            self.chosen = panel.shown[0] if panel.shown else None
            return
        if self.zoomed >= 0:
            self.chosen = panel.scroll_to(self.chosen, step)
            return
        place = panel.shown.index(self.chosen) + step
        if not 0 <= place < len(panel.shown):
            beside = self.at + (1 if step > 0 else -1)
            if not 0 <= beside < len(panels) or not panels[beside].shown:
                return
            self.at = beside
            panel, place = panels[beside], 0 if step > 0 else -1
        self.chosen = panel.shown[place]


class Listing:
    """The last exchanges of a row, or of all; while somebody chooses from it, it stays as it is."""

    def __init__(self) -> None:
        self._listed: LastExchanges | None = None  # those of one row; None for all
        self._last = LastExchanges()
        self._frozen: list[Exchange] = []
        self._picked = 0  # from the end of it

    def open(self, last: LastExchanges, matches: Callable[[Exchange], bool] | None, frozen: bool) -> None:
        """Lists the exchanges of ``last`` that match, and those that come from now on."""
        self._last = last
        self._listed = last.narrowed(matches) if matches is not None else None
        self.freeze(frozen)

    def add(self, exchange: Exchange) -> None:
        """Takes one more into the list of a row; the list of all is counted elsewhere."""
        if self._listed is not None:
            self._listed.add(exchange)

    def freeze(self, frozen: bool) -> None:
        """Keeps the list as it is, or lets it go on with its newest line chosen."""
        shown = self._last if self._listed is None else self._listed
        self._frozen, self._picked = shown.newest(1_000_000) if frozen else [], 0

    def draw(self, lines: ExchangeRenderer, room: int, width: int, marker: str) -> list[str]:
        """A line of titles and ``room`` exchanges, the chosen one of which is marked."""
        known = self._frozen or (self._last if self._listed is None else self._listed).newest(room)
        first = max(len(known) - room - max(self._picked - room + 1, 0), 0)
        known = known[first : first + room]
        drawn = lines.summary(known, max(width - len(marker), 1)) if known else []
        picked = len(drawn) - 1 - self._picked + (len(self._frozen or known) - first - len(known))
        return [(marker if number == picked else " " * len(marker)) + line for number, line in enumerate(drawn)]

    def chosen(self) -> Exchange:
        """The exchange that Enter was pressed on."""
        return self._frozen[len(self._frozen) - 1 - self._picked]

    def press(self, key: str, paused: bool) -> Way:
        """Chooses an exchange; Enter leads into it, escape lets the list go on, and then back."""
        if key in _BACK:
            if not self._frozen or paused:
                self._listed = None
                return "back"
            self.freeze(False)
            return "nowhere"
        if not self._frozen:  # what somebody points at must not run away
            self.freeze(True)
        step = 10 if key.startswith("page") else 1
        self._picked += step if key in _UP else -step if key in _DOWN else 0
        self._picked = max(min(self._picked, len(self._frozen) - 1), 0)
        return "in" if key in _INTO and self._frozen else "nowhere"


class TreeOfOne:
    """One exchange as an annotated tree that scrolls."""

    def __init__(self) -> None:
        self._exchange: Exchange | None = None
        self._lines: list[str] = []
        self._width = 0
        self._scroll = 0

    def open(self, exchange: Exchange) -> None:
        """Shows this one from its beginning."""
        self._exchange, self._scroll, self._width = exchange, 0, 0

    def draw(self, lines: ExchangeRenderer, room: int, width: int) -> list[str]:
        """``room`` lines of it."""
        if self._exchange is not None and self._width != width:
            self._lines, self._width = lines.tree(self._exchange, width), width
        self._scroll = max(min(self._scroll, len(self._lines) - room), 0)
        shown = self._lines[self._scroll : self._scroll + room]
        return shown + [""] * (room - len(shown))

    def press(self, key: str, height: int) -> Way:
        """Scrolls; Enter leads back, as escape does."""
        page = max(height - 2, 1)
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -page, "page down": page, "g": -len(self._lines)}
        if key in (*_BACK, "enter"):
            return "back"
        self._scroll += steps.get(key, 0)
        return "nowhere"
