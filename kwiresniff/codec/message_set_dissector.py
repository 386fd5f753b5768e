"""Message sets (magic 0 and 1, before Kafka 0.11) as annotated nodes. Sources: those of ``message_set``."""

from __future__ import annotations

import zlib

from kwiresniff.base.batch_layout import CODEC_MASK, LOG_APPEND_TIME
from kwiresniff.codec.batch_nodes import (
    BatchNodes,
    append_time_meaning,
    attributes_meaning,
    bytes_meaning,
    child_of,
    joined,
)
from kwiresniff.codec.decode_errors import bad_inner_crc, bytes_in_message, nested_too_deep
from kwiresniff.codec.message_set import CRC_START, FRONT, inner_base, inner_set, nullable_bytes, split_set
from kwiresniff.codec.record import wrapped
from kwiresniff.codec.record_limits import MAX_NESTING
from kwiresniff.errors import DecodeError
from kwiresniff.model import Node
from kwiresniff.schema.value_labels import time_meaning

#: The type of their nodes.
MESSAGE = "MESSAGE"


class MessageNodes(BatchNodes):
    """Adds the fields of messages, and the messages inside compressed ones."""

    def message(self, node: Node, path: str) -> None:
        """Adds what follows the header of the message at ``node``, and checks its CRC."""
        stop = node.offset + node.length
        codec = child_of(node, "attributes").value & CODEC_MASK
        actual = zlib.crc32(self.buf[node.offset + CRC_START : stop])
        self.check_crc(node, child_of(node, "crc").value, actual, path)
        try:
            if not codec:
                self.budget.take_records(1)
            self.message_body(node, self.buf, None, 1)
        except DecodeError as error:
            offset = node.offset if codec or error.offset is None else error.offset
            self.fail(node, error, path, offset)

    def message_body(self, node: Node, data: bytes, stamp: int | None, depth: int) -> None:
        """Adds timestamp, key, value or inner set; ``stamp`` is the outer message's log append time in ms."""
        fields = {child.name: child.value for child in node.children}
        outer_offset = node.children[0].value
        pos, stop = node.offset + FRONT.size, node.offset + node.length
        codec = fields["attributes"] & CODEC_MASK
        child_of(node, "attributes").meaning = attributes_meaning(fields["attributes"], fields["magic"])
        if fields["magic"]:
            timestamp = child_of(node, "timestamp")
            if stamp is not None:
                note = append_time_meaning(timestamp.value)
                timestamp.value, timestamp.meaning = stamp, joined(time_meaning(stamp), note)
            elif fields["attributes"] & LOG_APPEND_TIME and depth == 1:
                stamp = timestamp.value
            pos += 8
        key, end = nullable_bytes(data, pos, stop)
        self.add(node, "key", "BYTES", pos, end - pos, key, bytes_meaning("key", key))
        value, after = nullable_bytes(data, end, stop)
        if after != stop:
            raise bytes_in_message(stop - after, after)
        if not codec:
            self.add(node, "value", "BYTES", end, after - end, value, bytes_meaning("value", value))
            return
        records = self.add(node, "records", "ARRAY", end, after - end)
        inner = inner_set(codec, value, self.budget)
        self.uncompressed(node, records, codec, len(inner))
        node.meaning = records.meaning
        self.inner(records, inner, outer_offset, fields["magic"], stamp, depth)

    def inner(self, parent: Node, data: bytes, outer_offset: int, magic: int, stamp: int | None, depth: int) -> None:
        """Adds the messages of the set inside a message; ``stamp`` as in ``message_body``."""
        spans, failure = split_set(data, self.budget)
        base = inner_base(outer_offset, magic, spans)
        for index, (start, stop, _, relative) in enumerate(spans):
            if self.is_full():
                parent.meaning += f", only the first {index:,} shown"
                return
            node = Node(f"[{index}]", MESSAGE, start, stop - start, derived=True)
            self.header(node, data, stop)
            offset = node.children[0]
            offset.name = "offset"
            offset.value, offset.meaning = wrapped(base + relative), f"{relative} in the set"
            if node.children[4].value & CODEC_MASK and depth >= MAX_NESTING:
                raise nested_too_deep(MAX_NESTING)
            parent.children.append(node)
            try:
                self.message_body(node, data, stamp, depth + 1)
            except DecodeError as error:
                node.problem = str(error)
                raise
            crc = child_of(node, "crc")
            right = crc.value == zlib.crc32(data[start + CRC_START : stop])
            crc.meaning = "ok" if right else "mismatch"
            if not right and not node.children[4].value & CODEC_MASK:
                wrong = bad_inner_crc(offset.value)
                crc.problem = str(wrong)
                failure = failure or wrong
        if failure is not None:
            raise failure
