"""Statistics over time as a table: a line for each slice, with a bar that shows how it compares with the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TextIO

from kwiresniff.render import format_units
from kwiresniff.render.histogram import sparkline
from kwiresniff.render.one_line import NOTHING, Column, duration_cell, name_cell, write_lines
from kwiresniff.render.terminal import glyphs_for
from kwiresniff.results.stats import LatencySummary, StatRow

#: Characters of the longest bar.
BAR: Final = 20
#: Characters of a line of bars.
SPARK: Final = 40


def write_over_time(
    out: TextIO, width: int | None, color: bool, rows: Sequence[StatRow], every_ns: int, unit_ns: int = 1_000_000_000
) -> None:
    """Rows whose first dimension is time, its key the beginning of a slice in nanoseconds.

    The bar of a row is its count beside the greatest of all rows with the same other dimensions.
    """
    most: dict[tuple[str, ...], int] = {}
    for row in rows:
        most[row.key[1:]] = max(most.get(row.key[1:], 0), row.count)
    full = glyphs_for(out).bars[-1]
    digits = 0 if every_ns % unit_ns == 0 else 3

    def columns(row: StatRow) -> list[Column]:
        begun = row.key[0]
        time = _time(int(begun), digits) if begun.isdigit() else name_cell(begun)
        latency = row.latency
        greatest = most[row.key[1:]]
        # Something is always more than nothing.
        bar = full * max(round(BAR * row.count / greatest), 1) if row.count else ""
        return [
            Column("time", True, "ident", time),
            *(Column(by, True, "value", name_cell(part)) for by, part in zip(row.by[1:], row.key[1:], strict=True)),
            Column("count", False, "value", str(row.count)),
            Column("per_s", False, "value", f"{row.count * unit_ns / every_ns:.3g}"),
            Column("errors", False, "bad" if row.errors else "dim", str(row.errors)),
            Column("unanswered", False, "warn" if row.unanswered else "dim", str(row.unanswered)),
            Column("request_bytes", False, "dim", str(row.request_bytes)),
            Column("response_bytes", False, "dim", str(row.response_bytes)),
            *(Column(name, False, "value", _percentile(latency, f"{name}_ns")) for name in ("p50", "p99", "max")),
            Column("bar", True, "client", bar or NOTHING),
        ]

    write_lines(out, width, color, rows, columns)


def write_sparklines(
    out: TextIO, width: int | None, color: bool, rows: Sequence[StatRow], slices: Sequence[int]
) -> None:
    """A line for each value of the dimensions beside time: how the counts and the longest latencies of its ``slices``
    compare, at most ``SPARK`` characters from the first to the last. Heights grow with the square root.
    """
    bars = glyphs_for(out).bars
    parts: dict[tuple[str, ...], list[StatRow]] = {}
    for row in rows:
        if row.key[0].isdigit():
            parts.setdefault(row.key[1:], []).append(row)

    def columns(key: tuple[str, ...]) -> list[Column]:
        found = parts[key]
        counts = [(int(row.key[0]), row.count) for row in found]
        longest = [(int(row.key[0]), row.latency.max_ns) for row in found if row.latency is not None]
        return [
            *(Column(by, True, "value", name_cell(part)) for by, part in zip(found[0].by[1:], key, strict=True)),
            Column("count", False, "value", str(sum(count for _, count in counts))),
            Column("errors", False, "dim", str(sum(row.errors for row in found))),
            Column("counts", True, "client", sparkline(counts, slices, SPARK, bars) or NOTHING),
            Column("max", False, "value", duration_cell(max(ns for _, ns in longest)) if longest else NOTHING),
            Column("latencies", True, "client", sparkline(longest, slices, SPARK, bars) or NOTHING),
        ]

    write_lines(out, width, color, list(parts), columns)


def _time(begun_ns: int, digits: int) -> str:
    return f"{format_units.date(begun_ns)}T{format_units.clock(begun_ns, digits).rstrip('.')}"


def _percentile(latency: LatencySummary | None, name: str) -> str:
    return NOTHING if latency is None else duration_cell(getattr(latency, name))
