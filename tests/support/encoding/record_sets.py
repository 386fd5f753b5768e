"""Record sets of batch dicts, the reverse of ``kwiresniff.codec.records``: record batches, and messages before them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
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
from kwiresniff.codec.primitives import write_varlong
from kwiresniff.codec.record import wrapped
from kwiresniff.codec.record_batch import HEADER
from tests.support.encoding.compressing import compress


def encode_record_set(batches: Iterable[dict[str, Any]]) -> bytes:
    """The record set as bytes, from dicts as ``decode_record_set`` gives them in full mode.

    Uncompressed batches come back byte for byte, unless a broker has replaced their timestamps. Batches that were
    cut short have nothing to write and are left out.
    """
    whole = [batch for batch in batches if not batch.get("truncated")]
    return b"".join([(encode_batch if batch.get("magic", 2) == 2 else encode_message)(batch) for batch in whole])


def encode_batch(batch: dict[str, Any]) -> bytes:
    """The batch as bytes; lengths, counts and the CRC-32C are worked out.

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
    wire = bytearray(HEADER.pack(*values) + payload)
    crc = crc32c()(bytes(wire[ATTRIBUTES_AT:]))
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


def encode_message(message: dict[str, Any]) -> bytes:
    """The outer message as bytes; size and CRC are worked out.

    A compressed one is written as a compressed set around its records: in magic 1 the inner offsets count from 0
    and the outer offset is the last record's, as a broker stores them.
    """
    magic = message["magic"]
    records = message["records"]
    attributes = message.get("attributes")
    if attributes is None:
        attributes = CODEC_NAMES.index(message.get("compression", "none"))
        if message.get("timestamp_type") == "log_append_time":
            attributes |= LOG_APPEND_TIME
    offset = message.get("base_offset", records[-1]["offset"] if records else 0)
    timestamp = message.get("timestamp", records[0].get("timestamp", -1) if records else -1)
    codec = attributes & CODEC_MASK
    if not codec:
        (record,) = records
        return _message(offset, magic, attributes, timestamp, record.get("key"), record.get("value"))
    first = records[0]["offset"] if magic and records else 0
    inner = [
        _message(
            record["offset"] - first, magic, attributes & ~CODEC_MASK, record.get("timestamp", timestamp),
            record.get("key"), record.get("value"),
        )
        for record in records
    ]  # fmt: skip
    return _message(offset, magic, attributes, timestamp, None, compress(codec, b"".join(inner)))


def _message(offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body
