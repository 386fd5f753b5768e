"""The live view of ``kwiresniff sniff``: statistics refreshed in place, and the keys that steer them.

Three screens lie behind each other: the tables, the last exchanges of one of their rows, and one exchange as a tree.
Enter goes in, escape comes back.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

from kwiresniff.analysis.filter import Filter, compile_filter
from kwiresniff.analysis.stats import Key, StatsTable
from kwiresniff.capture.live import LiveCapture
from kwiresniff.cli.event_source import DEPTHS, EventSource
from kwiresniff.cli.interrupts import for_each
from kwiresniff.cli.keyboard import Keyboard
from kwiresniff.cli.panels import ORDERS, REFRESH_SECONDS, SAMPLES, Panel
from kwiresniff.cli.recent import ExchangeLines, LastExchanges
from kwiresniff.errors import FilterError
from kwiresniff.model import Event, Exchange, Problem
from kwiresniff.render import escape, use_color
from kwiresniff.render.live import LiveState, filled, heading, live_screen, rows_per_panel
from kwiresniff.render.paint import Paint, Span
from kwiresniff.render.screen import Screen
from kwiresniff.render.terminal import glyphs_for

#: Problems kept to be told when the screen is gone.
LAST_PROBLEMS = 100
#: Refreshes whose rates are drawn beside each other.
TREND = 240

_HELP = {
    "tables": "arrows move  enter open  tab zoom  s sort  f filter  p pause  r reset  q quit",
    "list": "arrows choose  enter open  escape back  p pause  q quit",
    "tree": "arrows scroll  escape back  q quit",
}
_Place = Literal["tables", "list", "tree"]


class LiveView:
    """What is counted and how it is shown. ``add`` every exchange; call ``pause`` whenever there is time."""

    def __init__(
        self,
        live: LiveCapture,
        reading: EventSource,
        by: Sequence[Sequence[str]],
        keys: Callable[[], list[str]],
        show: Callable[[LiveView], None],
    ) -> None:
        """``keys`` gives what was typed since it was last called; ``show`` is to ask for the screen and show it."""
        self._live = live
        self._reading = reading
        self._by = by
        self._keys = keys
        self._show = show
        self._glyphs = glyphs_for(sys.stdout)
        color = use_color(sys.stdout, reading.options.color)
        self._paint = Paint(color, self._glyphs)
        self._lines = ExchangeLines(reading, color)
        self._started = self._drawn = time.monotonic()
        self._orders = deque(ORDERS)
        self._paused = False
        self._place: _Place = "tables"
        self._zoomed = -1  # the only panel that is shown
        self._at = 0  # the panel in which a row is chosen
        self._chosen: Key | None = None
        self._frozen: list[Exchange] = []  # the list while somebody chooses from it
        self._picked = 0  # from the end of it
        self._tree: list[str] = []
        self._tree_of: Exchange | None = None
        self._tree_width = 0
        self._scroll = 0
        self._height = 24
        self._typed: str | None = None
        self._complaint = ""
        self._filter_text = ""
        self._filter: Filter | None = None
        self._reset()

    def add(self, exchange: Exchange) -> None:
        """Counts one exchange that came through the command's own filter."""
        if self._filter is not None and not self._filter.matches(exchange):
            return
        self._exchanges += 1
        if exchange.is_negotiation:
            pass
        elif exchange.outcome == "error":
            self._errors += 1
        elif exchange.outcome == "unanswered":
            self._unanswered += 1
        self._last.add(exchange)
        if self._listed is not self._last:
            self._listed.add(exchange)
        for panel in self._panels:
            panel.table.add(exchange)

    def pause(self) -> None:
        """Reads the keys, and draws when it is time."""
        keys = self._keys()
        for key in keys:
            self._press(key)
        now = time.monotonic()
        if keys or (now - self._drawn >= REFRESH_SECONDS and not self._paused):
            self._drawn = now
            self._show(self)

    def screen(self, width: int, height: int) -> list[str]:
        """The lines of the screen as it is now."""
        now = time.monotonic()
        self._height = height
        state = self._state(now)
        if self._place == "tree":
            return self._tree_screen(width, height)
        if self._place == "list":
            return self._list_screen(state, width, height)
        shown = self._panels if self._zoomed < 0 else self._panels[self._zoomed : self._zoomed + 1]
        panels = [
            panel.draw(now, size, self._orders[0], self._chosen if panel is self._panels[self._at] else None)
            for panel, size in zip(shown, rows_per_panel(height, [len(one.table) for one in shown]), strict=True)
            if size
        ]
        return [self._paint.spans(line) for line in live_screen(state, panels, width, height, self._glyphs)]

    def tables(self) -> list[StatsTable]:
        """What was counted."""
        return [panel.table for panel in self._panels]

    def _reset(self) -> None:
        self._panels = [Panel(names, self._reading) for names in self._by]
        self._samples: deque[tuple[float, int, int, int]] = deque(maxlen=SAMPLES + 1)
        self._trend: deque[float] = deque(maxlen=TREND)
        self._exchanges = self._errors = self._unanswered = 0
        self._last = self._listed = LastExchanges()

    def _state(self, now: float) -> LiveState:
        if self._samples and now - self._samples[-1][0] >= REFRESH_SECONDS:
            then, _, _, counted = self._samples[-1]
            self._trend.append((self._exchanges - counted) / (now - then))
        if not self._samples or now - self._samples[-1][0] >= REFRESH_SECONDS:
            self._samples.append((now, self._live.packets, self._live.position(), self._exchanges))
        since, packets, size, exchanges = self._samples[0]
        seconds = max(now - since, REFRESH_SECONDS)
        return LiveState(
            source=", ".join(self._live.files),
            seconds=now - self._started,
            packets_per_second=(self._live.packets - packets) / seconds,
            bytes_per_second=(self._live.position() - size) / seconds,
            exchanges_per_second=(self._exchanges - exchanges) / seconds,
            exchanges=self._exchanges,
            errors=self._errors,
            unanswered=self._unanswered,
            dropped=self._live.dropped,
            order=self._orders[0],
            filter=self._filter_text,
            paused=self._paused,
            trend=list(self._trend),
            prompt=self._prompt(),
        )

    def _prompt(self) -> Sequence[Span]:
        if self._typed is not None:
            return (("title", "filter: "), ("value", f"{escape(self._typed)}_"))
        return (("bad", self._complaint),) if self._complaint else (("dim", _HELP[self._place]),)

    # -- the last exchanges, and one of them -------------------------------------------------------------------

    def _list_screen(self, state: LiveState, width: int, height: int) -> list[str]:
        above = heading(state, width, 0, self._glyphs)
        of = (
            f" with {', '.join(self._panels[self._at].table.by)} {self._key_text()}" if self._chosen is not None else ""
        )
        above.append([("title", f"last exchanges{escape(of)}")])
        room = max(height - len(above) - 2, 1)
        known = self._frozen or self._listed.newest(room)
        first = max(len(known) - room - max(self._picked - room + 1, 0), 0)
        known = known[first : first + room]
        marker = self._glyphs.pointer
        lines = self._lines.summary(known, max(width - len(marker), 1)) if known else []
        picked = len(lines) - 1 - self._picked + (len(self._frozen or known) - first - len(known))
        below = [(marker if number == picked else " " * len(marker)) + line for number, line in enumerate(lines)]
        frame = filled([*above, *[[] for _ in below]], state.prompt, width, height, self._glyphs)
        painted = [self._paint.spans(line) for line in frame]
        painted[len(above) : len(above) + len(below)] = below
        return painted[:height]

    def _tree_screen(self, width: int, height: int) -> list[str]:
        if self._tree_of is not None and self._tree_width != width:
            self._tree, self._tree_width = self._lines.tree(self._tree_of, width), width
        room = max(height - 1, 1)
        self._scroll = max(min(self._scroll, len(self._tree) - room), 0)
        lines = self._tree[self._scroll : self._scroll + room]
        lines += [""] * (room - len(lines))
        return [*lines, self._paint.spans(filled([], self._prompt(), width, 1, self._glyphs)[0])][-height:]

    def _key_text(self) -> str:
        return self._chosen if isinstance(self._chosen, str) else " ".join(self._chosen or ())

    # -- keys --------------------------------------------------------------------------------------------------

    def _press(self, key: str) -> None:
        if self._typed is not None:
            self._type(key)
            return
        self._complaint = ""
        if key == "q":
            self._live.stop()
        elif key in ("p", " "):
            self._paused = not self._paused
            if self._place == "list":
                self._freeze(self._paused)
        elif self._place == "tree":
            self._press_in_tree(key)
        elif self._place == "list":
            self._press_in_list(key)
        else:
            self._press_in_tables(key)

    def _press_in_tables(self, key: str) -> None:
        if key in ("up", "k", "down", "j", "page up", "page down"):
            step = self._height if key.startswith("page") else 1
            self._move(-step if key in ("up", "k", "page up") else step)
        elif key in ("tab", "back tab"):
            self._zoomed = (self._zoomed + (2 if key == "tab" else 0)) % (len(self._panels) + 1) - 1
            self._at, self._chosen = max(self._zoomed, 0), None
        elif key == "s":
            self._orders.rotate(-1)
        elif key == "S":
            self._orders.rotate(1)
        elif key == "f":
            self._typed = self._filter_text
        elif key == "r":
            self._reset()
        elif key == "escape":
            self._chosen, self._zoomed, self._at = None, -1, 0
        elif key in ("enter", "right", "l"):
            self._open_list()

    def _move(self, step: int) -> None:
        """Chooses another row: on to the next table at the end of one, unless it is alone and scrolls."""
        panel = self._panels[self._at]
        if self._chosen not in panel.shown:
            self._chosen = panel.shown[0] if panel.shown else None
            return
        if self._zoomed >= 0:
            self._chosen = panel.scroll_to(self._chosen, step)
            return
        place = panel.shown.index(self._chosen) + step
        if not 0 <= place < len(panel.shown):
            beside = self._at + (1 if step > 0 else -1)
            if not 0 <= beside < len(self._panels) or not self._panels[beside].shown:
                return
            self._at = beside
            panel, place = self._panels[beside], 0 if step > 0 else -1
        self._chosen = panel.shown[place]

    def _open_list(self) -> None:
        self._place = "list"
        table, chosen = self._panels[self._at].table, self._chosen
        if chosen is not None:
            self._listed = self._last.narrowed(lambda exchange: table.holds(chosen, exchange))
        self._freeze(self._paused)

    def _freeze(self, frozen: bool) -> None:
        """Keeps the list as it is, or lets it go on with its newest line chosen."""
        self._frozen, self._picked = self._listed.newest(1_000_000) if frozen else [], 0

    def _press_in_list(self, key: str) -> None:
        if key in ("escape", "left", "h", "backspace"):
            if self._frozen and not self._paused:
                self._freeze(False)
            else:
                self._place, self._listed = "tables", self._last
            return
        if not self._frozen:  # what somebody points at must not run away
            self._freeze(True)
        if key in ("up", "k", "page up"):
            self._picked += 10 if key == "page up" else 1
        elif key in ("down", "j", "page down"):
            self._picked -= 10 if key == "page down" else 1
        self._picked = max(min(self._picked, len(self._frozen) - 1), 0)
        if key in ("enter", "right", "l") and self._frozen:
            self._place, self._scroll, self._tree_width = "tree", 0, 0
            self._tree_of = self._frozen[len(self._frozen) - 1 - self._picked]

    def _press_in_tree(self, key: str) -> None:
        page = max(self._height - 2, 1)
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -page, "page down": page, "g": -len(self._tree)}
        if key in ("escape", "left", "h", "backspace", "enter"):
            self._place = "list"
        else:
            self._scroll += steps.get(key, 0)

    def _type(self, key: str) -> None:
        assert self._typed is not None
        if key == "enter":
            self._set_filter(self._typed)
            self._typed = None
        elif key == "escape":
            self._typed = None
        elif key == "backspace":
            self._typed = self._typed[:-1]
        elif len(key) == 1 and key.isprintable():
            self._typed += key

    def _set_filter(self, text: str) -> None:
        """Filters what is counted from now on; a filter that needs what is not decoded can be given with -Y only."""
        text = text.strip()
        try:
            found = compile_filter(text, self._reading.topic_name) if text else None
        except FilterError as error:
            self._complaint = escape(f"at column {error.position + 1}: {error}")
            return
        if found is not None and DEPTHS.index(found.depth) > DEPTHS.index(self._reading.depth):
            self._complaint = "this filter needs message bodies, which are not decoded here: start with -Y"
            return
        self._filter, self._filter_text = found, text
        self._reset()


def watch(
    live: LiveCapture, reading: EventSource, by: Sequence[Sequence[str]]
) -> tuple[bool, list[StatsTable], list[Problem]]:
    """Shows the view until the capture ends; whether nobody interrupted it, what was counted, and the problems."""
    problems: deque[Problem] = deque(maxlen=LAST_PROBLEMS)

    def show(view: LiveView) -> None:
        width, height = os.get_terminal_size(sys.stdout.fileno())
        screen.show(view.screen(width, height), width, height)

    def use(event: Event) -> None:
        if isinstance(event, Exchange):
            view.add(event)
        elif isinstance(event, Problem):
            problems.append(event)

    with Keyboard() as keyboard, Screen(sys.stdout) as screen:
        view = LiveView(live, reading, by, keyboard.keys, show)
        show(view)
        live.on_pause = view.pause
        finished = for_each(reading.events(), use, live.stop)
    return finished, view.tables(), list(problems)
