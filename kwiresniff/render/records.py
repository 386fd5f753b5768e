"""Record batches and message sets as rows: a batch on one row, its records below it, one row each.

Field names are those of the message format documentation (record batch, message set v0 and v1); a record shows its
offset, its time, its key, an arrow, its value, its headers.
"""

from __future__ import annotations

from typing import Any, Final

from kwiresniff.model import Node

from . import units
from .escape import escape
from .lines import Chunk, pad_left
from .row import Row, plain_rows
from .values import Style, leaf, meaning_spans, problem_spans, scalar, selection

#: Batches of one record set and records of one batch shown at verbosity 0.
BATCHES_SHOWN = 8
RECORDS_SHOWN = 10

#: Headers of one record on its row at verbosity 0.
HEADERS_SHOWN = 8

#: Timestamp of a record that has none.
NO_TIMESTAMP: Final = -1

_MILLI: Final = 1_000_000


def record_rows(node: Node, style: Style) -> list[Row]:
    """The record set of one partition."""
    batches = node.children
    shown, _ = selection(batches, BATCHES_SHOWN, style)
    head: Chunk = [("name", f"{escape(node.name)} "), ("value", units.size(node.length)), *meaning_spans(node)]
    rows = [_batch_row(batches[index], f"batch[{index}]", style) for index in shown]
    if hidden := len(batches) - len(shown):
        size = sum([batch.length for batch in batches]) - sum([batches[index].length for index in shown])
        text = f"{style.glyphs.ellipsis} {units.count(hidden, 'more batch', 'more batches')}, {units.size(size)}"
        rows.append(Row([[("dim", text)]]))
    if len(batches) == 1 and not style.verbosity and not node.problem:
        return rows
    return [Row([head], rows, node)]


def _batch_row(batch: Node, name: str, style: Style) -> Row:
    plain = {child.name: child.value for child in batch.children}
    if plain.get("truncated"):
        text = f"cut short after {units.size(batch.length)}, as the end of a fetch may be"
        return Row([[("key", name), ("dim", f" {text}"), *problem_spans(batch)]], node=batch)
    records = next((child for child in batch.children if child.name == "records"), None)
    chunks: list[Chunk] = [[("key", name), *problem_spans(batch)], *_batch_facts(plain, records, style)]
    rows: list[Row] = []
    for child in batch.children:
        if child.problem and not style.verbosity and child is not records:
            chunks.append(leaf(child, style))
    if style.verbosity:
        rows = plain_rows([child for child in batch.children if not child.children and child.length], style)
    if records is not None:
        rows += _records(records, style)
    return Row(chunks, rows, batch)


def _batch_facts(plain: dict[str, Any], records: Node | None, style: Style) -> list[Chunk]:
    """What a batch is, apart from its records: the things somebody looks for first."""
    chunks: list[Chunk] = []
    count = plain.get("records_count")
    if count is None and records is not None:
        count = len(records.children)
    if isinstance(count, int):
        chunks.append([("value", units.count(count, "record"))])
    chunks.append(_compression(plain, style))
    base = plain.get("base_offset")
    if isinstance(base, int):
        chunks.append([("name", "base_offset "), ("ident", str(base))])
    if (time := plain.get("base_timestamp", plain.get("timestamp"))) is not None:
        kind = plain.get("timestamp_type") or "timestamp"
        chunks.append([("name", f"{kind} "), ("value", _instant(time))])
    producer = plain.get("producer_id", -1)
    if isinstance(producer, int) and producer >= 0:
        chunks.append(
            [
                ("name", "producer_id "),
                ("value", str(producer)),
                ("name", " epoch "),
                ("value", str(plain.get("producer_epoch"))),
                ("name", " sequence "),
                ("value", str(plain.get("base_sequence"))),
            ]
        )
    if plain.get("is_transactional"):
        chunks.append([("meaning", "transactional")])
    if plain.get("is_control"):
        chunks.append([("meaning", "control")])
    if (magic := plain.get("magic", 2)) != 2:
        chunks.append([("name", "magic "), ("value", str(magic))])
    if plain.get("crc_valid") is False:
        chunks.append([("warn", "! CRC does not match")])
    return chunks


def _compression(plain: dict[str, Any], style: Style) -> Chunk:
    """``zstd 3.40 KB -> 12.1 KB (3.6x)``: on the wire, and what came out."""
    codec = plain.get("compression") or "none"
    size = plain.get("size_bytes")
    chunk: Chunk = [("dim" if codec == "none" else "value", "uncompressed" if codec == "none" else escape(str(codec)))]
    if not isinstance(size, int):
        return chunk
    chunk.append(("value", f" {units.size(size)}"))
    raw = plain.get("uncompressed_size_bytes")
    if codec != "none" and isinstance(raw, int) and size > 0:
        ratio = f"({raw / size:.1f}{style.glyphs.times})"
        chunk.append(("meaning", f" {style.glyphs.arrow} {units.size(raw)} {ratio}"))
    return chunk


def _records(records: Node, style: Style) -> list[Row]:
    shown = [records.children[index] for index in selection(records.children, RECORDS_SHOWN, style)[0]]
    facts = [{child.name: child for child in record.children} for record in shown]
    width = max([len(str(fact["offset"].value)) for fact in facts if "offset" in fact], default=0)
    rows = [_record_row(record, fact, width, style) for record, fact in zip(shown, facts, strict=True)]
    if hidden := len(records.children) - len(shown):
        rows.append(Row([[("dim", f"{style.glyphs.ellipsis} {units.count(hidden, 'more record')}")]]))
    if records.problem:
        rows.append(Row([problem_spans(records)[1:]], node=records))
    return rows


def _record_row(record: Node, fields: dict[str, Node], offset_width: int, style: Style) -> Row:
    if record.problem and "offset" not in fields:
        return Row([problem_spans(record)[1:]], node=record)
    offset, timestamp = fields.get("offset"), fields.get("timestamp")
    head: Chunk = [("ident", pad_left(str(offset.value) if offset else "", offset_width))]
    if timestamp is not None:
        head.append(("dim", f"  {_clock(timestamp.value)}"))
    control = fields.get("control")
    if control is not None:
        body = [leaf(child, style) for child in control.children if not child.children]
        chunks = [head, [("meaning", "control")], *body]
    else:
        chunks = [head, _key_value(fields.get("key"), fields.get("value"), style)]
        headers = fields.get("headers")
        if headers is not None and headers.children:
            chunks.append(_headers(headers, style))
    chunks[-1] = chunks[-1] + problem_spans(record)
    rows = plain_rows([child for child in record.children if not child.children], style) if style.verbosity > 1 else []
    return Row(chunks, rows, record)


def _key_value(key: Node | None, value: Node | None, style: Style) -> Chunk:
    chunk: Chunk = []
    if key is not None:
        kind, text = scalar(key.value, style, quote=False)
        chunk += [("key" if kind == "value" else kind, text), *meaning_spans(key)]
    chunk.append(("dim", f" {style.glyphs.arrow} "))
    if value is None or value.value is None:
        # A null value deletes the key when the topic is compacted.
        chunk.append(("wait", "tombstone") if key is not None and key.value is not None else ("dim", "null"))
    else:
        chunk.append(scalar(value.value, style, quote=False))
    if value is not None:
        chunk += meaning_spans(value)
    return chunk


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
        chunk.append(("dim", f", {style.glyphs.ellipsis} {len(headers.children) - len(shown):,} more"))
    return chunk


def _instant(milliseconds: Any) -> str:
    if not isinstance(milliseconds, int):
        return str(milliseconds)
    return "none" if milliseconds == NO_TIMESTAMP else units.instant(milliseconds * _MILLI, 3)


def _clock(milliseconds: Any) -> str:
    if not isinstance(milliseconds, int) or milliseconds == NO_TIMESTAMP:
        return "-".rjust(12)
    return units.clock(milliseconds * _MILLI, 3)
