"""A screen of statistics that is drawn again and again while traffic passes.

The screen is one rich ``Text``, put together from padded cells: a rich table would cost ten times as much, and this is
drawn every second beside the decoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kwiresniff.model import StatRow
from kwiresniff.render import units
from kwiresniff.render.escape import escape
from kwiresniff.render.lines import fit, pad, pad_left
from kwiresniff.render.paint import STYLES, Glyphs, Span

if TYPE_CHECKING:
    from rich.text import Text

#: Columns after the key, and their widths: a count of a billion, and durations as ``units`` writes them.
_COLUMNS: Final = {"per s": 9, "count": 12, "errors": 9, "no answer": 10, "p50": 9, "p99": 9, "max": 9}
#: Columns that a narrow screen does without, the first to go first, until the key has that much room.
_EXPENDABLE: Final = ("max", "no answer", "count", "p50")
_KEY_ROOM: Final = 24

#: Lines that are not rows: the heading, its two lines of counts, the last line; and of each panel its titles and a gap.
_FIXED_LINES: Final = 4
_PANEL_LINES: Final = 2


@dataclass(frozen=True, slots=True)
class LiveRow:
    """A row and how many exchanges a second it had lately."""

    row: StatRow
    per_second: float


@dataclass(frozen=True, slots=True)
class LivePanel:
    """One table: its rows in order, and how many there are in all."""

    title: str
    rows: Sequence[LiveRow]
    total: int


@dataclass(frozen=True, slots=True)
class LiveState:
    """What the heading says. Rates are over the last seconds, counts over the whole time.

    ``prompt`` is the last line: keys, what is being typed, or what was wrong with it.
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
    prompt: Sequence[Span] = ()


def rows_per_panel(height: int, panels: int) -> list[int]:
    """How many rows each panel gets on a screen of ``height`` lines: the first one half, the others the rest."""
    room = max(height - _FIXED_LINES - panels * _PANEL_LINES, panels)
    if panels == 1:
        return [room]
    others = max(room // 2 // (panels - 1), 1)
    return [max(room - others * (panels - 1), 1), *[others] * (panels - 1)]


def live_screen(
    state: LiveState, body: Sequence[LivePanel] | Sequence[str], width: int, height: int, glyphs: Glyphs
) -> Text:
    """The whole screen: panels, or lines that are ready to print."""
    lines = _heading(state)
    for part in body:
        if isinstance(part, LivePanel):
            lines += [[], *_panel(part, width, glyphs)]
        else:
            lines.append([("value", part)])
    lines = lines[: height - 1]
    lines += [[] for _ in range(height - 1 - len(lines))]
    return _text([*lines, list(state.prompt)], width, glyphs)


def _heading(state: LiveState) -> list[list[Span]]:
    seconds = int(state.seconds)
    first: list[Span] = [
        ("title", f"kwiresniff {escape(state.source)}"),
        ("dim", f"  {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}  by {state.order}"),
    ]
    if state.filter:
        first.append(("client", f"  {escape(state.filter)}"))
    if state.paused:
        first.append(("warn", " paused "))
    rates = f"{state.exchanges_per_second:,.0f} exchanges/s  {state.packets_per_second:,.0f} packets/s  "
    second: list[Span] = [
        ("value", f"{rates}{units.size(int(state.bytes_per_second))}/s"),
        ("dim", f"  {state.exchanges:,} exchanges"),
        ("bad" if state.errors else "dim", f"  {state.errors:,} with errors"),
        ("warn" if state.unanswered else "dim", f"  {state.unanswered:,} unanswered"),
        ("warn" if state.dropped else "dim", f"  {state.dropped:,} packets dropped"),
    ]
    return [first, second]


def _panel(panel: LivePanel, width: int, glyphs: Glyphs) -> list[list[Span]]:
    columns = dict(_COLUMNS)
    for name in _EXPENDABLE:
        if width - sum(columns.values()) < _KEY_ROOM:
            del columns[name]
    room = max(width - sum(columns.values()), 1)
    hidden = panel.total - len(panel.rows)
    title = f"{panel.title} ({hidden:,} more)" if hidden else panel.title
    titles = "".join([pad_left(name, size) for name, size in columns.items()])
    lines: list[list[Span]] = [[("heading", pad(fit(title, room, glyphs.ellipsis), room) + titles)]]
    for one in panel.rows:
        row, latency = one.row, one.row.latency or (one.row.waiting[0][1] if one.row.waiting else None)
        cells = {
            "per s": f"{one.per_second:,.1f}" if one.per_second else "",
            "count": f"{row.count:,}",
            "errors": f"{row.errors:,}" if row.errors else "",
            "no answer": f"{row.unanswered:,}" if row.unanswered else "",
            "p50": units.duration(latency.p50_ns, micro=glyphs.micro) if latency else "",
            "p99": units.duration(latency.p99_ns, micro=glyphs.micro) if latency else "",
            "max": units.duration(latency.max_ns, micro=glyphs.micro) if latency else "",
        }
        key = escape(" ".join(row.key)) or '""'
        spans: list[Span] = [("api", pad(fit(key, room, glyphs.ellipsis), room))]
        spans += [(_kind(name, row), pad_left(cells[name], size)) for name, size in columns.items()]
        lines.append(spans)
    return lines


def _kind(column: str, row: StatRow) -> str:
    if column == "errors":
        return "bad"
    if column in ("p50", "p99", "max") and row.latency is None:
        return "wait"  # nothing but answers that were held back on purpose
    return "warn" if column == "no answer" and row.unanswered else "value"


def _text(lines: Sequence[Sequence[Span]], width: int, glyphs: Glyphs) -> Text:
    from rich.text import Text

    text = Text(no_wrap=True, end="")
    for number, line in enumerate(lines):
        if number:
            text.append("\n")
        room = width
        for kind, part in line:
            part = fit(part, room, glyphs.ellipsis) if room > 0 else ""
            room -= len(part)
            text.append(part, STYLES[kind] or None)
    return text
