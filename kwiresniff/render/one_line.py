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
from kwiresniff.render.paint import Paint
from kwiresniff.render.terminal import glyphs_for, printable
from kwiresniff.render.theme import Span

#: The cell without a value; an empty one would shift the columns behind it.
NOTHING: Final = "-"
#: The narrowest that a column of names gets, and what it has before dearer columns are left out.
_LEAST: Final = 8
_WANTED: Final = 22
_GAP: Final = 2

Row = TypeVar("Row")


class Column(NamedTuple):
    """A cell of a column: the title, whether it is of names (else of numbers, to the right), the kind of paint, the
    text; and how dear the column is: where there is no room, the highest rank is left out first, 0 never.
    """

    title: str
    named: bool
    kind: str
    cell: str
    rank: int = 0


def cluster_column(cluster: str | None) -> list[Column]:
    """A column that is there where there are several clusters; then every row has one."""
    return [] if cluster is None else [Column("cluster", True, "dim", name_cell(cluster))]


def aligned(rows: Sequence[Sequence[Column]], width: int | None, ellipsis: str = "…") -> list[list[Span]]:
    """A head and the rows below it; ``width`` None cuts nothing."""
    if not rows:
        return []
    head = rows[0]
    wide = [max(cells(one.title), *(cells(row[at].cell) for row in rows)) for at, one in enumerate(head)]
    shown = list(range(len(head)))
    if width is not None:
        _leave_out(shown, wide, head, width)
        _narrow(shown, wide, head, width)
    lines = [[("title", one.title) for one in head], *([(one.kind, one.cell) for one in row] for row in rows)]
    found = []
    for line in lines:
        spans: list[Span] = []
        for at in shown:
            kind, text = line[at][0], fit(line[at][1], wide[at], ellipsis)
            spans += [(kind, (pad if head[at].named else pad_left)(text, wide[at])), ("", " " * _GAP)]
        found.append(spans[:-1])
    return found


def write_lines(
    out: TextIO, width: int | None, color: bool, rows: Iterable[Row], columns: Callable[[Row], list[Column]]
) -> None:
    """A line for each, below a head."""
    paint = Paint(color, glyphs_for(out))
    for line in aligned([columns(row) for row in rows], width, paint.glyphs.ellipsis):
        out.write(printable(paint.spans(line), out).rstrip() + "\n")


def _leave_out(shown: list[int], wide: list[int], head: Sequence[Column], width: int) -> None:
    """Leaves out dear columns rather than cutting names below what they want."""
    while (rank := max(head[at].rank for at in shown)) > 0:
        wanted = [min(wide[at], _WANTED) if head[at].named else wide[at] for at in shown]
        if sum(wanted) + _GAP * (len(shown) - 1) <= width:
            break
        shown.remove(next(at for at in shown if head[at].rank == rank))


def _narrow(shown: list[int], wide: list[int], head: Sequence[Column], width: int) -> None:
    """Takes from the widest columns of names what there is no room for, so that short ones stay whole."""
    over = sum(wide[at] for at in shown) + _GAP * (len(shown) - 1) - width
    while over > 0:
        at = max((at for at in shown if head[at].named), key=lambda at: wide[at])
        if wide[at] <= _LEAST:
            return
        wide[at] -= 1
        over -= 1


def name_cell(text: str) -> str:
    """A name as one word: spaces are written ``_``."""
    return escape(text).replace(" ", "_") or NOTHING


def duration_cell(ns: int) -> str:
    return format_units.duration(ns).replace(" ", "")
