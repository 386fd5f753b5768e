"""The changes between two captures, the worst first, in blocks of lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TextIO

from kwiresniff.render import format_units
from kwiresniff.render.blocks import BlockWriter
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk, pad
from kwiresniff.render.theme import SEVERITY_KINDS, Span
from kwiresniff.results.comparison import Change, Comparison, Side, Unit

_MARK: Final = 8
#: Names in a list before the rest is only counted.
_MAX_LISTED: Final = 8

_IN_UNIT: Final[dict[str, Callable[[Any], str]]] = {
    "ns": format_units.duration,
    "ms": lambda value: format_units.duration(int(value) * 1_000_000),
    "bytes": format_units.size,
    "per_second": lambda value: f"{value:,.3g}/s",
    "bytes_per_second": lambda value: f"{format_units.size(round(value))}/s",
    "per_minute": lambda value: f"{value:,.3g} a minute",
    "share": lambda value: f"{100 * value:.3g} %",
    "count": lambda value: f"{value:,}",
    "text": lambda value: escape(str(value)),
}


class ComparisonWriter(BlockWriter):
    """Writes a comparison, with ``doubts`` also the differences that may be chance."""

    def __init__(self, out: TextIO, width: int | None, color: bool, *, doubts: bool = False) -> None:
        super().__init__(out, width, color)
        self._doubts = doubts

    def write(self, comparison: Comparison) -> None:
        """Both sides, the changes, and how much was compared."""
        for label, side in (("before", comparison.before), ("after", comparison.after)):
            self._line(_side(side), [("name", pad(label, _MARK))])
        for change in comparison.changes:
            self._out.write("\n")
            self._change(change, (SEVERITY_KINDS[change.severity], change.severity))
        if self._doubts and comparison.doubtful:
            self._out.write("\n")
            self._line([[("title", "Too little to tell from chance:")]])
            for change in comparison.doubtful:
                self._change(change, ("dim", "maybe"))
        self._out.write("\n")
        text = verdict(comparison)
        if comparison.doubtful and not self._doubts:
            many = format_units.count(len(comparison.doubtful), "difference")
            text += f"; {many} with too little to tell from chance (-v)"
        self._line([[("" if comparison.changes else "good", text)]])

    def _change(self, change: Change, mark: Span) -> None:
        head: list[Chunk] = [[("ident", escape(change.subject))]]
        if change.measure:
            head.append([("value", escape(change.measure))])
        head.append([("title", change.what)])
        head.append([("value", self._values(change))])
        self._line(head, [mark, ("", " " * (_MARK - len(mark[1])))])
        if said := certainty(change):
            self._below([[("dim", said)]])
        if change.note:
            self._below([[("value", escape(change.note))]])
        for part in change.parts:
            self._below([[("ident", escape(part.subject))], [("value", part.measure)], [("value", self._values(part))]])
        if change.same:
            names = [[("dim", escape(name))] for name in change.same[:_MAX_LISTED]]
            if len(change.same) > _MAX_LISTED:
                names.append([("dim", f"and {len(change.same) - _MAX_LISTED:,} more")])
            self._below([[("name", "as before:")], *names])

    def _values(self, change: Change) -> str:
        if change.before is None or change.after is None:
            return in_unit(change.after if change.before is None else change.before, change.unit)
        before, after = in_unit(change.before, change.unit), in_unit(change.after, change.unit)
        times = ratio(change)
        return f"{before} {self._paint.glyphs.arrow} {after}{f' ({times})' if times else ''}"

    def _below(self, chunks: list[Chunk]) -> None:
        self._line(chunks, [("", " " * _MARK)])


def verdict(comparison: Comparison) -> str:
    """How many changes there are, and how much was compared."""
    counted = [
        format_units.count(comparison.compared[section], noun, plural)
        for section, noun, plural in (
            ("latency", "latency", "latencies"),
            ("errors", "error", ""),
            ("throughput", "rate", ""),
            ("clients", "client", ""),
            ("groups", "group", ""),
            ("findings", "finding", ""),
        )
        if comparison.compared[section]
    ]
    count = format_units.count(len(comparison.changes), "change") if comparison.changes else "no change"
    return f"{count} beyond noise; compared: {', '.join(counted) or 'nothing'}"


def in_unit(value: Any, unit: Unit) -> str:
    """A value of a change, escaped."""
    return _IN_UNIT[unit](value)


def ratio(change: Change) -> str:
    """How many times the later number is the earlier one; empty where that is no question."""
    if change.unit == "text" or not (change.before and change.after):
        return ""
    low, high = sorted((change.before, change.after))
    return f"{high / low:,.3g} times" if change.after > change.before else f"1/{high / low:,.3g}"


def _side(side: Side) -> list[Chunk]:
    chunks: list[Chunk] = [[("ident", escape(side.name))]]
    if len(side.files) > 1:
        chunks.append([("value", format_units.count(len(side.files), "file"))])
    chunks.append([("value", format_units.count(side.exchanges, "exchange"))])
    if side.exchanges:
        since = f"{format_units.date(side.first_ns)} {format_units.clock(side.first_ns, 3)}"
        chunks.append([("dim", f"{since} for {format_units.duration(max(side.last_ns - side.first_ns, 0))}")])
    return chunks


def certainty(change: Change) -> str:
    """How large the effect is, and how sure."""
    parts = []
    if change.greater is not None:
        share = change.greater if change.what != "faster" else 1 - change.greater
        longer = "less" if change.what == "faster" else "longer"
        parts.append(f"of 100 pairs, one before and one after, {round(100 * share)} took {longer} after")
    if change.counts is not None:
        parts.append(f"{change.counts[0]:,} before, {change.counts[1]:,} after")
    if change.chance is not None:
        parts.append(in_words(change.chance))
    return "; ".join(parts)


def in_words(chance: float) -> str:
    """A probability that like captures differ so much, in words."""
    for limit, words in ((1e-6, "1 of a million"), (1e-4, "1 of 10,000"), (1e-3, "1 of 1,000"), (1e-2, "1 of 100")):
        if chance < limit:
            return f"fewer than {words} like captures differ so much"
    return f"{chance:.0%} of like captures differ so much"
