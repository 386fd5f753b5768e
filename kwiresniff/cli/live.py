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
from functools import partial
from typing import Literal

from kwiresniff.analysis.filter import Filter, compile_filter
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.analysis.stats import StatsTable
from kwiresniff.base.depths import DEPTHS
from kwiresniff.capture.live import LiveCapture
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.keyboard import Keyboard
from kwiresniff.cli.live_counts import LiveCounts
from kwiresniff.cli.live_places import Listing, Tables, TreeOfOne
from kwiresniff.cli.panels import REFRESH_SECONDS
from kwiresniff.cli.recent import ExchangeRenderer
from kwiresniff.errors import FilterError
from kwiresniff.model import Event, Exchange, Problem
from kwiresniff.render.escape import escape
from kwiresniff.render.live_screen import LiveState, filled, heading, live_screen
from kwiresniff.render.screen import Screen
from kwiresniff.render.terminal import glyphs_for, use_color
from kwiresniff.render.theme import Paint, Span

#: Problems kept to be printed when the screen is gone.
LAST_PROBLEMS = 100

_HELP = {
    "tables": "arrows move  enter open  tab zoom  s sort  f filter  p pause  r reset  q quit",
    "list": "arrows choose  enter open  escape back  p pause  q quit",
    "tree": "arrows scroll  escape back  q quit",
}
_Place = Literal["tables", "list", "tree"]


class FilterLine:
    """The filter of the view, and the line in which it is typed."""

    def __init__(self, source: EventSource) -> None:
        self.text = ""
        self.filter: Filter | None = None
        self.typed: str | None = None
        self.complaint = ""
        self._source = source

    def press(self, key: str) -> bool:
        """Takes a key while somebody types; whether there is another filter from now on."""
        assert self.typed is not None
        if key == "enter":
            typed, self.typed = self.typed, None
            return self._set(typed.strip())
        if key == "escape":
            self.typed = None
        elif key == "backspace":
            self.typed = self.typed[:-1]
        elif len(key) == 1 and key.isprintable():
            self.typed += key
        return False

    def _set(self, text: str) -> bool:
        """Filters what is counted from now on; a filter that needs what is not decoded can be given with -Y only."""
        try:
            found = compile_filter(text, self._source.topic_name) if text else None
        except FilterError as error:
            self.complaint = escape(f"at column {error.position + 1}: {error}")
            return False
        if found is not None and DEPTHS.index(found.depth) > DEPTHS.index(self._source.needs.depth):
            self.complaint = "this filter needs message bodies, which are not decoded here: start with -Y"
            return False
        self.filter, self.text = found, text
        return True


class LiveView:
    """What is counted and how it is shown. ``add`` every exchange; call ``pause`` whenever there is time."""

    def __init__(
        self,
        live: LiveCapture,
        source: EventSource,
        by: Sequence[Sequence[str]],
        keys: Callable[[], list[str]],
        show: Callable[[LiveView], None],
    ) -> None:
        """``keys`` gives what was typed since it was last called; ``show`` is to ask for the screen and show it."""
        color = use_color(sys.stdout, source.options.color)
        self._live = live
        self._keys = keys
        self._show = show
        self._glyphs = glyphs_for(sys.stdout)
        self._paint = Paint(color, self._glyphs)
        self._lines = ExchangeRenderer(source, color)
        self._started = self._drawn = time.monotonic()
        self._paused = False
        self._height = 24
        self._new_counts = partial(LiveCounts, live, source, by)
        self._counts = self._new_counts()
        self._filter = FilterLine(source)
        self._place: _Place = "tables"
        self._places = Tables(), Listing(), TreeOfOne()

    def add(self, exchange: Exchange) -> None:
        """Counts one exchange that came through the command's own filter."""
        if self._filter.filter is not None and not self._filter.filter.matches(exchange):
            return
        self._counts.add(exchange)
        self._places[1].add(exchange)

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
        tables, _, tree = self._places
        if self._place == "tree":
            prompt = self._paint.spans(filled([], state.prompt, width, 1, self._glyphs)[0])
            return [*tree.draw(self._lines, max(height - 1, 1), width), prompt][-height:]
        if self._place == "list":
            return self._list_screen(state, width, height)
        panels = tables.draw(self._counts, now, height)
        return [self._paint.spans(line) for line in live_screen(state, panels, width, height, self._glyphs)]

    def tables(self) -> list[StatsTable]:
        """What was counted."""
        return [panel.table for panel in self._counts.panels]

    def _state(self, now: float) -> LiveState:
        counts = self._counts
        rates = counts.rates(now)
        return LiveState(
            source=", ".join(self._live.files),
            seconds=now - self._started,
            packets_per_second=rates.packets,
            bytes_per_second=rates.bytes,
            exchanges_per_second=rates.exchanges,
            exchanges=counts.exchanges,
            errors=counts.errors,
            unanswered=counts.unanswered,
            dropped=self._live.dropped,
            order=self._places[0].order,
            filter=self._filter.text,
            paused=self._paused,
            trend=list(counts.trend),
            prompt=self._prompt(),
        )

    def _prompt(self) -> Sequence[Span]:
        typed, complaint = self._filter.typed, self._filter.complaint
        if typed is not None:
            return (("title", "filter: "), ("value", f"{escape(typed)}_"))
        return (("bad", complaint),) if complaint else (("dim", _HELP[self._place]),)

    def _list_screen(self, state: LiveState, width: int, height: int) -> list[str]:
        tables, listing, _ = self._places
        above = heading(state, width, 0, self._glyphs)
        of = ""
        if tables.chosen is not None:
            key = tables.chosen if isinstance(tables.chosen, str) else " ".join(tables.chosen)
            of = f" with {', '.join(self._counts.panels[tables.at].table.by)} {key}"
        above.append([("title", f"last exchanges{escape(of)}")])
        room = max(height - len(above) - 2, 1)
        below = listing.draw(self._lines, room, width, self._glyphs.pointer)
        frame = filled([*above, *[[] for _ in below]], state.prompt, width, height, self._glyphs)
        painted = [self._paint.spans(line) for line in frame]
        painted[len(above) : len(above) + len(below)] = below
        return painted[:height]

    def _press(self, key: str) -> None:
        tables, listing, tree = self._places
        if self._filter.typed is not None:
            if self._filter.press(key):
                self._counts = self._new_counts()
            return
        self._filter.complaint = ""
        if key == "q":
            self._live.stop()
        elif key in ("p", " "):
            self._paused = not self._paused
            if self._place == "list":
                listing.freeze(self._paused)
        elif self._place == "tree":
            if tree.press(key, self._height) == "back":
                self._place = "list"
        elif self._place == "list":
            way = listing.press(key, self._paused)
            if way == "in":
                self._place = "tree"
                tree.open(listing.chosen())
            elif way == "back":
                self._place = "tables"
        elif key == "f":
            self._filter.typed = self._filter.text
        elif key == "r":
            self._counts = self._new_counts()
        elif tables.press(key, self._counts.panels, self._height) == "in":
            self._open_list()

    def _open_list(self) -> None:
        tables = self._places[0]
        table, chosen = self._counts.panels[tables.at].table, tables.chosen
        matches = None if chosen is None else lambda exchange: table.holds(chosen, exchange)
        self._place = "list"
        self._places[1].open(self._counts.last, matches, self._paused)


def watch(
    live: LiveCapture, source: EventSource, by: Sequence[Sequence[str]]
) -> tuple[bool, list[StatsTable], list[Problem]]:
    """Shows the view until the capture ends; whether nobody interrupted it, what was counted, and the problems."""
    problems: deque[Problem] = deque(maxlen=LAST_PROBLEMS)

    def show(view: LiveView) -> None:
        width, height = os.get_terminal_size(sys.stdout.fileno())
        screen.show(view.screen(width, height), width, height)

    def keep(event: Event) -> None:
        if isinstance(event, Problem):
            problems.append(event)

    with Keyboard() as keyboard, Screen(sys.stdout) as screen:
        view = LiveView(live, source, by, keyboard.keys, show)
        show(view)
        live.on_pause = view.pause
        finished = source.read(CallingSink(view.add, keep), live.stop)
    return finished, view.tables(), list(problems)
