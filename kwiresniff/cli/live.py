"""The live view of ``kwiresniff sniff``: statistics refreshed in place, and the keys that steer them.

``s`` sorts by the next column, ``f`` asks for a filter, ``p`` pauses the screen but not the counting, ``r`` counts
anew, enter shows the last exchanges, ``q`` quits.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kwiresniff.analysis.filter import Filter, compile_filter
from kwiresniff.analysis.stats import Key, RowCounts, StatsTable
from kwiresniff.capture.live import Live
from kwiresniff.cli.interrupts import for_each
from kwiresniff.cli.keyboard import Keyboard
from kwiresniff.cli.reading import DEPTHS, Reading
from kwiresniff.errors import FilterError
from kwiresniff.model import Event, Exchange, Problem
from kwiresniff.render import SummaryWriter, console, escape
from kwiresniff.render.live import LivePanel, LiveRow, LiveState, live_screen, rows_per_panel
from kwiresniff.render.paint import Span
from kwiresniff.render.terminal import glyphs_for

if TYPE_CHECKING:
    from rich.text import Text

#: How often the screen is drawn: faster than numbers can be read gains nothing.
REFRESH_SECONDS = 1.0
#: Rates are over this many refreshes.
RATE_SAMPLES = 5
#: Problems kept to be told when the screen is gone.
LAST_PROBLEMS = 100
#: Exchanges kept to be shown: more than any screen has lines.
LAST_EXCHANGES = 200

_HELP: Sequence[Span] = (("dim", "s sort  f filter  p pause  r reset  enter last exchanges  q quit"),)
_ESCAPE, _BACKSPACES, _ENTERS = "\x1b", "\x7f\b", "\r\n"


class _Panel:
    """One table of the view and its recent counts."""

    def __init__(self, by: Sequence[str], reading: Reading) -> None:
        self.table = StatsTable(by, reading.topic_name)
        self._samples: deque[tuple[float, dict[Key, int]]] = deque(maxlen=RATE_SAMPLES + 1)

    def draw(self, now: float, size: int, order: str) -> LivePanel:
        self._samples.append((now, self.table.counts()))
        since, before = self._samples[0]
        seconds = max(now - since, REFRESH_SECONDS)

        def rate(key: Key, row: RowCounts) -> float:
            return (row.count - before.get(key, 0)) / seconds if len(self._samples) > 1 else 0.0

        def mean(key: Key, row: RowCounts) -> float:
            return row.latency.sum_ns / row.latency.count if row.latency.count else -1.0

        orders: dict[str, Callable[[Key, RowCounts], float]] = {
            "rate": rate,
            "count": lambda key, row: row.count,
            "errors": lambda key, row: row.errors,
            "latency": mean,
        }
        found = self.table.top(size, orders[order])
        counts = self._samples[-1][1]
        rows = [LiveRow(row, (counts[key] - before.get(key, 0)) / seconds) for key, row in found]
        return LivePanel(", ".join(self.table.by), rows, len(self.table))


class LiveView:
    """What is counted and how it is shown. ``add`` every exchange; call ``pause`` whenever there is time."""

    def __init__(
        self,
        live: Live,
        reading: Reading,
        by: Sequence[Sequence[str]],
        keys: Callable[[], str],
        show: Callable[[LiveView], None],
    ) -> None:
        """``keys`` gives what was typed since it was last called; ``show`` is to ask for the screen and show it."""
        self._live = live
        self._reading = reading
        self._by = by
        self._keys = keys
        self._show = show
        self._glyphs = glyphs_for(sys.stdout)
        self._started = self._drawn = time.monotonic()
        self._orders = deque(("rate", "count", "errors", "latency"))
        self._paused = False
        self._lists_exchanges = False
        self._typed: str | None = None
        self._complaint = ""
        self._filter_text = ""
        self._filter: Filter | None = None
        self._last: deque[Exchange] = deque(maxlen=LAST_EXCHANGES)
        self._reset()

    def add(self, exchange: Exchange) -> None:
        """Counts one exchange that came through the command's own filter."""
        if self._filter is not None and not self._filter.matches(exchange):
            return
        self._exchanges += 1
        if exchange.outcome == "error":
            self._errors += 1
        elif exchange.outcome == "unanswered":
            self._unanswered += 1
        self._last.append(exchange)
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

    def screen(self, width: int, height: int) -> Text:
        """The screen as it is now, something rich can print."""
        now = time.monotonic()
        self._samples.append((now, self._live.packets, self._live.position(), self._exchanges))
        since, packets, size, exchanges = self._samples[0]
        seconds = max(now - since, REFRESH_SECONDS)
        state = LiveState(
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
            prompt=self._prompt(),
        )
        if self._lists_exchanges:
            return live_screen(state, self._last_exchanges(width, height), width, height, self._glyphs)
        sizes = rows_per_panel(height, len(self._panels))
        panels = [panel.draw(now, rows, self._orders[0]) for panel, rows in zip(self._panels, sizes, strict=True)]
        return live_screen(state, panels, width, height, self._glyphs)

    def tables(self) -> list[StatsTable]:
        """What was counted."""
        return [panel.table for panel in self._panels]

    def _reset(self) -> None:
        self._panels = [_Panel(names, self._reading) for names in self._by]
        self._samples: deque[tuple[float, int, int, int]] = deque(maxlen=RATE_SAMPLES + 1)
        self._exchanges = self._errors = self._unanswered = 0
        self._last.clear()

    def _prompt(self) -> Sequence[Span]:
        if self._typed is not None:
            return (("title", "filter: "), ("value", f"{escape(self._typed)}_"))
        return (("bad", self._complaint),) if self._complaint else _HELP

    def _last_exchanges(self, width: int, height: int) -> list[str]:
        out = io.StringIO()
        writer = SummaryWriter(out, width, False, topic_name=self._reading.topic_name)
        for exchange in list(self._last)[-max(height - 5, 1) :]:
            writer.write(exchange)
        return ["", *out.getvalue().splitlines()]

    def _press(self, key: str) -> None:
        if self._typed is not None:
            self._type(key)
            return
        self._complaint = ""
        if key == "s":
            self._orders.rotate(-1)
        elif key == "f":
            self._typed = self._filter_text
        elif key == "p":
            self._paused = not self._paused
        elif key == "r":
            self._reset()
        elif key in _ENTERS:
            self._lists_exchanges = not self._lists_exchanges
        elif key == "q":
            self._live.stop()

    def _type(self, key: str) -> None:
        assert self._typed is not None
        if key in _ENTERS:
            self._set_filter(self._typed)
            self._typed = None
        elif key == _ESCAPE:
            self._typed = None
        elif key in _BACKSPACES:
            self._typed = self._typed[:-1]
        elif key.isprintable():
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


def watch(live: Live, reading: Reading, by: Sequence[Sequence[str]]) -> tuple[bool, list[StatsTable], list[Problem]]:
    """Shows the view until the capture ends; whether nobody interrupted it, what was counted, and the problems."""
    from rich.live import Live as Screen

    terminal = console(reading.options.color)
    problems: deque[Problem] = deque(maxlen=LAST_PROBLEMS)

    def show(view: LiveView) -> None:
        width, height = terminal.size = os.get_terminal_size(sys.stdout.fileno())
        screen.update(view.screen(width, height), refresh=True)

    def use(event: Event) -> None:
        if isinstance(event, Exchange):
            view.add(event)
        elif isinstance(event, Problem):
            problems.append(event)

    with Keyboard() as keyboard, Screen(console=terminal, screen=True, auto_refresh=False) as screen:
        view = LiveView(live, reading, by, keyboard.keys, show)
        show(view)
        live.on_pause = view.pause
        finished = for_each(reading.events(), use, live.stop)
    return finished, view.tables(), list(problems)
