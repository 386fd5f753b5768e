"""A screen of statistics that is drawn again and again while traffic passes: its lines, in pieces.

Lines are put together from padded cells: a rich table would cost ten times as much, and this is drawn every second
beside the decoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.histogram import latency_range, sparkline
from kwiresniff.render.line_wrapping import cells, fit, pad, pad_left
from kwiresniff.render.theme import Glyphs, Span
from kwiresniff.results.stats import LatencySummary

#: Columns after the key, and their widths: a count of a billion, and durations as ``units`` writes them.
_COLUMNS: Final = {
    "per s": 9,
    "bytes/s": 10,
    "count": 12,
    "errors": 9,
    "no answer": 10,
    "p50": 9,
    "p99": 9,
    "max": 9,
    "broker p99": 11,
    "latencies": 26,
}
#: Columns that a narrow screen does without, the first to go first, until the key has that much room.
_EXPENDABLE: Final = ("latencies", "bytes/s", "max", "no answer", "count", "broker p99", "p50", "errors")
_KEY_ROOM: Final = 24
#: The last column stands apart from the numbers, and is drawn over these steps of latency for all rows.
_HISTOGRAM_GAP: Final = 2

#: Lines that are not rows: the heading, its two lines of counts, the last line; and of each panel its titles and a gap.
_FIXED_LINES: Final = 4
_PANEL_LINES: Final = 2
#: Screens at least this large have a line that shows how the rate went.
_TREND_HEIGHT: Final = 20
_TREND_WIDTH: Final = 70


@dataclass(frozen=True, slots=True)
class LiveRow:
    """A row of a panel. Rates are over the last seconds, counts over the whole time.

    ``latency`` is that of the last seconds, or of the whole time when it is ``old``; ``waits`` says that there is none
    but of answers that were held back on purpose. ``broker_p99_ns`` is of the broker's own time in the same seconds.
    """

    key: tuple[str, ...]
    per_second: float
    bytes_per_second: float
    count: int
    errors: int
    unanswered: int
    latency: LatencySummary | None
    old: bool = False
    waits: bool = False
    broker_p99_ns: int | None = None


@dataclass(frozen=True, slots=True)
class LivePanel:
    """One table: the rows in order from the one numbered ``first`` on, and how many there are in all.

    ``selected`` is the number among ``rows`` of the one that the keys act on, -1 for none.
    """

    title: str
    rows: Sequence[LiveRow]
    total: int
    first: int = 0
    selected: int = -1


@dataclass(frozen=True, slots=True)
class LiveState:
    """The content of the heading. Rates are over the last seconds, counts over the whole time.

    ``trend`` are exchanges a second, the newest last. ``prompt`` is the last line: keys, what is being typed, or what
    was wrong with it.
    """

    source: str
    seconds: float
    packets_per_second: float
    bytes_per_second: float
    exchanges_per_second: float
    exchanges: int
    errors: int
    unanswered: int
    dropped: int
    order: str
    filter: str = ""
    paused: bool = False
    trend: Sequence[float] = ()
    prompt: Sequence[Span] = ()


def rows_per_panel(height: int, totals: Sequence[int]) -> list[int]:
    """How many rows each panel gets on a screen of ``height`` lines, ``totals`` being how many it has.

    The first one gets half, the others the rest, and what one does not need goes to the first that does. On a screen
    that is too low for all panels the last ones get none.
    """
    room = height - _FIXED_LINES - (height >= _TREND_HEIGHT)
    shown = max(min(len(totals), room // (_PANEL_LINES + 1)), 1)
    room = max(room - shown * _PANEL_LINES, shown)
    others = max(room // 2 // (shown - 1), 1) if shown > 1 else 0
    sizes = [room - others * (shown - 1), *[others] * (shown - 1)]
    spare = 0
    for at, total in enumerate(totals[:shown]):
        unused = max(sizes[at] - max(total, 1), 0)
        sizes[at] -= unused
        spare += unused
    for at, total in enumerate(totals[:shown]):
        wanted = min(max(total - sizes[at], 0), spare)
        sizes[at] += wanted
        spare -= wanted
    return [*sizes, *[0] * (len(totals) - shown)]


def live_screen(
    state: LiveState, panels: Sequence[LivePanel], width: int, height: int, glyphs: Glyphs
) -> list[list[Span]]:
    """The whole screen, line by line."""
    lines = heading(state, width, height, glyphs)
    scale = latency_range([one.latency.buckets for panel in panels for one in panel.rows if one.latency])
    for panel in panels:
        lines += [[], *_panel(panel, width, glyphs, scale)]
    return filled(lines, state.prompt, width, height, glyphs)


def filled(
    lines: list[list[Span]], prompt: Sequence[Span], width: int, height: int, glyphs: Glyphs
) -> list[list[Span]]:
    """Lines cut to the screen and filled up to its last one, the prompt."""
    lines = lines[: height - 1]
    lines += [[] for _ in range(height - 1 - len(lines))]
    return [_fitted(line, width, glyphs) for line in [*lines, list(prompt)]]


def heading(state: LiveState, width: int, height: int, glyphs: Glyphs) -> list[list[Span]]:
    """What stands above the panels."""
    seconds = int(state.seconds)
    first: list[Span] = [
        ("title", f"kwiresniff {escape(state.source)}"),
        ("dim", f"  {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}  by {state.order}"),
    ]
    if state.paused:
        first += [("", "  "), ("warn", " paused ")]
    if state.filter:
        first.append(("client", f"  {escape(state.filter)}"))
    # What is wrong comes before what is only large: a narrow screen cuts the line.
    second: list[Span] = [
        ("title", f"{state.exchanges_per_second:,.0f} exchanges/s"),
        ("bad" if state.errors else "dim", f"  {state.errors:,} errors"),
        ("", "  "),
        ("warn" if state.unanswered else "dim", f"{state.unanswered:,} unanswered"),
        ("", "  "),
        ("warn" if state.dropped else "dim", f"{state.dropped:,} packets dropped"),
        ("value", f"  {state.packets_per_second:,.0f} packets/s  {format_units.size(int(state.bytes_per_second))}/s"),
        ("dim", f"  {state.exchanges:,} exchanges"),
    ]
    if height < _TREND_HEIGHT:
        return [first, second]
    return [first, second, _trend(state.trend, width, glyphs) if width >= _TREND_WIDTH else []]


def _trend(rates: Sequence[float], width: int, glyphs: Glyphs) -> list[Span]:
    highest = max(rates, default=0.0)
    if highest < 1:
        return []
    words = f"  up to {highest:,.0f} exchanges/s in {len(rates)} s"
    shown = rates[-max(width - len(words), 1) :]
    top = len(glyphs.bars) - 1
    return [("good", "".join([glyphs.bars[ceil(rate / highest * top)] for rate in shown])), ("dim", words)]


def _panel(panel: LivePanel, width: int, glyphs: Glyphs, scale: Sequence[int]) -> list[list[Span]]:
    columns = dict(_COLUMNS)
    for name in _EXPENDABLE:
        if width - sum(columns.values()) < _KEY_ROOM:
            del columns[name]
    marker = len(glyphs.pointer)
    room = max(width - sum(columns.values()) - marker, 1)
    hidden = panel.total - len(panel.rows)
    title = f"{panel.title} ({hidden:,} more)" if hidden else panel.title
    titles = [
        pad(" " * _HISTOGRAM_GAP + name, size) if name == "latencies" else pad_left(name, size)
        for name, size in columns.items()
    ]
    lines: list[list[Span]] = [
        [("heading", " " * marker + pad(fit(title, room, glyphs.ellipsis), room) + "".join(titles))]
    ]
    for number, one in enumerate(panel.rows):
        selected = number == panel.selected
        key = escape(" ".join(one.key)) or '""'
        spans: list[Span] = [
            ("", glyphs.pointer if selected else " " * marker),
            ("selected" if selected else "api", pad(fit(key, room, glyphs.ellipsis), room)),
        ]
        spans += [(_kind(name, one), _cell(name, one, size, glyphs, scale)) for name, size in columns.items()]
        lines.append(spans)
    return lines


def _cell(name: str, one: LiveRow, size: int, glyphs: Glyphs, scale: Sequence[int]) -> str:
    latency = one.latency
    if name == "latencies":
        bars = sparkline(latency.buckets, scale, size - _HISTOGRAM_GAP, glyphs.bars) if latency and not one.old else ""
        return pad(" " * _HISTOGRAM_GAP + bars, size)
    if name == "per s":
        text = f"{one.per_second:,.1f}" if one.per_second else ""
    elif name == "bytes/s":
        text = format_units.size(int(one.bytes_per_second)) if one.bytes_per_second >= 1 else ""
    elif name == "count":
        text = f"{one.count:,}"
    elif name == "errors":
        text = f"{one.errors:,}" if one.errors else ""
    elif name == "no answer":
        text = f"{one.unanswered:,}" if one.unanswered else ""
    elif name == "broker p99":
        text = "" if one.broker_p99_ns is None else format_units.duration(one.broker_p99_ns, micro=glyphs.micro)
    elif latency is None:
        text = ""
    else:
        value = {"p50": latency.p50_ns, "p99": latency.p99_ns, "max": latency.max_ns}[name]
        text = format_units.duration(value, micro=glyphs.micro)
    return pad_left(text, size)


def _kind(column: str, one: LiveRow) -> str:
    if column == "errors":
        return "bad"
    if column == "broker p99":
        return "dim" if one.old else "value"
    if column in ("p50", "p99", "max", "latencies"):
        return "dim" if one.old else "wait" if one.waits else "value"
    return "warn" if column == "no answer" and one.unanswered else "value"


def _fitted(line: Sequence[Span], width: int, glyphs: Glyphs) -> list[Span]:
    found: list[Span] = []
    for kind, part in line:
        if width <= 0:
            break
        part = fit(part, width, glyphs.ellipsis)
        width -= cells(part)
        found.append((kind, part))
    return found
