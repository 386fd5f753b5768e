"""Lines of columns, cut to a terminal or whole in a pipe."""

from __future__ import annotations

import io

from kwiresniff.render.line_wrapping import cells
from kwiresniff.render.one_line import Column, aligned, write_lines


def row(name: str, number: int, other: str = "-") -> list[Column]:
    return [
        Column("name", True, "ident", name),
        Column("count", False, "value", str(number)),
        Column("other", True, "value", other),
    ]


def text(width: int | None, *rows: list[Column]) -> list[str]:
    return ["".join(part for _, part in line) for line in aligned(rows, width)]


def test_a_pipe_gets_everything() -> None:
    """However long, with numbers to the right."""
    lines = text(None, row("n" * 300, 7), row("b", 12345))
    assert [line.split() for line in lines] == [["name", "count", "other"], ["n" * 300, "7", "-"], ["b", "12345", "-"]]
    assert len({len(line) for line in lines}) == 1


def test_a_terminal_gets_no_line_that_is_wider() -> None:
    """The widest names give first; wide characters count as two."""
    lines = text(60, row("n" * 300, 7, "short"), row("日本" * 100, 8))
    assert all(cells(line) <= 60 for line in lines)
    assert "short" in lines[1]


def test_hostile_names_do_nothing() -> None:
    """Columns are made of escaped names; what writes them adds no control character."""
    out = io.StringIO()
    write_lines(out, None, False, ["a"], lambda _: row("\\x1b[31m", 1))
    assert "\x1b" not in out.getvalue() and out.getvalue().count("\n") == 2


def test_without_rows_there_is_no_head() -> None:
    assert aligned([], 80) == []
