"""Tables: latency and traffic statistics, and any list that a command has to show.

A table fits the width it is given: columns of less worth are left out first, then the keys are cut. Every text is made
of escaped characters, never markup.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.histogram import latency_range, sparkline
from kwiresniff.render.line_wrapping import cells
from kwiresniff.render.one_line import Column, aligned
from kwiresniff.render.paint import Paint
from kwiresniff.render.theme import ASCII, UNICODE, Glyphs
from kwiresniff.results.stats import LatencySummary, StatRow

if TYPE_CHECKING:
    from rich.table import Table

#: Columns beside the keys: the rank, of which the highest is left out first and 0 never, and the style of cells that
#: differ from their row.
_COLUMNS: Final = {
    "count": (0, ""),
    "errors": (1, "bad"),
    "unanswered": (4, "warn"),
    "negotiation": (6, "dim"),
    "produced": (3, ""),
    "fetched": (3, ""),
    "path": (10, "wait"),
    "queued": (10, "wait"),
    "held": (10, "wait"),
    "broker": (10, ""),
    "request": (7, "dim"),
    "response": (8, "dim"),
    "p50": (0, ""),
    "p90": (9, ""),
    "p95": (5, ""),
    "p99": (2, ""),
    "max": (1, ""),
    "histogram": (3, ""),
}
_LATENCIES: Final = ("p50", "p90", "p95", "p99", "max")

#: Dimensions of which an exchange may have several values.
_SEVERAL: Final = frozenset({"topic", "partition", "group", "error"})

#: Spaces between two columns.
_GAP: Final = 2

#: Bars of a histogram.
_BARS: Final = 12

#: Characters that may share a place on the screen: a letter and the marks on it.
_CHARS_PER_CELL: Final = 4

#: The mark before the reason of a wait, below the row that it belongs to.
_WAIT_MARK: Final = "  ~ "
#: And the names of what waits are made of.
PATH: Final = "path"
QUEUED: Final = "queued"
BROKER: Final = "broker"


class _Line(NamedTuple):
    """One line of the table in words: what each key column and each other column holds, and its style."""

    keys: tuple[str, ...]
    cells: dict[str, str]
    kind: str = "value"


def stats_table(
    rows: Sequence[StatRow],
    *,
    by: Sequence[str],
    width: int,
    color: bool = True,
    unicode: bool = True,
    notes: Sequence[str] = (),
) -> list[str]:
    """Statistics, one row per combination of the dimensions ``by``, deliberate waits marked below it, and a total;
    ``notes`` stand at its foot.

    Ready lines: this table is what most runs end with, and loading rich would take as long as many of them.
    """
    glyphs = UNICODE if unicode else ASCII
    paint = Paint(color, glyphs)
    scale = latency_range([summary.buckets for row in rows for summary in _summaries(row)])
    lines = [line for row in rows for line in _row_lines(row, glyphs, scale, width)]
    total = []
    if len(rows) > 1 and _SEVERAL.isdisjoint(by):
        # An exchange about two topics is in two rows: the sum would be wrong.
        total = [_Line(("total", *[""] * (len(by) - 1)), _count_cells(lambda name: _total(rows, name)), "ident")]
    drawn = aligned(_columns(by, [*lines, *total] or [_Line(("",) * len(by), {})]), width, glyphs.ellipsis)
    full = sum([cells(text) for _, text in drawn[0]])
    shown = {text.strip() for _, text in drawn[0]}
    drawn_lines = [paint.spans(line) for line in drawn[: 1 + len(lines) + len(total)]]
    drawn_lines.insert(1, paint.text("dim", glyphs.rule * full))
    if total:
        drawn_lines.insert(-1, " " * full)
    caption = [part for line in [*_caption(rows, shown, glyphs, scale), *notes] for part in _wrapped(line, full)]
    return drawn_lines + [paint.text("dim", line.ljust(full)) for line in caption]


def _summaries(row: StatRow) -> list[LatencySummary]:
    return [*([row.latency] if row.latency else []), *[summary for _, summary in parts_of_waits(row)]]


def parts_of_waits(row: StatRow) -> list[tuple[str, LatencySummary]]:
    """The lines below a row: the whole waits of answers that were held back, by reason; then, where anything was queued
    or held, how long was queued and what is left to the broker."""
    parts = list(row.waiting)
    if row.path is not None:
        parts.append((PATH, row.path))
    if row.queued is not None:
        parts.append((QUEUED, row.queued))
    if row.broker is not None and is_parted(row):
        parts.append((BROKER, row.broker))
    return parts


def is_parted(row: StatRow) -> bool:
    """Whether not all waits of a row are the broker's."""
    return row.queued is not None or row.held is not None or row.path is not None


def _row_lines(row: StatRow, glyphs: Glyphs, scale: tuple[int, ...], width: int) -> list[_Line]:
    """The row itself, then one line for every reason the broker had to wait, and for what the waits are made of.

    Of long keys, all that can be seen.
    """
    keys = tuple([escape(part[: _CHARS_PER_CELL * (width + 1)]) or '""' for part in row.key])
    if row.names:
        called = {by: " ".join([escape(one.name) for one in names]) for by, names in row.names}
        keys = tuple([f"{key} {called[by]}" if by in called else key for by, key in zip(row.by, keys, strict=True)])
    lines = [
        _Line(
            keys,
            {
                **_count_cells(lambda name: _total([row], name)),
                **_sum_cells(row, glyphs),
                **_latency_cells(row.latency, glyphs, scale),
            },
        )
    ]
    for reason, summary in parts_of_waits(row):
        waits = (f"{_WAIT_MARK}{escape(reason)}", *[""] * (len(keys) - 1))
        found = {"count": f"{summary.count:,}", **_latency_cells(summary, glyphs, scale)}
        lines.append(_Line(waits, found, "value" if reason == BROKER else "wait"))
    return lines


def _count_cells(counts: Callable[[str], int]) -> dict[str, str]:
    """The cells of everything that can be added up, of a row or of all; percentiles cannot."""

    def number(name: str) -> str:
        return f"{counts(name):,}" if counts(name) else ""

    return {
        "count": f"{counts('count'):,}",
        "errors": number("errors"),
        "unanswered": number("unanswered"),
        "negotiation": number("negotiation"),
        "request": format_units.size(counts("request_bytes")),
        "response": format_units.size(counts("response_bytes")),
        "produced": number("request_records"),
        "fetched": number("response_records"),
    }


def _total(rows: Sequence[StatRow], name: str) -> int:
    return sum([getattr(row, name) or 0 for row in rows])


def _sum_cells(row: StatRow, glyphs: Glyphs) -> dict[str, str]:
    """Where the time of all exchanges together went, as far as it did not all go to the broker."""
    if not is_parted(row):
        return {}
    parts = (("path", row.path), ("queued", row.queued), ("held", row.held), ("broker", row.broker))
    return {
        name: format_units.duration(one.mean_ns * one.count, micro=glyphs.micro)
        for name, one in parts
        if one is not None
    }


def _latency_cells(latency: LatencySummary | None, glyphs: Glyphs, scale: tuple[int, ...]) -> dict[str, str]:
    if latency is None:
        return {}
    cell = {title: format_units.duration(getattr(latency, f"{title}_ns"), micro=glyphs.micro) for title in _LATENCIES}
    cell["histogram"] = sparkline(latency.buckets, scale, _BARS, glyphs.bars)
    return cell


def _columns(by: Sequence[str], lines: Sequence[_Line]) -> list[list[Column]]:
    """The keys, and what else any line has something to say of."""
    said = {title for line in lines for title, text in line.cells.items() if text}
    shown = {title: look for title, look in _COLUMNS.items() if look[0] == 0 or title in said}
    bars = max([len("histogram"), *[len(line.cells.get("histogram", "")) for line in lines]])
    rows = []
    for line in lines:
        row = [Column(title, True, line.kind, key) for title, key in zip(by, line.keys, strict=True)]
        for title, (rank, kind) in shown.items():
            room = bars if title == "histogram" else 0
            text = line.cells.get(title, "").ljust(room)
            row.append(Column(title.ljust(room), False, kind or line.kind, text, rank))
        rows.append(row)
    return rows


def _caption(rows: Sequence[StatRow], shown: Container[str], glyphs: Glyphs, scale: tuple[int, ...]) -> list[str]:
    lines = ["Latency at the capture point: request's last byte to response's first byte."]
    if "produced" in shown or "fetched" in shown:
        lines.append("produced, fetched: records in Produce requests, and in Fetch responses.")
    summed = [name for name in ("path", "queued", "held", "broker") if name in shown]
    if summed:
        lines.append(f"{', '.join(summed)}: the times of all requests of a row, added up.")
    if any(row.waiting for row in rows):
        lines.append("~ held back by the broker on purpose: counted above, timed apart.")
    if any(row.queued is not None for row in rows):
        lines.append("~ queued: behind the answer before on the connection, or in the muted channel of a quota.")
    if any(row.path is not None for row in rows):
        lines.append("~ path: what packets take to a broker that is far away, and back, by the TCP handshake.")
    if any(map(is_parted, rows)):
        lines.append("~ broker: what is left of all waits, the broker's own time and the way to it.")
    if scale and "histogram" in shown:
        top = format_units.duration(scale[-1], micro=glyphs.micro)
        lines.append(f"histogram: up to {top}, logarithmic, one scale for all rows.")
    return lines


def _wrapped(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    return textwrap.wrap(line, width)


def plain_table(titles: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[str] = ()) -> Table:
    """Any list: one column per title, those in ``right`` right-aligned; long cells fold.

    A cell is a rich ``Text``, or anything whose text is escaped here; None is shown as ``-``.
    """
    from rich.text import Text

    aligned = frozenset(right)
    table = _table()
    for title in titles:
        table.add_column(
            title,
            justify="right" if title in aligned else "left",
            overflow="fold",
            no_wrap=title in aligned,
        )
    for row in rows:
        table.add_row(*[cell if isinstance(cell, Text) else Text(_text(cell)) for cell in row])
    return table


def _text(cell: object) -> str:
    return "-" if cell is None else escape(str(cell))


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        # The box puts one space between columns itself.
        padding=(0, _GAP - 1, 0, 0),
        show_edge=False,
        header_style="bold",
        border_style="dim",
        caption_justify="left",
        caption_style="",
    )
