"""One record as a row: its offset, its time, its key, an arrow, its value, its headers."""

from __future__ import annotations

from typing import Any, Final

from kwiresniff.base.batch_layout import NO_TIMESTAMP
from kwiresniff.base.tree_sizes import HEADERS_SHOWN
from kwiresniff.model import Node
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk, pad_left
from kwiresniff.render.style import Style
from kwiresniff.render.tree_row import OpenedRows, Row, plain_rows
from kwiresniff.render.values import hidden_parts, leaf, meaning_spans, problem_spans, scalar

_MILLI: Final = 1_000_000


def timestamp_text(milliseconds: Any) -> str:
    """A Kafka timestamp in milliseconds as date and time, UTC."""
    return "none" if milliseconds == NO_TIMESTAMP else format_units.instant(milliseconds * _MILLI, 3)


def clock_text(milliseconds: Any) -> str:
    """The time of day of a Kafka timestamp in milliseconds, UTC."""
    return "-".rjust(12) if milliseconds == NO_TIMESTAMP else format_units.clock(milliseconds * _MILLI, 3)


def record_row(
    record: Node,
    parts: dict[str, Node],
    style: Style,
    opened: OpenedRows,
    *,
    offset_width: int = 0,
    label: Chunk | None = None,
) -> Row:
    """The row of a record, or of a message of a message set, whose children by name are ``parts``.

    ``opened`` draws what has been read in key and value. With ``label`` the row stands beside batches and starts with
    it; else it stands among the records of one.
    """
    offset = parts.get("offset") or parts.get("base_offset")
    if offset is None:
        return Row([label or problem_spans(record)[1:]], node=record)
    head: Chunk = [("ident", pad_left(str(offset.value), offset_width))]
    chunks: list[Chunk] = [label, [("name", "offset "), *head]] if label is not None else [head]
    if "timestamp" in parts:
        head.append(("dim", f"  {clock_text(parts['timestamp'].value)}"))
        if label is not None:
            chunks[-1] = [("name", "offset "), *head]
    control = parts.get("control")
    if control is not None:
        chunks.append([("meaning", "control")])
        chunks += [leaf(child, style) for child in control.children if not child.children]
    elif "value" in parts:
        chunks.append(_key_value(parts.get("key"), parts["value"], style))
        if "headers" in parts and parts["headers"].children:
            chunks.append(_headers(parts["headers"], style))
    if label is None:
        chunks[-1] = chunks[-1] + problem_spans(record)
    if not style.verbosity:
        chunks += [leaf(child, style) for child in record.children if child.problem and not child.children]
    rows = _own_rows(record, style) if label is None and style.verbosity > 1 else []
    return Row(chunks, [*rows, *_inside(parts, style, opened)], record)


def _inside(parts: dict[str, Node], style: Style, opened: OpenedRows) -> list[Row]:
    """Rows of what was decoded inside the key and the value."""
    nodes = [parts[name] for name in ("key", "value") if name in parts and parts[name].children]
    return [row for node in nodes for row in opened(node, style)]


def _key_or_value(node: Node, style: Style) -> Chunk:
    """A key or value in its row: its bytes, or the name of their content when that has rows below."""
    if node.children:
        return [("meaning", escape(node.meaning)), *problem_spans(node)]
    return [scalar(node.value, style, quote=False), *meaning_spans(node)]


def _own_rows(record: Node, style: Style) -> list[Row]:
    """With ``-vv``: every field of a record with its bytes."""
    rows = plain_rows([child for child in record.children if not child.children], style)
    for child in record.children:
        if child.name == "headers" and child.children:
            pairs = [pair for header in child.children for pair in header.children]
            rows.append(Row([[("name", f"headers {len(child.children)}")]], plain_rows(pairs, style), child))
    return rows


def _key_value(key: Node | None, value: Node, style: Style) -> Chunk:
    chunk: Chunk = []
    if key is not None:
        (kind, text), *meaning = _key_or_value(key, style)
        chunk.append(("key" if kind == "value" else kind, text))
        if key.value is not None:
            chunk += meaning
    chunk.append(("dim", f" {style.glyphs.arrow} "))
    if value.value is not None:
        return [*chunk, *_key_or_value(value, style)]
    # A null value deletes its key when the topic is compacted; without a key it is just nothing.
    keyed = key is not None and key.value is not None
    return [*chunk, ("wait", "tombstone") if keyed else ("dim", "null"), *problem_spans(value)]


def _headers(headers: Node, style: Style) -> Chunk:
    chunk: Chunk = [("name", "headers ")]
    shown = headers.children if style.verbosity else headers.children[:HEADERS_SHOWN]
    for index, header in enumerate(shown):
        pair = {child.name: child for child in header.children}
        key, value = pair.get("key"), pair.get("value")
        chunk.append(("", ", " if index else ""))
        chunk.append(("name", f"{scalar(key.value, style)[1] if key else '?'}="))
        if value is not None:
            chunk += [scalar(value.value, style), *meaning_spans(value)]
    if len(shown) < len(headers.children):
        chunk.append(hidden_parts(len(headers.children) - len(shown), style))
    return chunk
