"""Record batches, magic 2: bytes to batch dicts.

A batch is a 61-byte header, big-endian, and its records: zigzag varints, keys and values, headers. The CRC-32C
covers everything from the attributes to the end. With a codec set, the records part is compressed as a whole.
Sources: KIP-98, protocol guide ("Record Batch", "Record"), KIP-534 (delete horizon), KIP-32 (timestamp types).
"""

from __future__ import annotations

import struct
from typing import Any

from kwiresniff.base.batch_layout import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    CRC_AT,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from kwiresniff.codec.batch_libraries import crc32c
from kwiresniff.codec.compression import codec_name, decompress_front
from kwiresniff.codec.control import control_of
from kwiresniff.codec.record import decode_records
from kwiresniff.codec.record_limits import RecordBudget, problem
from kwiresniff.errors import DecodeError
from kwiresniff.model import Problem

#: All fields of the header, in the order of ``batch_layout``.
HEADER = struct.Struct(">qiibIhiqqqhii")


def decode_batch(
    buf: bytes, pos: int, stop: int, full: bool, issues: list[Problem], budget: RecordBudget
) -> dict[str, Any]:
    """The batch at ``buf[pos:stop]``, whose length and magic have been checked; never raises for bad bytes."""
    fields = HEADER.unpack_from(buf, pos)
    base_offset, length, leader_epoch, magic, crc, attributes, last_delta = fields[:7]
    base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count = fields[7:]
    codec = attributes & CODEC_MASK
    batch: dict[str, Any] = {
        "base_offset": base_offset,
        "batch_length": length,
        "partition_leader_epoch": leader_epoch,
        "magic": magic,
        "crc": crc,
        "attributes": attributes,
        "last_offset_delta": last_delta,
        "base_timestamp": base_timestamp,
        "max_timestamp": max_timestamp,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "base_sequence": base_sequence,
        "records_count": count,
        "compression": codec_name(codec),
        "timestamp_type": "log_append_time" if attributes & LOG_APPEND_TIME else "create_time",
        "is_transactional": attributes & TRANSACTIONAL != 0,
        "is_control": attributes & CONTROL != 0,
        "size_bytes": stop - pos,
    }
    if not full:
        return batch
    data, start, end = buf, pos + HEADER_BYTES, stop
    batch["uncompressed_size_bytes"] = stop - start
    actual_crc = crc32c()(buf[pos + ATTRIBUTES_AT : stop])
    batch["crc_valid"] = actual_crc == crc
    records: list[dict[str, Any]] = []
    batch["records"] = records
    if actual_crc != crc:
        issues.append(crc_problem(crc, actual_crc, pos + CRC_AT))
    too_large: DecodeError | None = None
    try:
        if codec:
            batch["uncompressed_size_bytes"] = None
            data, too_large = decompress_front(budget, codec, buf[start:stop])
            start, end = 0, len(data)
            if too_large is None:
                batch["uncompressed_size_bytes"] = end
        decode_records(data, start, end, batch, records, budget)
        if too_large is not None:
            raise too_large
    except DecodeError as error:
        if count >= 0:  # a negative count is wrong however much was decompressed
            error = what_ended(error, too_large)
        if data is not buf:
            error.offset = None  # counts inside the decompressed bytes
        issues.append(problem(error, pos + (HEADER_BYTES if codec else 0)))
    budget.records -= len(records)
    if attributes & LOG_APPEND_TIME:
        for record in records:
            record["timestamp"] = max_timestamp
    if attributes & CONTROL:
        for record in records:
            record["control"] = control_of(record["key"], record["value"])
    return batch


def what_ended(error: DecodeError, too_large: DecodeError | None) -> DecodeError:
    """The reason why records end: ``too_large`` where the batch could not be decompressed as a whole."""
    return error if too_large is None or error.code == "too_many_records" else too_large


def crc_problem(declared: int, actual: int, offset: int) -> Problem:
    """The problem of a ``declared`` checksum at ``offset`` that differs from the ``actual`` one."""
    return Problem("bad_crc", f"the CRC says {declared:#010x}, the bytes give {actual:#010x}", offset)
