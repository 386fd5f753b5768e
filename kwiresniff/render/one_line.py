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
from kwiresniff.results.clients import Client
from kwiresniff.results.topics import Topic

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


def topic_columns(topic: Topic) -> list[Column]:
    """A topic in a line; rates are over the whole time."""
    seconds = topic.seconds
    in_per_second = topic.produced.records / seconds if seconds >= 1 else None
    out_per_second = topic.consumed.records / seconds if seconds >= 1 else None
    delay = topic.produce_to_consume
    errors = sum(count for _, count in topic.errors)
    consumers = sum(one.role != "replica" for one in topic.consumers)
    return [
        Column("topic", True, "ident", name_cell(topic.name)),
        Column("partitions", False, "dim", str(len(topic.partitions))),
        Column("producers", False, "value", str(len(topic.producers))),
        Column("records_in", False, "value", str(topic.produced.records)),
        Column("bytes_in", False, "value", str(topic.produced.size_bytes)),
        Column("in/s", False, "value", _rate(in_per_second)),
        Column("consumers", False, "value", str(consumers)),
        Column("records_out", False, "value", str(topic.consumed.records)),
        Column("bytes_out", False, "value", str(topic.consumed.size_bytes)),
        Column("out/s", False, "value", _rate(out_per_second)),
        Column("groups", False, "dim", str(len(topic.groups))),
        Column("lag", False, "warn" if topic.lag else "value", NOTHING if topic.lag is None else str(topic.lag)),
        Column("delay_p99", False, "value", NOTHING if delay is None else duration_cell(delay.p99_ns)),
        Column("errors", False, "bad" if errors else "dim", str(errors)),
        *_cluster(topic.cluster),
    ]


def client_columns(client: Client) -> list[Column]:
    """A client in a line."""
    sasl, tls = client.sasl or {}, client.tls or {}
    return [
        Column("client", True, "ident", name_cell(client.client_id or "")),
        Column("address", True, "value", name_cell(client.address)),
        Column("broker", True, "value", name_cell(client.broker)),
        Column("software", True, "client", name_cell(" ".join(part for part in client.software if part))),
        Column("user", True, "value", name_cell(str(sasl.get("principal") or ""))),
        Column("tls", True, "value", name_cell(str(tls.get("version") or ""))),
        Column("connections", False, "value", str(client.connections)),
        Column("exchanges", False, "value", str(client.exchanges)),
        Column("errors", False, "bad" if client.errors else "dim", str(client.errors)),
        Column("unanswered", False, "warn" if client.unanswered else "dim", str(client.unanswered)),
        Column("topics", False, "dim", str(len(client.topics))),
        Column("groups", False, "dim", str(len(client.groups))),
        *_cluster(client.cluster),
    ]


def _cluster(cluster: str | None) -> list[Column]:
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


def _rate(per_second: float | None) -> str:
    return NOTHING if per_second is None else f"{per_second:.1f}"


def duration_cell(ns: int) -> str:
    return format_units.duration(ns).replace(" ", "")
