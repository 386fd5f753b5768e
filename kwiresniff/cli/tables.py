"""Statistics tables: which ones the user wants, and how they are printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from kwiresniff.analysis.named import row_with_names
from kwiresniff.analysis.stats_keys import DIMENSIONS, OF_BODIES
from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.needs import Needs
from kwiresniff.cli.click_commands import ParamType
from kwiresniff.cli.options import ReadOptions
from kwiresniff.render.tables import stats_table
from kwiresniff.render.terminal import PIPE_WIDTH, is_unicode, printable, use_color, width_of
from kwiresniff.results.stats import StatRow


class ByType(ParamType):
    """``api,client`` is two tables, ``api+client`` one with a row for each pair."""

    name = "dimensions"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[str, ...], ...]:
        if isinstance(value, tuple):
            return value
        tables = tuple(tuple(part.strip() for part in table.split("+")) for table in value.split(","))
        for name in (name for table in tables for name in table):
            if name not in DIMENSIONS:
                self.fail(f"{name!r} is not one of {', '.join(DIMENSIONS)}", param, ctx)
        for table in tables:
            if len(set(table)) < len(table):
                self.fail(f"{'+'.join(table)!r} names a dimension twice", param, ctx)
            if {"topic", "partition"} <= set(table):
                self.fail(f"{'+'.join(table)!r}: a partition goes with the name of its topic", param, ctx)
        return tables


def needs_bodies(by: Sequence[Sequence[str]]) -> bool:
    """Whether a dimension can be counted from decoded bodies only."""
    return any(name in OF_BODIES for names in by for name in names)


def needs_of(by: Sequence[Sequence[str]], *, records: bool) -> Needs:
    """The needs of tables by these dimensions, which count ``records`` or not."""
    topics = any("topic" in names for names in by)
    return Needs("bodies" if records else "errors", topics=topics, digests=True)


def print_tables(
    tables: Sequence[tuple[Sequence[str], Sequence[StatRow]]],
    options: ReadOptions,
    notes: Sequence[str] = (),
    names: AddressNames | None = None,
) -> None:
    """The tables, dimensions and rows, one after the other on standard output, with ``notes`` at the foot of the last.
    Addresses stand with their ``names``.
    """
    out = sys.stdout
    known = names or AddressNames()
    for index, (by, rows) in enumerate(tables):
        lines = stats_table(
            [row_with_names(row, known) for row in rows],
            by=tuple(by),
            width=width_of(out) or PIPE_WIDTH,
            color=use_color(out, options.color),
            unicode=is_unicode(out),
            notes=notes if index == len(tables) - 1 else (),
        )
        out.writelines(printable(line + "\n", out) for line in [*[""] * (index > 0), *lines])
