"""Tables: latency and traffic statistics, and any list that a command has to show.

A table fits the width it is given: columns of less worth are left out first, then the keys are cut. Every text is a
rich ``Text`` made of escaped characters, never markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kwiresniff.model import LatencySummary, StatRow

from . import units
from .escape import escape
from .histogram import latency_range, sparkline
from .lines import cells, fit
from .paint import ASCII, STYLES, UNICODE, Glyphs

if TYPE_CHECKING:
    from rich.table import Table

#: Columns beside the keys: title, width, and rank; the highest rank is left out first, 0 never.
_COLUMNS: Final = (
    ("count", 9, 0),
    ("errors", 6, 1),
    ("lost", 5, 3),
    ("request", 8, 7),
    ("response", 8, 8),
    ("p50", 8, 0),
    ("p90", 8, 9),
    ("p95", 8, 5),
    ("p99", 8, 2),
    ("max", 8, 1),
    ("histogram", 14, 4),
)
_LATENCIES: Final = ("p50", "p90", "p95", "p99", "max")

#: Spaces between two columns.
_GAP: Final = 2

#: A key is not squeezed below this before columns are left out, and never below the second.
_KEY_WANTED: Final = 22
_KEY_LEAST: Final = 8

#: What stands before the reason of a wait, under the row it belongs to.
_WAIT_MARK: Final = "  ~ "


def stats_table(
    rows: Sequence[StatRow], *, by: Sequence[str], width: int, color: bool = True, unicode: bool = True
) -> Table:
    """Statistics, one row per combination of the dimensions ``by``, deliberate waits marked below it, and a total."""
    from rich.text import Text

    glyphs = UNICODE if unicode else ASCII
    style = STYLES if color else dict.fromkeys(STYLES, "")
    keys = [[escape(part) or '""' for part in row.key] for row in rows]
    key_widths, shown = _layout(by, keys, rows, width)
    summaries = [summary for row in rows for summary in _summaries(row)]
    scale = latency_range([summary.buckets for summary in summaries])
    table = _table()
    for title, room in zip(by, key_widths, strict=True):
        table.add_column(title, width=room, no_wrap=True)
    for title in shown:
        table.add_column(title, justify="left" if title == "histogram" else "right", no_wrap=True)

    def add(names: list[Text], counts: dict[str, str], latency: LatencySummary | None, kind: str) -> None:
        cell = {**counts, **_latency_cells(latency, glyphs, scale)}
        kinds = {"errors": "bad", "lost": "warn", "request": "dim", "response": "dim"}
        texts = [Text(cell.get(title, ""), style[kinds.get(title, kind)]) for title in shown]
        table.add_row(*names, *texts)

    for row, key in zip(rows, keys, strict=True):
        names = [Text(fit(part, room, glyphs.ellipsis)) for part, room in zip(key, key_widths, strict=True)]
        add(names, _count_cells(row), row.latency, "value")
        for reason, summary in row.waiting:
            mark = Text(fit(f"{_WAIT_MARK}{escape(reason)}", key_widths[0], glyphs.ellipsis), style["wait"])
            blank = [Text("") for _ in key_widths[1:]]
            add([mark, *blank], {"count": f"{summary.count:,}"}, summary, "wait")
    if len(rows) > 1:
        table.add_section()
        add([Text("total", style["ident"]), *[Text("") for _ in key_widths[1:]]], _totals(rows), None, "ident")
    table.caption = Text(_caption(rows, shown, glyphs, scale), style["dim"])
    return table


def _summaries(row: StatRow) -> list[LatencySummary]:
    return [*([row.latency] if row.latency else []), *[summary for _, summary in row.waiting]]


def _count_cells(row: StatRow) -> dict[str, str]:
    return {
        "count": f"{row.count:,}",
        "errors": f"{row.errors:,}" if row.errors else "",
        "lost": f"{row.unanswered:,}" if row.unanswered else "",
        "request": units.size(row.request_bytes),
        "response": units.size(row.response_bytes),
    }


def _totals(rows: Sequence[StatRow]) -> dict[str, str]:
    count, errors, lost, request, response = (
        sum(column)
        for column in zip(
            *[(row.count, row.errors, row.unanswered, row.request_bytes, row.response_bytes) for row in rows],
            strict=True,
        )
    )
    return _count_cells(StatRow((), (), count, errors, lost, request, response, None))


def _latency_cells(latency: LatencySummary | None, glyphs: Glyphs, scale: tuple[int, ...]) -> dict[str, str]:
    if latency is None:
        return {}
    values = (latency.p50_ns, latency.p90_ns, latency.p95_ns, latency.p99_ns, latency.max_ns)
    cell = {title: units.duration(value, micro=glyphs.micro) for title, value in zip(_LATENCIES, values, strict=True)}
    cell["histogram"] = sparkline(latency.buckets, scale, 14, glyphs.bars)
    return cell


def _layout(
    by: Sequence[str], keys: Sequence[Sequence[str]], rows: Sequence[StatRow], width: int
) -> tuple[list[int], list[str]]:
    """The width of every key column, and the titles of the other columns that fit."""
    widths = [max([len(title), 5, *[cells(key[at]) for key in keys]]) for at, title in enumerate(by)]
    waits = [cells(reason) + len(_WAIT_MARK) for row in rows for reason, _ in row.waiting]
    widths[0] = max([widths[0], *waits])
    # A column in which no row has anything to say is not worth its place.
    empty = {"errors"} if not any(row.errors for row in rows) else set()
    empty |= {"lost"} if not any(row.unanswered for row in rows) else set()
    columns = [column for column in _COLUMNS if column[0] not in empty]
    while True:
        room = width - sum([size + _GAP for _, size, _ in columns]) - _GAP * (len(by) - 1)
        rank = max([rank for _, _, rank in columns])
        if rank == 0 or room >= sum([min(size, _KEY_WANTED) for size in widths]):
            break
        columns.remove(next(column for column in columns if column[2] == rank))
    while sum(widths) > room and max(widths) > _KEY_LEAST:
        # The widest key gives way first, so that short ones stay whole.
        widths[widths.index(max(widths))] -= 1
    return widths, [title for title, _, _ in columns]


def _caption(rows: Sequence[StatRow], shown: Sequence[str], glyphs: Glyphs, scale: tuple[int, ...]) -> str:
    lines = ["Latency: last byte of the request to first byte of the response, at the capture point."]
    if any(row.waiting for row in rows):
        lines.append("~ The broker held the answer back on purpose; counted in the row above, timed apart.")
    if "lost" in shown:
        lines.append("Lost: requests that should have been answered and were not.")
    if scale and "histogram" in shown:
        low = units.duration(scale[0] // 2, micro=glyphs.micro)
        high = units.duration(scale[-1], micro=glyphs.micro)
        lines.append(f"Histogram: {low} to {high}, logarithmic, one scale for all rows.")
    return "\n".join(lines)


def plain_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Iterable[str] = (),
    styles: dict[str, str] | None = None,
    color: bool = True,
) -> Table:
    """Any list: one column per title, those in ``right`` right-aligned; long cells fold.

    A cell is a rich ``Text``, or anything whose text is escaped here; None is shown as ``-``. ``styles`` gives a kind
    of ``paint.STYLES`` per title.
    """
    from rich.text import Text

    aligned = frozenset(right)
    kinds = styles or {}
    table = _table()
    for title in titles:
        table.add_column(
            title,
            justify="right" if title in aligned else "left",
            style=STYLES[kinds.get(title, "")] if color else "",
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
        padding=(0, _GAP, 0, 0),
        show_edge=False,
        collapse_padding=True,
        header_style="bold",
        caption_justify="left",
        caption_style="",
    )
