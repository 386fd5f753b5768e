"""Record sets as annotated nodes: every field of every batch and record with its place and meaning.

The slow twin of ``decode_record_set``: ``plain_batches`` of its nodes is what that one gives. Nodes inside
decompressed data are ``derived`` and their offsets count there. A record's ``timestamp`` and ``offset`` nodes lie
where their deltas are and hold the absolute values. Sources: those of ``record_batch`` and ``message_set``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwiresniff.base.batch_layout import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
)
from kwiresniff.base.body_members import CUT_SHORT
from kwiresniff.base.tree_sizes import RECORDS_SHOWN
from kwiresniff.codec.alignment import first_batch
from kwiresniff.codec.batch_header import batch_span
from kwiresniff.codec.batch_libraries import crc32c
from kwiresniff.codec.batch_nodes import append_time_meaning, attributes_meaning, bytes_meaning, child_of, joined
from kwiresniff.codec.compression import decompress_front
from kwiresniff.codec.control import control_of
from kwiresniff.codec.decode_errors import bad_records_count, bytes_after_records, missing_records
from kwiresniff.codec.message_set import CRC_START
from kwiresniff.codec.message_set_dissector import MESSAGE, MessageNodes
from kwiresniff.codec.record import RecordField, record_fields, wrapped
from kwiresniff.codec.record_batch import what_ended
from kwiresniff.codec.record_limits import HEADER_NODES, RECORD_NODES, RecordBudget
from kwiresniff.codec.record_reader import VARLONG_BYTES, RecordReader
from kwiresniff.errors import DecodeError
from kwiresniff.model import Node, Problem
from kwiresniff.schema.value_labels import time_meaning

if TYPE_CHECKING:
    from mypy_extensions import i64

RECORD_BATCH, RECORD, HEADER_NODE = "RECORD_BATCH", "RECORD", "HEADER"


def dissect_record_set(
    buf: bytes,
    start: int,
    end: int,
    budget: RecordBudget | None = None,
    *,
    unaligned: bool = False,
    folded: Folded | None = None,
) -> tuple[list[Node], list[Problem]]:
    """The batches of ``buf[start:end]`` as nodes, and problems with paths from ``[0]`` on. An ``unaligned`` set may
    begin inside a batch; a message's sets share a ``budget``. ``folded`` stands for records that a tree does not show,
    and leaves meanings out.
    """
    dissection = _RecordSetDissector(buf, budget or RecordBudget(end - start), folded)
    pos = first_batch(buf, start, end) if unaligned else start
    if pos > start:
        dissection.batches.append(Node("[0]", RECORD_BATCH, start, pos - start, meaning=CUT_SHORT))
    while pos < end:
        too_many = dissection.budget.take_batch(pos)
        if too_many or dissection.is_full():
            dissection.leave(pos, end, too_many)
            break
        pos = dissection.batch(pos, end)
    return dissection.batches, dissection.problems


class Folded:
    """The ``node`` in place of the records of a batch behind the first ``shown``, and the ``nodes`` those had."""

    __slots__ = ("node", "nodes", "shown")

    def __init__(self, node: Node, shown: int = RECORDS_SHOWN) -> None:
        self.node = node
        self.nodes = 0
        self.shown = shown


class _RecordSetDissector(MessageNodes):
    def __init__(self, buf: bytes, budget: RecordBudget, folded: Folded | None = None) -> None:
        super().__init__(buf, budget, says_meanings=folded is None)
        self.folded = folded
        self.too_large: DecodeError | None = None  # of the batch that is being read
        self.reader = RecordReader()

    def leave(self, pos: int, end: int, why: Problem | None) -> None:
        """The rest of the set as one node that is not opened."""
        path = f"[{len(self.batches)}]"
        self.batches.append(Node(path, RECORD_BATCH, pos, end - pos, meaning="not shown"))
        if why is not None:
            self.batches[-1].problem = why.message
            self.problems.append(why._replace(path=path))

    def batch(self, pos: int, end: int) -> int:
        stop, magic, trouble = batch_span(self.buf, pos, end)
        path = f"[{len(self.batches)}]"
        legacy = stop - pos > CRC_START and self.buf[pos + CRC_START] < 2
        node = Node(path, MESSAGE if legacy else RECORD_BATCH, pos, stop - pos)
        self.batches.append(node)
        readable = stop if trouble is None else min(stop, pos + CRC_START + 1)
        self.header(node, self.buf, readable)
        if trouble is not None:
            node.problem = trouble.message
            self.problems.append(Problem(trouble.code, trouble.message, trouble.offset, path))
        elif magic == 2:
            self.record_batch(node, path)
        elif magic >= 0:
            self.message(node, path)
        else:
            node.meaning = CUT_SHORT
        return stop

    def record_batch(self, node: Node, path: str) -> None:
        fields = {child.name: child.value for child in node.children}
        start, stop = node.offset + HEADER_BYTES, node.offset + node.length
        attributes = fields["attributes"]
        codec = attributes & CODEC_MASK
        if self.says_meanings:
            last = fields["base_offset"] + fields["last_offset_delta"]
            child_of(node, "attributes").meaning = attributes_meaning(attributes)
            child_of(node, "last_offset_delta").meaning = f"to offset {last}"
            if attributes & DELETE_HORIZON:
                child_of(node, "base_timestamp").meaning = f"delete horizon {time_meaning(fields['base_timestamp'])}"
        crc = child_of(node, "crc")
        self.check_crc(node, crc.value, crc32c()(self.buf[node.offset + ATTRIBUTES_AT : stop]), path)
        records = self.add(node, "records", "ARRAY", start, stop - start)
        data, at = self.buf, start
        self.too_large = None
        try:
            if codec:
                (data, self.too_large), at = decompress_front(self.budget, codec, self.buf[start:stop]), 0
                stop = len(data)
                if self.too_large is None:
                    self.uncompressed(node, records, codec, stop)
            self.records(records, data, at, stop, fields, f"{path}.records")
            if self.too_large is not None:
                raise self.too_large
        except DecodeError as error:
            offset = start if codec or error.offset is None else error.offset
            self.fail(records, error, error.path or f"{path}.records", offset)
        count = fields["records_count"]
        what = "1 record" if count == 1 else f"{count:,} records"
        node.meaning = f"{what}, {records.meaning or f'{node.length:,} bytes'}"

    def records(self, parent: Node, data: bytes, pos: int, end: int, fields: dict[str, int], path: str) -> None:
        declared = fields["records_count"]
        if declared < 0:
            raise bad_records_count(declared, pos - 4)
        folded = self.folded
        for index in range(declared):
            if not self.budget.records:
                raise self.budget.too_many_records()
            if pos == end:
                raise what_ended(missing_records(declared, index, pos), self.too_large)
            if self.is_full():
                parent.meaning = f"{parent.meaning}, only the first {index:,} shown".removeprefix(", ")
                return
            if folded is not None and index >= folded.shown:
                stop = self.fold(folded, parent, data, pos, end, fields)
                if stop >= 0:
                    pos = stop
                    self.budget.records -= 1
                    continue
            record = Node(f"[{index}]", RECORD, pos, 0, derived=data is not self.buf)
            parent.children.append(record)
            try:
                pos = self.record(record, data, pos, end, fields)
            except DecodeError as failure:
                error = what_ended(failure, self.too_large)
                record.problem = str(error)
                error.path = f"{path}[{index}]"
                raise error from failure
            self.budget.records -= 1
        if pos != end:
            raise what_ended(bytes_after_records(end - pos, declared, pos), self.too_large)

    def fold(self, folded: Folded, parent: Node, data: bytes, pos: int, end: int, fields: dict[str, int]) -> int:
        """Put in the place of a sound record what stands for it; returns where that ends, -1 for what is to be kept."""
        if fields["attributes"] & CONTROL:
            return -1
        headers = headers_of_sound(self.reader, data, pos, end)
        if headers < 0 or headers > self.budget.headers:
            return -1
        self.budget.headers -= headers
        nodes = RECORD_NODES + HEADER_NODES * headers - 1  # what stands for it is one
        self.nodes += nodes
        folded.nodes += nodes
        parent.children.append(folded.node)
        return self.reader.stop

    def record(self, node: Node, data: bytes, pos: int, end: int, fields: dict[str, int]) -> int:
        """Add the fields of the record at ``pos`` to its node; returns where it ends."""
        found: dict[str, Any] = {}
        for field in record_fields(data, pos, end, self.budget):
            name, _, _, stop, value = field
            found[name] = value
            if name == "length":
                node.length = stop + value - pos
            self.record_field(node, field, fields)
            if name == "value":
                offset = node.children[-3].value
                node.meaning = f"offset {offset}{', tombstone' if value is None else ''}"
        if fields["attributes"] & CONTROL:
            control = control_of(found["key"], found["value"])
            node.meaning += f", {control['type']}"
            self.tree(node, "control", child_of(node, "value"), control)
        return pos + node.length

    def record_field(self, node: Node, field: RecordField, fields: dict[str, int]) -> None:
        """Add one field; what is a difference in the record is a node with the value that it stands for."""
        name, wire_type, start, stop, value = field
        meaning = ""
        if name == "headers":
            self.headers(node, field)
            return
        if name == "timestamp":
            delta = value
            value = sent = wrapped(fields["base_timestamp"] + delta)
            if fields["attributes"] & LOG_APPEND_TIME:
                value = fields["max_timestamp"]
            if self.says_meanings:
                replaced = fields["attributes"] & LOG_APPEND_TIME
                meaning = joined(time_meaning(value), append_time_meaning(sent) if replaced else f"{delta:+} ms")
        elif name == "offset":
            meaning = f"{value:+}" if self.says_meanings else ""
            value = wrapped(fields["base_offset"] + value)
        elif wire_type == "BYTES":
            meaning = bytes_meaning(name, value)
        self.add(node, name, wire_type, start, stop - start, value, meaning)

    def headers(self, node: Node, field: RecordField) -> None:
        name, wire_type, start, stop, found = field
        headers = self.add(node, name, wire_type, start, stop - start)
        for index, (start, key, key_stop, value, stop) in enumerate(found):
            header = self.add(headers, f"[{index}]", HEADER_NODE, start, stop - start)
            self.add(header, "key", "STRING", start, key_stop - start, key)
            self.add(header, "value", "BYTES", key_stop, stop - key_stop, value)

    def tree(self, parent: Node, name: str, place: Node, value: Any) -> None:
        """Decoded fields of a control record as nodes, all at the place of the value they come from."""
        nested = "STRUCT" if isinstance(value, dict) else "ARRAY" if isinstance(value, list) else ""
        if not nested:
            self.add(parent, name, "BYTES" if isinstance(value, bytes) else "", place.offset, place.length, value)
            return
        node = self.add(parent, name, nested, place.offset, place.length)
        entries = value.items() if nested == "STRUCT" else ((f"[{i}]", entry) for i, entry in enumerate(value))
        for inner, entry in entries:
            self.tree(node, inner, place, entry)


def headers_of_sound(reader: RecordReader, data: bytes, start: i64, end: i64) -> i64:
    """The number of headers of the record at ``start``, which ends at ``reader.stop``; -1 where anything is wrong."""
    size: i64 = len(data)
    pos: i64 = reader.front(data, start, end if end < size else size, VARLONG_BYTES)
    if pos < 0:
        return -1
    stop: i64 = reader.stop
    count: i64 = 0
    part: i64 = 0  # key and value of the record, then of each header
    while part < 2 + 2 * count:
        length: i64 = reader.sized(data, pos, stop)
        pos = reader.pos
        if pos < 0 or (length < 0 and part > 1 and part % 2 == 0):
            return -1
        if length > 0:
            pos += length
        part += 1
        if part == 2:
            count = reader.header_count(data, pos, stop)
            pos = reader.pos
    return count if pos == stop else -1
