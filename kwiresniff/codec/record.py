"""Records as dicts, and in words what is wrong with them.

``kwiresniff.codec.record_reader`` makes the dicts. What it is not sure of is read again by ``record_fields``, field by
field; annotated trees are made from the same fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from kwiresniff.codec.decode_errors import bad_records_count, bytes_after_records, missing_records
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.record_reader import (
    MIN_RECORD_BYTES,
    VARINT_BYTES,
    VARLONG_BYTES,
    RecordDicts,
    RecordReader,
    header_key,
)
from kwiresniff.errors import DecodeError


def decode_records(
    data: bytes, pos: int, end: int, batch: dict[str, Any], records: list[dict[str, Any]], budget: RecordBudget
) -> None:
    """Appends records of ``data[pos:end]`` within the ``budget``. Raises DecodeError at the first malformed one."""
    declared = batch["records_count"]
    if declared < 0:
        raise bad_records_count(declared, pos - 4)
    base_offset, base_timestamp = batch["base_offset"], batch["base_timestamp"]
    count = min(declared, budget.records)
    reader = RecordDicts()
    while len(records) < count:
        pos = reader.read(data, pos, end, base_offset, base_timestamp, count - len(records), records, budget)
        if len(records) == count:
            break
        if pos == end:
            raise missing_records(declared, len(records), pos)
        record, pos = _decode_record(data, pos, end, base_offset, base_timestamp, budget)
        records.append(record)
    if count < declared:
        raise budget.too_many_records()
    if pos != end:
        raise bytes_after_records(end - pos, declared, pos)


def _decode_record(
    data: bytes, pos: int, end: int, base_offset: int, base_timestamp: int, budget: RecordBudget
) -> tuple[dict[str, Any], int]:
    """One record with every check, and its end. Raises DecodeError."""
    # As a list: compiled, an error in a generator that is unpacked becomes a ValueError.
    length, _, timestamp_delta, offset_delta, key, value, headers = list(record_fields(data, pos, end, budget))
    record = {
        "offset": wrapped(base_offset + offset_delta[4]),
        "timestamp": wrapped(base_timestamp + timestamp_delta[4]),
        "key": key[4],
        "value": value[4],
        "headers": [{"key": name, "value": content} for _, name, _, content, _ in headers[4]],
    }
    return record, length[3] + length[4]


#: A record's field: name, type, start, stop, and value (number, bytes or headers), as a plain tuple for speed.
RecordField: TypeAlias = tuple[str, str, int, int, Any]
#: A record's header: start, key (bytes if not UTF-8), where the key stops, the value, and where it stops.
RecordHeader: TypeAlias = tuple[int, "str | bytes", int, "bytes | None", int]


def record_fields(data: bytes, start: int, end: int, budget: RecordBudget) -> Iterator[RecordField]:
    """Yields the seven fields of the record at ``start``; raises DecodeError at the first that does not fit."""
    reader = RecordReader()
    end = min(end, len(data))
    pos = reader.front(data, start, end, VARLONG_BYTES)
    at, length, stop = reader.attributes_at, reader.length, reader.stop
    if at < 0:
        raise bad_varint(start, VARINT_BYTES, end)
    if length < MIN_RECORD_BYTES - 1 or at + length > end:
        raise DecodeError(f"a record of {length} bytes where {end - at} are left", code="bad_record", offset=start)
    yield ("length", "VARINT", start, at, length)
    yield ("attributes", "INT8", at, at + 1, data[at])
    offset_at = reader.offset_at
    if offset_at < 0:
        raise bad_varint(at + 1, VARLONG_BYTES, stop)
    yield ("timestamp", "VARLONG", at + 1, offset_at, reader.timestamp_delta)
    if pos < 0:
        raise bad_varint(offset_at, VARINT_BYTES, stop)
    yield ("offset", "VARINT", offset_at, pos, reader.offset_delta)
    for name in ("key", "value"):
        start = pos
        raw, pos = read_bytes(reader, data, start, stop)
        yield (name, "BYTES", start, pos, raw)
    start = pos
    headers, pos = _read_headers(data, start, stop, budget)
    yield ("headers", "ARRAY", start, pos, headers)
    if pos != stop:
        raise DecodeError(f"{stop - pos} bytes are left in the record", code="bad_record", offset=pos)


def wrapped(number: int) -> int:
    """``number`` as two's complement INT64 arithmetic wraps it, as Java does."""
    return (number + (1 << 63) & (1 << 64) - 1) - (1 << 63)


def read_varint(data: bytes, pos: int, most: int, end: int = 1 << 62) -> tuple[int, int]:
    """A zigzag VARINT or VARLONG of at most ``most`` bytes, and the position after it. Raises DecodeError."""
    reader = RecordReader()
    end = min(end, len(data))
    number = reader.varint(data, pos, end, most)
    if reader.pos < 0:
        raise bad_varint(pos, most, end)
    return number, reader.pos


def bad_varint(pos: int, most: int, end: int) -> DecodeError:
    """The error of the varint at ``pos``, of at most ``most`` bytes before ``end``, that cannot be read."""
    why = "is cut short" if end - pos < most else f"is longer than {most} bytes"
    return DecodeError(f"a varint {why}", code="bad_record", offset=pos)


def read_bytes(reader: RecordReader, data: bytes, pos: int, stop: int) -> tuple[bytes | None, int]:
    """Bytes behind a zigzag VARINT length, None for a negative one, and their end. Raises DecodeError."""
    at = pos
    length = reader.varint(data, pos, stop, VARINT_BYTES)
    pos = reader.pos
    if pos < 0:
        raise bad_varint(at, VARINT_BYTES, stop)
    if length < 0:
        return None, pos
    if pos + length > stop:
        raise DecodeError(f"{length} bytes where {stop - pos} are left", code="bad_record", offset=at)
    return data[pos : pos + length], pos + length


def _read_headers(data: bytes, pos: int, stop: int, budget: RecordBudget) -> tuple[list[RecordHeader], int]:
    """The headers of a record, and the position after them."""
    at = pos
    count, pos = read_varint(data, pos, VARINT_BYTES, stop)
    if count < 0 or count > (stop - pos) // 2:
        raise DecodeError(f"{count} headers where {stop - pos} bytes are left", code="bad_record", offset=at)
    budget.take_headers(count)
    reader = RecordReader()
    headers: list[RecordHeader] = []
    for _ in range(count):
        at = pos
        raw, pos = read_bytes(reader, data, pos, stop)
        if raw is None:
            raise DecodeError("a header key is null", code="bad_record", offset=at)
        key_stop = pos
        value, pos = read_bytes(reader, data, pos, stop)
        headers.append((at, header_key(raw), key_stop, value, pos))
    return headers, pos
