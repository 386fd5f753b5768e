"""Record sets as annotated nodes: every field of every batch and record with its place and meaning.

The slow twin of ``decode_record_set``: ``plain_batches`` of its nodes is what that one gives. Nodes inside
decompressed data are ``derived`` and their offsets count there. A record's ``timestamp`` and ``offset`` nodes lie
where their deltas are and hold the absolute values. Sources: those of ``record_batch`` and ``message_set``.
"""

from __future__ import annotations

import zlib
from typing import Any

import google_crc32c

from kwiresniff.base.batch_layout import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from kwiresniff.base.body_members import CUT_SHORT
from kwiresniff.base.tree_sizes import RECORDS_SHOWN
from kwiresniff.codec.alignment import first_batch
from kwiresniff.codec.batch_header import batch_span, header_fields
from kwiresniff.codec.compression import codec_name, decompress
from kwiresniff.codec.control import control_of
from kwiresniff.codec.message_set import CRC_START, FRONT, inner_base, inner_set, nullable_bytes, split_set
from kwiresniff.codec.record import RecordField, record_fields, wrapped
from kwiresniff.codec.record_batch import crc_problem
from kwiresniff.codec.record_limits import MAX_NESTING, RecordBudget
from kwiresniff.codec.value_labels import time_meaning
from kwiresniff.errors import DecodeError
from kwiresniff.model import Node, Problem

RECORD_BATCH, MESSAGE, RECORD, HEADER_NODE = "RECORD_BATCH", "MESSAGE", "RECORD", "HEADER"

#: Nodes of one record set. At some 250 bytes each this is 50 MB, and ten thousand times what anyone reads.
MAX_NODES = 200_000

#: Fields of a record, its length and its headers among them.
RECORD_FIELDS = 7

_TYPES = {"q": "INT64", "i": "INT32", "I": "UINT32", "h": "INT16", "b": "INT8"}
_NONE_AT_MINUS_ONE = frozenset({"partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence"})


def dissect_record_set(
    buf: bytes,
    start: int,
    end: int,
    budget: RecordBudget | None = None,
    *,
    unaligned: bool = False,
    folded: Folded | None = None,
) -> tuple[list[Node], list[Problem]]:
    """The batches of ``buf[start:end]`` as nodes, and what is wrong with them, paths from ``[0]`` on.

    An ``unaligned`` set may begin inside a batch. The record sets of one message share a ``budget``. What is ``folded``
    stands in the place of records that no tree shows; what they would have been made of is added to it.
    """
    dissection = _RecordSetDissector(buf, budget or RecordBudget(), folded)
    pos = first_batch(buf, start, end) if unaligned else start
    if pos > start:
        dissection.batches.append(Node("[0]", RECORD_BATCH, start, pos - start, meaning=CUT_SHORT))
    while pos < end:
        too_many = dissection.budget.take_batch(pos)
        if too_many or dissection.nodes >= MAX_NODES:
            dissection.leave(pos, end, too_many)
            break
        pos = dissection.batch(pos, end)
    return dissection.batches, dissection.problems


class Folded:
    """A ``node`` that stands for records, and how many ``nodes`` those would have had below them."""

    __slots__ = ("node", "nodes")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.nodes = 0


class _RecordSetDissector:
    def __init__(self, buf: bytes, budget: RecordBudget, folded: Folded | None = None) -> None:
        self.buf = buf
        self.folded = folded
        self.batches: list[Node] = []
        self.problems: list[Problem] = []
        self.budget = budget
        self.nodes = 0

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

    def header(self, node: Node, data: bytes, end: int) -> None:
        for name, code, at, width, value in header_fields(data, node.offset, end):
            self.add(node, name, _TYPES[code], at, width, value, _field_meaning(name, value))

    def add(
        self, parent: Node, name: str, type: str, offset: int, length: int, value: Any = None, meaning: str = ""
    ) -> Node:
        node = Node(name, type, offset, length, value, meaning, derived=parent.derived)
        parent.children.append(node)
        self.nodes += 1
        return node

    def fail(self, node: Node, error: DecodeError, path: str, offset: int) -> None:
        node.problem = str(error)
        self.problems.append(Problem(error.code, str(error), offset, path))

    def check_crc(self, node: Node, declared: int, actual: int, path: str) -> None:
        crc = _child(node, "crc")
        crc.meaning = "ok" if declared == actual else "mismatch"
        if declared != actual:
            problem = crc_problem(declared, actual, crc.offset)
            crc.problem = problem.message
            self.problems.append(Problem(problem.code, problem.message, problem.offset, f"{path}.crc"))

    def record_batch(self, node: Node, path: str) -> None:
        fields = {child.name: child.value for child in node.children}
        start, stop = node.offset + HEADER_BYTES, node.offset + node.length
        attributes = fields["attributes"]
        codec = attributes & CODEC_MASK
        _child(node, "attributes").meaning = _attributes_meaning(attributes)
        _child(node, "last_offset_delta").meaning = f"to offset {fields['base_offset'] + fields['last_offset_delta']}"
        if attributes & DELETE_HORIZON:
            _child(node, "base_timestamp").meaning = f"delete horizon {time_meaning(fields['base_timestamp'])}"
        crc = _child(node, "crc")
        self.check_crc(node, crc.value, google_crc32c.value(self.buf[node.offset + ATTRIBUTES_AT : stop]), path)
        records = self.add(node, "records", "ARRAY", start, stop - start)
        data, at = self.buf, start
        try:
            if codec:
                data, at = decompress(codec, self.buf[start:stop], self.budget.decompress_limit(stop - start)), 0
                stop = len(data)
                self.budget.decompressed_bytes -= stop
                self.uncompressed(node, records, codec, stop)
            self.records(records, data, at, stop, fields, f"{path}.records")
        except DecodeError as error:
            offset = start if codec or error.offset is None else error.offset
            self.fail(records, error, error.path or f"{path}.records", offset)
        count = fields["records_count"]
        what = "1 record" if count == 1 else f"{count:,} records"
        node.meaning = f"{what}, {records.meaning or f'{node.length:,} bytes'}"

    def uncompressed(self, node: Node, records: Node, codec: int, size: int) -> None:
        """Say what decompression gave; ``records`` is the last child so far."""
        ratio = size / records.length if records.length else 0
        records.meaning = f"{codec_name(codec)} {ratio:.1f}x, {records.length:,} -> {size:,} bytes"
        note = Node("uncompressed_size_bytes", "INT32", records.offset, 0, size, derived=True)
        node.children.insert(-1, note)

    def records(self, parent: Node, data: bytes, pos: int, end: int, fields: dict[str, int], path: str) -> None:
        declared = fields["records_count"]
        if declared < 0:
            raise DecodeError(f"records_count is {declared}", code="bad_records_count", offset=pos - 4)
        for index in range(declared):
            self.budget.take_records(1)
            if pos == end:
                message = f"records_count is {declared}, the batch holds {index}"
                raise DecodeError(message, code="bad_records_count", offset=pos)
            if self.nodes >= MAX_NODES:
                parent.meaning = f"{parent.meaning}, only the first {index:,} shown".removeprefix(", ")
                return
            if index >= RECORDS_SHOWN and (stop := self.fold(parent, data, pos, end, fields)) >= 0:
                pos = stop
                continue
            record = Node(f"[{index}]", RECORD, pos, 0, derived=data is not self.buf)
            parent.children.append(record)
            try:
                pos = self.record(record, data, pos, end, fields)
            except DecodeError as error:
                record.problem = str(error)
                error.path = f"{path}[{index}]"
                raise
        if pos != end:
            message = f"{end - pos} bytes are left after {declared} records"
            raise DecodeError(message, code="bad_records_count", offset=pos)

    def fold(self, parent: Node, data: bytes, pos: int, end: int, fields: dict[str, int]) -> int:
        """Put in the place of a sound record what stands for it; returns where that ends, -1 for what is to be kept."""
        folded = self.folded
        if folded is None or fields["attributes"] & CONTROL:
            return -1
        try:
            length, *_, headers = record_fields(data, pos, end)
        except DecodeError:
            return -1
        nodes = RECORD_FIELDS + 3 * len(headers[4])  # each has a key and a value
        self.nodes += nodes
        folded.nodes += nodes
        parent.children.append(folded.node)
        return int(length[3] + length[4])

    def record(self, node: Node, data: bytes, pos: int, end: int, fields: dict[str, int]) -> int:
        """Add the fields of the record at ``pos`` to its node; returns where it ends."""
        found: dict[str, Any] = {}
        for field in record_fields(data, pos, end):
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
            self.tree(node, "control", _child(node, "value"), control)
        return pos + node.length

    def record_field(self, node: Node, field: RecordField, fields: dict[str, int]) -> None:
        """Add one field; what is a difference in the record is a node with the value that it stands for."""
        name, wire_type, start, stop, value = field
        meaning = ""
        if name == "headers":
            self.headers(node, field)
            return
        if name == "timestamp":
            meaning = f"{value:+} ms"
            value = wrapped(fields["base_timestamp"] + value)
            if fields["attributes"] & LOG_APPEND_TIME:
                meaning = f"log append time, the client's was {time_meaning(value)}"
                value = fields["max_timestamp"]
            meaning = _joined(time_meaning(value), meaning)
        elif name == "offset":
            meaning = f"{value:+}"
            value = wrapped(fields["base_offset"] + value)
        elif wire_type == "BYTES":
            meaning = _bytes_meaning(name, value)
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

    def message(self, node: Node, path: str) -> None:
        stop = node.offset + node.length
        codec = _child(node, "attributes").value & CODEC_MASK
        actual = zlib.crc32(self.buf[node.offset + CRC_START : stop])
        self.check_crc(node, _child(node, "crc").value, actual, path)
        try:
            if not codec:
                self.budget.take_records(1)
            self.message_body(node, self.buf, None, 1)
        except DecodeError as error:
            offset = node.offset if codec or error.offset is None else error.offset
            self.fail(node, error, path, offset)

    def message_body(self, node: Node, data: bytes, stamp: int | None, depth: int) -> None:
        """Timestamp, key and value of a message whose front has been added, and the set inside it."""
        fields = {child.name: child.value for child in node.children}
        outer_offset = node.children[0].value
        pos, stop = node.offset + FRONT.size, node.offset + node.length
        codec = fields["attributes"] & CODEC_MASK
        _child(node, "attributes").meaning = _attributes_meaning(fields["attributes"], fields["magic"])
        if fields["magic"]:
            timestamp = _child(node, "timestamp")
            if stamp is not None:
                note = f"log append time, the client's was {time_meaning(timestamp.value)}"
                timestamp.value, timestamp.meaning = stamp, _joined(time_meaning(stamp), note)
            elif fields["attributes"] & LOG_APPEND_TIME and depth == 1:
                stamp = timestamp.value
            pos += 8
        key, end = nullable_bytes(data, pos, stop)
        self.add(node, "key", "BYTES", pos, end - pos, key, _bytes_meaning("key", key))
        value, after = nullable_bytes(data, end, stop)
        if after != stop:
            raise DecodeError(f"{stop - after} bytes are left in the message", code="bad_record", offset=after)
        if not codec:
            self.add(node, "value", "BYTES", end, after - end, value, _bytes_meaning("value", value))
            return
        records = self.add(node, "records", "ARRAY", end, after - end)
        inner = inner_set(codec, value, self.budget)
        self.uncompressed(node, records, codec, len(inner))
        node.meaning = records.meaning
        self.inner(records, inner, outer_offset, fields["magic"], stamp, depth)

    def inner(self, parent: Node, data: bytes, outer_offset: int, magic: int, stamp: int | None, depth: int) -> None:
        spans, failure = split_set(data, self.budget)
        base = inner_base(outer_offset, magic, spans)
        for index, (start, stop, _, relative) in enumerate(spans):
            if self.nodes >= MAX_NODES:
                parent.meaning += f", only the first {index:,} shown"
                return
            node = Node(f"[{index}]", MESSAGE, start, stop - start, derived=True)
            self.header(node, data, stop)
            offset = node.children[0]
            offset.name = "offset"
            offset.value, offset.meaning = wrapped(base + relative), f"{relative} in the set"
            if node.children[4].value & CODEC_MASK and depth >= MAX_NESTING:
                raise DecodeError(f"message sets nested more than {MAX_NESTING} deep", code="nested_too_deep")
            parent.children.append(node)
            try:
                self.message_body(node, data, stamp, depth + 1)
            except DecodeError as error:
                node.problem = str(error)
                raise
            crc = _child(node, "crc")
            right = crc.value == zlib.crc32(data[start + CRC_START : stop])
            crc.meaning = "ok" if right else "mismatch"
            if not right and not node.children[4].value & CODEC_MASK:
                message = f"the CRC of the inner message at offset {offset.value} is wrong"
                crc.problem = message
                failure = failure or DecodeError(message, code="bad_crc")
        if failure is not None:
            raise failure


def _child(node: Node, name: str) -> Node:
    return next(child for child in node.children if child.name == name)


def _field_meaning(name: str, value: int) -> str:
    if name.endswith("timestamp"):
        return "none" if value == -1 else time_meaning(value)
    return "none" if value == -1 and name in _NONE_AT_MINUS_ONE else ""


def _attributes_meaning(attributes: int, magic: int = 2) -> str:
    words = [codec_name(attributes & CODEC_MASK)]
    if magic > 0:
        words.append("log append time" if attributes & LOG_APPEND_TIME else "create time")
    if magic > 1:
        flags = ((TRANSACTIONAL, "transactional"), (CONTROL, "control"), (DELETE_HORIZON, "delete horizon"))
        words += [word for bit, word in flags if attributes & bit]
    return _joined(*words)


def _bytes_meaning(name: str, value: bytes | None) -> str:
    return "" if value is not None else "tombstone" if name == "value" else "none"


def _joined(*phrases: str) -> str:
    return ", ".join(filter(None, phrases))
