"""Record batches, magic 2: batch dicts to bytes, the reverse of ``record_batch`` and ``record``."""

from __future__ import annotations

import struct
from typing import Any

from kwiresniff.base.batch_layout import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CODEC_NAMES,
    CONTROL,
    CRC_AT,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TRANSACTIONAL,
)
from kwiresniff.codec.batch_libraries import crc32c
from kwiresniff.codec.compression import compress
from kwiresniff.codec.primitives import write_varlong
from kwiresniff.codec.record import wrapped
from kwiresniff.codec.record_batch import HEADER
from kwiresniff.errors import EncodeError


def encode_batch(batch: dict[str, Any], *, keep_crc: bool = False) -> bytes:
    """The batch as bytes; lengths and counts are worked out, the CRC-32C too unless ``keep_crc``. Raises EncodeError.

    Fields may be missing: they get what a plain, non-idempotent producer sends.
    """
    records = batch["records"]
    first = records[0] if records else {}
    base_offset = batch.get("base_offset", first.get("offset", 0))
    base_timestamp = batch.get("base_timestamp", first.get("timestamp", -1))
    attributes = batch.get("attributes")
    if attributes is None:
        attributes = _attributes(batch)
    payload = b"".join([_encode_record(record, base_offset, base_timestamp) for record in records])
    if attributes & CODEC_MASK:
        payload = compress(attributes & CODEC_MASK, payload)
    last = records[-1]["offset"] - base_offset if records else 0
    latest = max((record["timestamp"] for record in records), default=-1)
    length = HEADER_BYTES - LOG_OVERHEAD + len(payload)
    values = [base_offset, length, batch.get("partition_leader_epoch", -1), 2, 0, attributes]
    values += [batch.get("last_offset_delta", last), base_timestamp, batch.get("max_timestamp", latest)]
    values += [batch.get("producer_id", -1), batch.get("producer_epoch", -1), batch.get("base_sequence", -1)]
    values.append(batch.get("records_count", len(records)))
    try:
        wire = bytearray(HEADER.pack(*values) + payload)
    except struct.error as error:
        raise EncodeError(f"a record batch field is out of range: {error}") from error
    crc = batch["crc"] if keep_crc and "crc" in batch else crc32c()(bytes(wire[ATTRIBUTES_AT:]))
    wire[CRC_AT:ATTRIBUTES_AT] = crc.to_bytes(4, "big")
    return bytes(wire)


def _attributes(batch: dict[str, Any]) -> int:
    attributes = CODEC_NAMES.index(batch.get("compression", "none"))
    if batch.get("timestamp_type") == "log_append_time":
        attributes |= LOG_APPEND_TIME
    if batch.get("is_transactional"):
        attributes |= TRANSACTIONAL
    if batch.get("is_control"):
        attributes |= CONTROL
    return attributes


def _encode_record(record: dict[str, Any], base_offset: int, base_timestamp: int) -> bytes:
    parts = [
        b"\x00",
        write_varlong(wrapped(record.get("timestamp", base_timestamp) - base_timestamp)),
        write_varlong(wrapped(record.get("offset", base_offset) - base_offset)),
        _varint_bytes(record.get("key")),
        _varint_bytes(record.get("value")),
    ]
    headers = record.get("headers") or ()
    parts.append(write_varlong(len(headers)))
    for header in headers:
        key = header["key"]
        parts += (_varint_bytes(key.encode() if isinstance(key, str) else key), _varint_bytes(header["value"]))
    body = b"".join(parts)
    return write_varlong(len(body)) + body


def _varint_bytes(value: bytes | None) -> bytes:
    return b"\x01" if value is None else write_varlong(len(value)) + value
