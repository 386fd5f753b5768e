"""Rows of a tree from the decoded values of a message: those that ``tree_rows`` makes of its nodes without ``-v``.

Values have no place for what is wrong, nor for what has been found inside bytes: such a message is drawn from nodes,
and so are the formats of records before magic 2 and control records.
"""

from __future__ import annotations

from typing import Any, Final, final

from kwiresniff.base.batch_layout import CODEC_MASK, HEADER_BYTES
from kwiresniff.base.body_members import CUT_SHORT
from kwiresniff.base.known_ids import ZERO_UUID
from kwiresniff.base.tree_sizes import (
    BATCHES_SHOWN,
    ELEMENTS_SHOWN,
    HEADERS_SHOWN,
    NAME_COLUMN,
    RANGES_SHOWN,
    RECORDS_SHOWN,
    SCALARS_SHOWN,
)
from kwiresniff.model import Direction, Exchange, Message, TopicNames
from kwiresniff.render import format_units
from kwiresniff.render.batch_rows import batch_facts, hidden_batches, hidden_records
from kwiresniff.render.decoded_values import decoded_meaning, decoded_text, is_of_plugin
from kwiresniff.render.escape import escape
from kwiresniff.render.labels import FieldLabel, labels_of
from kwiresniff.render.line_wrapping import Chunk
from kwiresniff.render.record_rows import clock_text
from kwiresniff.render.style import Style
from kwiresniff.render.theme import Span
from kwiresniff.render.tree_row import Row
from kwiresniff.render.tree_rows import hidden_elements
from kwiresniff.render.values import error_span, hidden_parts, scalar
from kwiresniff.render.version_ranges import range_head, version_range
from kwiresniff.schema.value_labels import meaning_of

#: The length of a client id that is null; any other negative one is a mistake.
_NULL: Final = b"\xff\xff"
#: Stands for the width of a name on the row of its structure, where no values are in a column.
IN_ROW: Final = -1
#: Numbers of a field whose texts are kept; then all are forgotten.
KEPT_NUMBERS: Final = 256
#: Members of a record in a body.
_RECORD_MEMBERS: Final = 5


class _NeedsNodes(Exception):
    """Something in a message is not drawn from values."""


@final
class ValueRows:
    """Draws bodies; ``topic_name`` gives the name of a topic id, or None."""

    def __init__(self, style: Style, topic_name: TopicNames | None) -> None:
        self._style = style
        self._topic_name = topic_name

    def rows(self, exchange: Exchange, message: Message, which: Direction) -> list[Row] | None:
        """The rows of a body; None for a message that has to be drawn from nodes."""
        if exchange.problems or message.dissection is not None or exchange.request is None:
            return None
        if not _is_ordinary(exchange, message, which) or message.version < 0:
            return None
        body = message.body
        if body is None:
            return None
        try:
            return self._fields(labels_of(exchange.api_key, message.version, which), body)
        except _NeedsNodes:
            return None

    def _fields(self, labels: list[FieldLabel], body: dict[str, Any]) -> list[Row]:
        """The fields of a message, one row each, the values in a column."""
        present = _present(labels, body)
        width = 0
        for label in labels:
            size = len(label.name)
            if width < size <= NAME_COLUMN and label.is_inline(body[label.name]) and _is_there(label, present):
                width = size
        rows: list[Row] = []
        for label in labels:
            if _is_there(label, present):
                value = body[label.name]
                if label.is_inline(value):
                    rows.append(Row([self._inline(label, value, width)]))
                else:
                    self._below(label, value, rows)
        return rows

    def _structure(self, key: Span, labels: list[FieldLabel], value: Any) -> Row:
        """A structure: on its row what identifies it, what is wrong, and its other inline fields."""
        if value is None:
            return Row([[key, ("dim", " null")]])
        present = _present(labels, value)
        chunks: list[Chunk] = [[key]]
        errors: list[Chunk] = []
        rest: list[Chunk] = []
        children: list[Row] = []
        for label in labels:
            if label.is_tagged and not _is_there(label, present):
                continue
            member = value[label.name]
            if not label.is_inline(member):
                self._below(label, member, children)
            elif _identifies(label, member):
                chunks.append(self._inline(label, member, IN_ROW))
            else:
                is_wrong = label.is_error and member
                (errors if is_wrong else rest).append(self._inline(label, member, IN_ROW))
        chunks += errors
        chunks += rest
        return Row(chunks, children)

    def _below(self, label: FieldLabel, value: Any, rows: list[Row]) -> None:
        """Adds the rows of a structure, an array of structures, or a record set."""
        if label.is_records:
            self._record_set(label, value, rows)
        elif not label.is_array:
            rows.append(self._structure(label.key, label.fields, value))
        elif label.is_range and len(value) <= RANGES_SHOWN:
            rows.append(self._ranges(label, value))
        else:
            self._elements(label, value, rows)

    def _elements(self, label: FieldLabel, values: list[Any], rows: list[Row]) -> None:
        count = len(values)
        shown = min(count, ELEMENTS_SHOWN)
        for index in range(shown):
            rows.append(self._structure(label.keys[index], label.fields, values[index]))
        if count == shown:
            return
        wrong = [index for index in range(shown, count) if _has_error(label.fields, values[index])]
        for index in wrong[:ELEMENTS_SHOWN]:
            rows.append(self._structure(("key", f"{label.name}[{index}]"), label.fields, values[index]))
        hidden = count - shown - min(len(wrong), ELEMENTS_SHOWN)
        if hidden:
            calm = len(wrong) <= ELEMENTS_SHOWN
            rows.append(Row([hidden_elements(label.name, hidden, count, self._style, calm=calm)]))

    def _ranges(self, label: FieldLabel, values: list[Any]) -> Row:
        chunks: list[Chunk] = [range_head(label.name, len(values))]
        called, *ends = label.fields
        low, high = sorted([end.name for end in ends], key=lambda name: not name.startswith("min"))
        for value in values:
            _present(label.fields, value)
            name = value[called.name]
            chunks.append(version_range(self._meaning(called, name) or str(name), value[low], value[high]))
        return Row(chunks)

    def _inline(self, label: FieldLabel, value: Any, width: int) -> Chunk:
        """``name value (meaning)`` of a field on a row; the name is made as wide as ``width``."""
        if value.__class__ is not int:
            return self._made(label, value, width)
        known = label.numbers.get(width)
        if known is None or len(known) >= KEPT_NUMBERS:
            known = label.numbers[width] = {}
        chunk = known.get(value)
        if chunk is None:
            chunk = known[value] = self._made(label, value, width)
        return chunk

    def _made(self, label: FieldLabel, value: Any, width: int) -> Chunk:
        lead: Span = label.lead if width < len(label.name) else ("name", f"{label.name.ljust(width)} ")
        if label.is_array:
            return self._scalars(label, value, lead)
        if label.is_structure or (label.is_records and not value):
            return [lead, ("dim", "null" if value is None else "empty")]
        meaning = self._meaning(label, value)
        if label.is_error and value:
            return [error_span(label.name, value, meaning, max(width, 0))]
        kind, text = scalar(value, self._style)
        meaning_kind = "dim" if kind == "dim" else "meaning"
        if width == IN_ROW and _identifies(label, value):
            # A topic id is recognised by the topic's name.
            kind, meaning_kind = ("value", "ident") if label.is_uuid and meaning else ("ident", "meaning")
        if not meaning:
            return [lead, (kind, text)]
        return [lead, (kind, text), (meaning_kind, f" ({escape(meaning)})")]

    def _scalars(self, label: FieldLabel, values: list[Any] | None, lead: Span) -> Chunk:
        chunk: Chunk = [lead]
        if not values:
            return [lead, ("dim", "null" if values is None else "empty")]
        for index, value in enumerate(values[:SCALARS_SHOWN]):
            if index:
                chunk.append(("", ", "))
            chunk.append(scalar(value, self._style))
            if meaning := self._meaning(label, value):
                chunk.append(("meaning", f" ({escape(meaning)})"))
        if len(values) > SCALARS_SHOWN:
            chunk.append(hidden_parts(len(values) - SCALARS_SHOWN, self._style))
        return chunk

    def _meaning(self, label: FieldLabel, value: Any) -> str:
        # What stands in the place of a value says itself why, and null has no meaning.
        if not label.has_meaning or value is None or isinstance(value, dict):
            return ""
        return meaning_of(label.field, value, self._topic_name)

    def _record_set(self, label: FieldLabel, batches: list[dict[str, Any]], rows: list[Row]) -> None:
        if not isinstance(batches, list):
            raise _NeedsNodes
        drawn: list[Row] = []
        size = 0
        hidden = 0
        hidden_size = 0
        for index, batch in enumerate(batches):
            size_bytes = batch["size_bytes"]
            size += size_bytes
            if index < BATCHES_SHOWN:
                drawn.append(self._batch(index, batch, index == len(batches) - 1))
            else:
                hidden += batch.get("folded_batches", 1)
                hidden_size += size_bytes
                if "folded_batches" not in batch and not batch.get("truncated"):
                    _check_batch(batch)
        if hidden:
            drawn.append(Row([hidden_batches(hidden, hidden_size, self._style, calm=True)]))
        if len(batches) == 1:
            rows.append(drawn[0])
            return
        text = format_units.size(size + _length_bytes(label, size))
        rows.append(Row([[("name", f"{label.name} "), ("value", text)]], drawn))

    def _batch(self, index: int, batch: dict[str, Any], is_last: bool) -> Row:
        key: Span = ("key", f"batch[{index}]")
        size = batch["size_bytes"]
        if batch.get("truncated"):
            # Values of a batch that breaks off have no magic: alone, it may as well be a message.
            if not is_last or index == 0:
                raise _NeedsNodes
            return Row([[key, ("dim", f" {format_units.size(size)}, {CUT_SHORT}")]])
        _check_batch(batch)
        records = batch["records"]
        compressed = size - HEADER_BYTES if batch["attributes"] & CODEC_MASK else 0
        chunks: list[Chunk] = [[key], *batch_facts(batch, batch["records_count"], size, compressed, self._style)]
        shown = records[:RECORDS_SHOWN]
        width = max([len(str(record["offset"])) for record in shown], default=0)
        rows = [self._record(record, width) for record in shown]
        if hidden := batch["records_count"] - len(shown):
            rows.append(Row([hidden_records(hidden, self._style, calm=True)]))
        return Row(chunks, rows)

    def _record(self, record: dict[str, Any], width: int) -> Row:
        decoded: dict[str, Any] = {}
        if len(record) != _RECORD_MEMBERS:
            decoded = record.get("decoded", {})
            if len(record) != _RECORD_MEMBERS + 1 or not decoded or not all(map(is_of_plugin, decoded.values())):
                raise _NeedsNodes
        style = self._style
        key, value, headers = record["key"], record["value"], record["headers"]
        head: Chunk = [("ident", str(record["offset"]).rjust(width)), ("dim", f"  {clock_text(record['timestamp'])}")]
        (kind, text), *meaning = self._part(key, decoded.get("key"))
        chunk: Chunk = [("key" if kind == "value" else kind, text), *meaning, ("dim", f" {style.glyphs.arrow} ")]
        if value is not None:
            chunk += self._part(value, decoded.get("value"))
        else:  # a null value deletes its key when the topic is compacted; without a key it is just nothing
            chunk.append(("wait", "tombstone") if key is not None else ("dim", "null"))
        return Row([head, chunk, self._headers(headers)] if headers else [head, chunk])

    def _part(self, data: Any, decoded: dict[str, Any] | None) -> Chunk:
        """A key or value as it is, or as a plugin read it."""
        if decoded is None:
            return [scalar(data, self._style, quote=False)]
        text = scalar(decoded_text(decoded), self._style, quote=False)
        return [text, ("meaning", f" ({escape(decoded_meaning(decoded))})")]

    def _headers(self, headers: list[dict[str, Any]]) -> Chunk:
        chunk: Chunk = [("name", "headers ")]
        for index, header in enumerate(headers[:HEADERS_SHOWN]):
            chunk.append(("", ", " if index else ""))
            chunk.append(("name", f"{scalar(header['key'], self._style)[1]}="))
            chunk.append(scalar(header["value"], self._style))
        if len(headers) > HEADERS_SHOWN:
            chunk.append(hidden_parts(len(headers) - HEADERS_SHOWN, self._style))
        return chunk


def _is_ordinary(exchange: Exchange, message: Message, which: Direction) -> bool:
    """Whether a frame is all there, and its header needs no row of its own."""
    frame = message.frame
    if frame is None or len(frame) != message.size_bytes or message.header_version < 0:
        return False
    if which == "response":
        return message.header_version == 0 or frame[message.body_offset - 1] == 0
    client_id = exchange.client_id
    if client_id is None:
        if message.header_version and frame[8:10] != _NULL:
            return False
    elif not client_id.isascii() or "\\" in client_id:
        return False
    return message.header_version < 2 or frame[message.body_offset - 1] == 0


def _present(labels: list[FieldLabel], structure: dict[str, Any]) -> Any:
    """The names of the tagged fields of a structure that were on the wire, None for none. Members that are no fields
    have been found in bytes, or are unknown tagged fields.
    """
    if len(structure) != len(labels):
        raise _NeedsNodes
    return None if structure.__class__ is dict else getattr(structure, "present", None)


def _is_there(label: FieldLabel, present: Any) -> bool:
    return not label.is_tagged or (present is not None and label.name in present)


def _identifies(label: FieldLabel, value: Any) -> bool:
    """Whether a value identifies its structure among the others of an array."""
    return label.identifies and value is not None and value != "" and value != ZERO_UUID


def _has_error(labels: list[FieldLabel], structure: Any) -> bool:
    """Whether there is an error code anywhere in a structure."""
    if structure is None:
        return False
    for label in labels:
        if not label.has_errors:
            continue
        value = structure[label.name]
        if not value:
            continue
        if label.is_error:
            return True
        if label.is_array:
            for element in value:
                if _has_error(label.fields, element):
                    return True
        elif _has_error(label.fields, value):
            return True
    return False


def _check_batch(batch: dict[str, Any]) -> None:
    if "records" not in batch or batch.get("magic") != 2 or batch["is_control"]:
        raise _NeedsNodes


def _length_bytes(label: FieldLabel, size: int) -> int:
    """The bytes of the length of a record set of ``size`` bytes: an INT32, or an UNSIGNED_VARINT of one more."""
    return ((size + 1).bit_length() + 6) // 7 if label.field.type.startswith("COMPACT") else 4
