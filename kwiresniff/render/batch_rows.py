"""Record sets as rows: a batch on one row, its records below it, one row each.

Field names are those of the protocol guide (record batch; message sets of magic 0 and 1). In a message set every
message is a batch of its own: an uncompressed one is shown as the record it is, a compressed one with the messages
that were inside it.
"""

from __future__ import annotations

from typing import Any

from kwiresniff.base.batch_layout import (
    CODEC_MASK,
    CODEC_NAMES,
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from kwiresniff.base.body_members import CUT_SHORT
from kwiresniff.base.tree_sizes import BATCHES_SHOWN, RECORDS_SHOWN
from kwiresniff.model import Node
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk
from kwiresniff.render.record_rows import record_row, timestamp_text
from kwiresniff.render.style import Style
from kwiresniff.render.tree_row import OpenedRows, Row, plain_rows
from kwiresniff.render.values import leaf, meaning_spans, problem_spans, selection


def record_set_rows(node: Node, style: Style, opened: OpenedRows) -> list[Row]:
    """The record set of one partition; ``opened`` draws what has been read in the bytes of keys and values."""
    batches = node.children
    messages = batches[0].type == "MESSAGE"
    shown, calm = selection(batches, RECORDS_SHOWN if messages else BATCHES_SHOWN, style)
    name = "message" if messages else "batch"
    rows = [_batch_row(batches[index], f"{name}[{index}]", style, opened) for index in shown]
    if hidden := len(batches) - len(shown):
        size = sum([batch.length for batch in batches]) - sum([batches[index].length for index in shown])
        rows.append(Row([hidden_batches(hidden, size, style, calm=calm, messages=messages)]))
    if len(batches) == 1 and not style.verbosity and not node.problem:
        return rows
    head: Chunk = [("name", f"{escape(node.name)} "), ("value", format_units.size(node.length)), *meaning_spans(node)]
    return [Row([head], rows, node)]


def hidden_batches(hidden: int, size: int, style: Style, *, calm: bool, messages: bool = False) -> Chunk:
    """The row that stands for batches that are not shown, ``size`` bytes of them; ``calm`` says that nothing is wrong
    with them.
    """
    what = (
        format_units.count(hidden, "more message")
        if messages
        else format_units.count(hidden, "more batch", "more batches")
    )
    rest = f"{style.glyphs.ellipsis} {what}, {format_units.size(size)}"
    return [("dim", f"{rest}, all without problems" if calm else rest)]


def _batch_row(batch: Node, name: str, style: Style, opened: OpenedRows) -> Row:
    parts = {child.name: child for child in batch.children}
    records = parts.get("records")
    head: Chunk = [("key", name), *problem_spans(batch)]
    fields: list[Row] = []
    if style.verbosity:
        # The bytes of a key and a value are shown with -vv only; as text they stand on the row of the message.
        elsewhere = ("records", "key", "value") if style.verbosity == 1 else ("records",)
        fields = plain_rows([child for child in batch.children if child.name not in elsewhere], style)
    if "attributes" not in parts or batch.meaning == CUT_SHORT:
        if batch.meaning:
            head.insert(1, ("dim", f" {format_units.size(batch.length)}, {escape(batch.meaning)}"))
        return Row([head], fields, batch)
    if records is None:
        row = record_row(batch, parts, style, opened, label=head)
        row.children = [*fields, *row.children]
        return row
    values = {child.name: child.value for child in batch.children}
    count = values.get("records_count") or len(records.children)
    chunks = [head, *batch_facts(values, count, batch.length, records.length, style)]
    if not style.verbosity:
        # What is wrong with a field that has no row of its own.
        chunks += [leaf(child, style) for child in batch.children if child.problem and child is not records]
    return Row(chunks, [*fields, *_record_rows(records, style, opened)], batch)


def batch_facts(batch: dict[str, Any], count: int, size: int, compressed_bytes: int, style: Style) -> list[Chunk]:
    """The facts of a batch of ``size`` bytes with ``count`` records.

    ``batch`` are the values of its header, and how many bytes came out of the ``compressed_bytes`` of its records.
    """
    attributes = batch["attributes"]
    chunks: list[Chunk] = [
        *_records_facts(
            count, attributes & CODEC_MASK, size, compressed_bytes, batch.get("uncompressed_size_bytes"), style
        ),
        [("name", "base_offset "), ("ident", str(batch.get("base_offset")))],
    ]
    time = batch["base_timestamp"] if "base_timestamp" in batch else batch.get("timestamp")
    if time is not None:
        kind = "log_append_time" if attributes & LOG_APPEND_TIME else "create_time"
        chunks.append([("name", f"{kind} "), ("value", timestamp_text(time))])
    if batch.get("producer_id") not in (None, -1):
        numbers = [("producer_id", "producer_id"), ("epoch", "producer_epoch"), ("sequence", "base_sequence")]
        spans: Chunk = []
        for word, name in numbers:
            spans += [("name", f"{' ' if spans else ''}{word} "), ("value", str(batch.get(name)))]
        chunks.append(spans)
    if attributes & TRANSACTIONAL:
        chunks.append([("meaning", "transactional")])
    if attributes & CONTROL:
        chunks.append([("meaning", "control")])
    if batch.get("magic") != 2:
        chunks.append([("name", "magic "), ("value", str(batch.get("magic")))])
    return chunks


def _records_facts(
    count: int, codec: int, size: int, compressed_bytes: int, uncompressed_bytes: Any, style: Style
) -> list[Chunk]:
    """``3 records  zstd 3.40 KB -> 12.1 KB (3.6x)``: the records as they were sent, and what came out of them.

    Without compression it is the ``size`` of the batch, header and all.
    """
    records: Chunk = [("value", format_units.count(count, "record"))]
    if codec == 0:
        return [records, [("dim", "uncompressed "), ("value", format_units.size(size))]]
    name = CODEC_NAMES[codec] if codec < len(CODEC_NAMES) else f"codec {codec}"
    chunk: Chunk = [("value", f"{name} {format_units.size(compressed_bytes)}")]
    if isinstance(uncompressed_bytes, int) and compressed_bytes:
        ratio = f"({uncompressed_bytes / compressed_bytes:.1f}{style.glyphs.times})"
        chunk.append(("meaning", f" {style.glyphs.arrow} {format_units.size(uncompressed_bytes)} {ratio}"))
    return [records, chunk]


def _record_rows(records: Node, style: Style, opened: OpenedRows) -> list[Row]:
    children = records.children
    shown, calm = selection(children, RECORDS_SHOWN, style)
    parts = [{child.name: child for child in children[index].children} for index in shown]
    width = max([len(str(part["offset"].value)) for part in parts if "offset" in part], default=0)
    rows = []
    for index, part in zip(shown, parts, strict=True):
        if "records" in part:
            rows.append(_batch_row(children[index], f"message[{index}]", style, opened))
        else:
            rows.append(record_row(children[index], part, style, opened, offset_width=width))
    if hidden := len(children) - len(shown):
        rows.append(Row([hidden_records(hidden, style, calm=calm)]))
    if records.problem and all(child.problem != records.problem for child in children):
        rows.append(Row([problem_spans(records)[1:]], node=records))
    return rows


def hidden_records(hidden: int, style: Style, *, calm: bool) -> Chunk:
    """The row that stands for records that are not shown; ``calm`` says that nothing is wrong with them."""
    rest = f"{style.glyphs.ellipsis} {format_units.count(hidden, 'more record')}"
    return [("dim", rest if calm else f"{rest}, some with problems")]
