"""``-o lines``: one line for each client or topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from kwiresniff.cli.options import ReadOptions
from kwiresniff.render import stdout_for
from kwiresniff.render.one_line import Column, write_lines

Row = TypeVar("Row")


def print_rows(rows: Sequence[Row], columns: Callable[[Row], list[Column]], options: ReadOptions) -> None:
    """Below a head that says what the columns are."""
    write_lines(*stdout_for(options.color), rows, columns)
