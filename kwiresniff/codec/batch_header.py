"""The bounds of the batches in a record set, and the fields of their headers.

Both formats start with an INT64 offset and an INT32 size of what follows, and have the magic at byte 16. All
numbers are big-endian. Sources: protocol guide ("Record Batch", "Message sets").
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from kwiresniff.base.batch_layout import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC_AT,
)
from kwiresniff.codec.message_set import MIN_MESSAGE_BYTES
from kwiresniff.codec.record_limits import MAX_BATCH_BYTES
from kwiresniff.model import Problem

LEAST_BYTES = {**MIN_MESSAGE_BYTES, 2: HEADER_BYTES}


class _Field:
    """A field of a header: its name, its struct code, its bytes, and what reads it."""

    __slots__ = ("code", "name", "unpack", "width")

    def __init__(self, name: str, code: str) -> None:
        read = Struct(f">{code}")
        self.name = name
        self.code = code
        self.width = read.size
        self.unpack: Any = read.unpack_from


def _fields(*named: tuple[str, str]) -> list[_Field]:
    return [_Field(name, code) for name, code in named]


#: Header fields of a batch and of a message (its timestamp is not there in magic 0), with their struct codes.
_BATCH_FIELDS = _fields(
    ("base_offset", "q"), ("batch_length", "i"), ("partition_leader_epoch", "i"), ("magic", "b"), ("crc", "I"),
    ("attributes", "h"), ("last_offset_delta", "i"), ("base_timestamp", "q"), ("max_timestamp", "q"),
    ("producer_id", "q"), ("producer_epoch", "h"), ("base_sequence", "i"), ("records_count", "i"),
)  # fmt: skip
_MESSAGE_FIELDS = _fields(
    ("base_offset", "q"), ("message_size", "i"), ("crc", "I"), ("magic", "b"), ("attributes", "b"), ("timestamp", "q"),
)  # fmt: skip

_offset_and_size = Struct(">qi").unpack_from


def batch_span(buf: bytes, pos: int, end: int) -> tuple[int, int, Problem | None]:
    """``(end, magic, problem)`` of the batch at ``pos``. The magic is -1 when the batch cannot be decoded; then there
    is a problem, unless the batch is merely cut short. A batch without a usable length takes the rest of the set.
    """
    if end - pos < LOG_OVERHEAD:
        return end, -1, None
    _, size = _offset_and_size(buf, pos)
    stop = pos + LOG_OVERHEAD + size
    magic = buf[pos + MAGIC_AT] if pos + MAGIC_AT < end else None
    least = MIN_MESSAGE_BYTES[0] if magic is None else LEAST_BYTES.get(magic, MAGIC_AT + 1)
    if stop - pos < least or size > MAX_BATCH_BYTES:
        return end, -1, Problem("bad_batch_length", f"a batch of {size} bytes", pos + 8)
    if magic is not None and magic not in LEAST_BYTES:
        return min(stop, end), -1, Problem("unknown_magic", f"magic {magic} is not known", pos + MAGIC_AT)
    if stop > end:
        return end, -1, None
    assert magic is not None  # the least size reaches past it
    return stop, magic, None


def header_fields(buf: bytes, pos: int, end: int) -> list[tuple[str, str, int, int, int]]:
    """Name, struct code, offset, width and value of each whole header field in ``buf[pos:end]``, as of magic 2."""
    layout: Sequence[_Field] = _BATCH_FIELDS
    if end - pos <= MAGIC_AT:
        layout = _BATCH_FIELDS[:2]
    elif buf[pos + MAGIC_AT] < 2:
        layout = _MESSAGE_FIELDS[: 5 + buf[pos + MAGIC_AT]]
    found: list[tuple[str, str, int, int, int]] = []
    for field in layout:
        width = field.width
        if pos + width > end:
            break
        found.append((field.name, field.code, pos, width, field.unpack(buf, pos)[0]))
        pos += width
    return found
