"""Lists of one line each, in columns: what a script cuts up, and what a screen has room for.

On a pipe no cell is cut and names keep their spaces escaped, so that ``awk`` finds every column where the head says;
on a terminal the columns of names share what room there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TextIO, TypeVar

from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import cells, fit, pad, pad_left
from kwiresniff.render.terminal import glyphs_for, printable
from kwiresniff.render.theme import Paint, Span

#: What stands where there is nothing to say; a column that is empty would shift the others.
NOTHING: Final = "-"
#: The narrowest that a column of names gets.
_LEAST: Final = 8
_GAP: Final = 2

Row = TypeVar("Row")


class Column(NamedTuple):
    """A column: its title, whether it is of names (else of numbers, to the right), its kind of paint, and its text."""

    title: str
    named: bool
    kind: str
    cell: str


def cluster_column(cluster: str | None) -> list[Column]:
    """A column that is there where there are several clusters; then every row has one."""
    return [] if cluster is None else [Column("cluster", True, "dim", name_cell(cluster))]


def aligned(rows: Sequence[Sequence[Column]], width: int | None, ellipsis: str = "…") -> list[list[Span]]:
    """A head and the rows below it; ``width`` None cuts nothing."""
    if not rows:
        return []
    wide = [max(cells(title.title), *(cells(row[at].cell) for row in rows)) for at, title in enumerate(rows[0])]
    if width is not None:
        _narrow(wide, [column.named for column in rows[0]], width)
    head = [("title", column.title) for column in rows[0]]
    lines = [head, *([(column.kind, column.cell) for column in row] for row in rows)]
    found = []
    for line in lines:
        spans: list[Span] = []
        for at, (kind, text) in enumerate(line):
            text = fit(text, wide[at], ellipsis)
            spans.append((kind, (pad if rows[0][at].named else pad_left)(text, wide[at])))
            spans.append(("", " " * _GAP))
        found.append(spans[:-1])
    return found


def write_lines(
    out: TextIO, width: int | None, color: bool, rows: Iterable[Row], columns: Callable[[Row], list[Column]]
) -> None:
    """A line for each, below a head."""
    paint = Paint(color, glyphs_for(out))
    for line in aligned([columns(row) for row in rows], width, paint.glyphs.ellipsis):
        out.write(printable(paint.spans(line), out).rstrip() + "\n")


def _narrow(wide: list[int], named: list[bool], width: int) -> None:
    """Take from the widest columns of names what there is no room for."""
    over = sum(wide) + _GAP * (len(wide) - 1) - width
    while over > 0:
        at = max((at for at in range(len(wide)) if named[at]), key=lambda at: wide[at])
        if wide[at] <= _LEAST:
            return
        wide[at] -= 1
        over -= 1


def name_cell(text: str) -> str:
    """A name as one word: spaces are written ``_``."""
    return escape(text).replace(" ", "_") or NOTHING


def duration_cell(ns: int) -> str:
    return format_units.duration(ns).replace(" ", "")
