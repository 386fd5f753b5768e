"""Message sets, magic 0 and 1, to dicts and back: they have nothing in common with the record batches of magic 2.

A message is INT64 offset, INT32 size, UINT32 CRC-32 of everything after it, INT8 magic, INT8 attributes, with
magic 1 an INT64 timestamp, then key and value, each led by an INT32 length. With a codec set, the value is another
message set, compressed. Sources: protocol guide ("Message sets"), KIP-31 (relative offsets), KIP-32 (timestamps).
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from kwiresniff.base.batch_layout import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
)
from kwiresniff.codec.compression import codec_name, decompress_within
from kwiresniff.codec.decode_errors import bad_inner_crc, bytes_in_message, nested_too_deep
from kwiresniff.codec.record import wrapped
from kwiresniff.codec.record_batch import crc_problem
from kwiresniff.codec.record_limits import MAX_NESTING, RecordBudget, problem
from kwiresniff.errors import DecodeError
from kwiresniff.model import Problem

#: offset, message_size, crc, magic, attributes.
FRONT = struct.Struct(">qiIbb")
CRC_OFFSET = 12
#: The CRC covers the message from its magic on.
CRC_START = 16
#: Front, the timestamp of magic 1, and the lengths of key and value.
MIN_MESSAGE_BYTES = {0: FRONT.size + 8, 1: FRONT.size + 16}

_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")


def decode_message(
    buf: bytes, pos: int, stop: int, full: bool, issues: list[Problem], budget: RecordBudget
) -> dict[str, Any]:
    """The outer message at ``buf[pos:stop]``, whose size and magic have been checked; never raises for bad bytes."""
    offset, size, crc, magic, attributes = FRONT.unpack_from(buf, pos)
    codec = attributes & CODEC_MASK
    message: dict[str, Any] = {
        "base_offset": offset,
        "message_size": size,
        "crc": crc,
        "magic": magic,
        "attributes": attributes,
    }
    if magic:
        (message["timestamp"],) = _LONG.unpack_from(buf, pos + FRONT.size)
    message["compression"] = codec_name(codec)
    if magic:
        message["timestamp_type"] = "log_append_time" if attributes & LOG_APPEND_TIME else "create_time"
    message["size_bytes"] = stop - pos
    if not full:
        return message
    message["uncompressed_size_bytes"] = stop - pos
    actual_crc = zlib.crc32(buf[pos + CRC_START : stop])
    message["crc_valid"] = actual_crc == crc
    records: list[dict[str, Any]] = []
    message["records"] = records
    if actual_crc != crc:
        issues.append(crc_problem(crc, actual_crc, pos + CRC_OFFSET))
    try:
        if codec:
            message["uncompressed_size_bytes"] = None
            _, value = key_and_value(buf, pos, stop, magic)
            inner = inner_set(codec, value, budget)
            message["uncompressed_size_bytes"] = len(inner)
            _inner_records(inner, offset, message, budget, 1, records)
        else:
            budget.take_records(1)
            records.append(_record(buf, pos, stop, offset))
    except DecodeError as error:
        if codec:
            error.offset = None  # counts inside the decompressed bytes
        issues.append(problem(error, pos))
    return message


def key_and_value(buf: bytes, pos: int, stop: int, magic: int) -> tuple[bytes | None, bytes | None]:
    """Key and value of a message of magic 0 or 1, which they must fill. Raises DecodeError."""
    at = pos + FRONT.size + (8 if magic else 0)
    key, at = nullable_bytes(buf, at, stop)
    value, at = nullable_bytes(buf, at, stop)
    if at != stop:
        raise bytes_in_message(stop - at, at)
    return key, value


def nullable_bytes(buf: bytes, pos: int, stop: int) -> tuple[bytes | None, int]:
    """Bytes behind an INT32 length, None for a negative one, and the position after them. Raises DecodeError."""
    if pos + 4 > stop:
        raise DecodeError("the message ends inside a length", code="bad_record", offset=pos)
    (length,) = _INT.unpack_from(buf, pos)
    pos += 4
    if length < 0:
        return None, pos
    if pos + length > stop:
        raise DecodeError(f"{length} bytes where {stop - pos} are left", code="bad_record", offset=pos - 4)
    return buf[pos : pos + length], pos + length


def inner_set(codec: int, value: bytes | None, budget: RecordBudget) -> bytes:
    """The message set that a message holds, compressed by ``codec`` (1 to 4). Raises DecodeError."""
    if value is None:
        raise DecodeError("a compressed message without a value", code="bad_compressed_data")
    return decompress_within(budget, codec, value, repair_lz4=True)


def split_set(data: bytes, budget: RecordBudget) -> tuple[list[tuple[int, int, int, int]], DecodeError | None]:
    """The messages of a decompressed set as ``(start, stop, magic, offset)``, and the error that ended it, or None.
    Raises DecodeError for too many.
    """
    spans: list[tuple[int, int, int, int]] = []
    pos, end = 0, len(data)
    while pos < end:
        if end - pos < FRONT.size:
            return spans, DecodeError("the inner message set ends inside a message", code="bad_record", offset=pos)
        offset, size, _, magic, _ = FRONT.unpack_from(data, pos)
        stop = pos + LOG_OVERHEAD + size
        least = MIN_MESSAGE_BYTES.get(magic)
        if least is None:
            return spans, DecodeError(f"magic {magic} inside a message set", code="unknown_magic", offset=pos + 16)
        if stop - pos < least or stop > end:
            why = f"an inner message of {size} bytes where {end - pos - LOG_OVERHEAD} are left"
            return spans, DecodeError(why, code="bad_record", offset=pos + 8)
        budget.take_records(1)
        spans.append((pos, stop, magic, offset))
        pos = stop
    return spans, None


def inner_base(outer_offset: int, magic: int, spans: list[tuple[int, int, int, int]]) -> int:
    """What to add to inner offsets: 0 for magic 0. In magic 1 they count from the set's first message, and
    ``outer_offset`` is that of the last (KIP-31), or 0 for a set not numbered yet.
    """
    if magic == 0 or not spans:
        return 0
    return max(0, outer_offset - spans[-1][3])


def _inner_records(
    data: bytes,
    outer_offset: int,
    outer: dict[str, Any],
    budget: RecordBudget,
    depth: int,
    records: list[dict[str, Any]],
) -> None:
    spans, failure = split_set(data, budget)
    base = inner_base(outer_offset, outer["magic"], spans)
    stamp = outer["timestamp"] if outer.get("timestamp_type") == "log_append_time" else None
    for start, stop, magic, relative in spans:
        offset = wrapped(base + relative)
        codec = data[start + 17] & CODEC_MASK
        if codec:
            if depth >= MAX_NESTING:
                raise nested_too_deep(MAX_NESTING)
            _, value = key_and_value(data, start, stop, magic)
            nested: dict[str, Any] = {"magic": magic}
            if stamp is not None:
                nested.update(timestamp=stamp, timestamp_type="log_append_time")
            _inner_records(inner_set(codec, value, budget), offset, nested, budget, depth + 1, records)
            continue
        record = _record(data, start, stop, offset)
        if stamp is not None and "timestamp" in record:
            record["timestamp"] = stamp
        records.append(record)
        (crc,) = struct.unpack_from(">I", data, start + CRC_OFFSET)
        if crc != zlib.crc32(data[start + CRC_START : stop]):
            failure = failure or bad_inner_crc(offset)
    if failure is not None:
        raise failure


def _record(data: bytes, start: int, stop: int, offset: int) -> dict[str, Any]:
    magic = data[start + CRC_START]
    key, value = key_and_value(data, start, stop, magic)
    if magic:
        return {
            "offset": offset,
            "timestamp": _LONG.unpack_from(data, start + FRONT.size)[0],
            "key": key,
            "value": value,
        }
    return {"offset": offset, "key": key, "value": value}
