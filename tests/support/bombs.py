"""Record sets of which few bytes become many: each kind with what the wire allows, and honest ones beside them."""

from __future__ import annotations

import gzip
import zlib
from struct import pack
from typing import Any

import cramjam

from kwiresniff.codec.batch_libraries import crc32c
from kwiresniff.codec.compression import GZIP, LZ4, SNAPPY, ZSTD
from kwiresniff.codec.primitives import write_varlong
from tests.support.conversation import Wire, request, response, string
from tests.support.encoding import compress, encode_batch

#: The shortest record: length, attributes, two deltas, null key and value, no headers.
LEAST = b"\x0c\0\0\0\1\1\0"


def batch(codec: int, compressed: bytes, count: int) -> bytes:
    """A batch of magic 2, its CRC right, that says it has ``count`` records."""
    rest = pack(">hiqqqhii", codec, 0, 0, 0, -1, -1, -1, count) + compressed
    return pack(">qiibI", 0, 9 + len(rest), 0, 2, crc32c()(rest)) + rest


def packed(codec: int, raw: bytes) -> bytes:
    """``raw`` as densely as the codec can."""
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(raw, 19))
    return gzip.compress(raw, 9) if codec == GZIP else compress(codec, raw)


def record(value: bytes = b"", headers: int = 0) -> bytes:
    """A record with a value and so many headers, each of an empty key and a null value."""
    rest = b"\0\0\0\1" + write_varlong(len(value)) + value + write_varlong(headers) + b"\0\1" * headers
    return write_varlong(len(rest)) + rest


def message_set(codec: int, inner: bytes) -> bytes:
    """A message of magic 1 around a compressed set."""
    value = compress(codec, inner)
    rest = pack(">bbqii", 1, codec, 0, -1, len(value)) + value
    return pack(">qiI", 0, 4 + len(rest), zlib.crc32(rest)) + rest


def message(value: bytes = b"") -> bytes:
    """A message of magic 1."""
    rest = pack(">bbqii", 1, 0, 0, -1, len(value)) + value
    return pack(">qiI", 0, 4 + len(rest), zlib.crc32(rest)) + rest


def lines(count: int) -> bytes:
    """The records of a log in which much comes again, as an honest producer writes them: a batch of magic 2."""
    records: list[dict[str, Any]] = [
        {
            "offset": index,
            "timestamp": 1_700_000_000_000 + index // 4,
            "key": None,
            "value": b"2026-01-02T03:%02d:%02d.%03dZ ERROR [exec-%d] com.example.billing.OrderController - connection "
            b"refused to db-primary.internal:5432; retrying with backoff; the pool has 0 of 20 connections left for "
            b"tenant acme; org.postgresql.util.PSQLException: Connection refused"
            % (index // 3600 % 60, index // 60 % 60, index * 7 % 1000, index % 8),
            "headers": [],
        }
        for index in range(count)
    ]
    return encode_batch({"base_offset": 0, "base_timestamp": 1_700_000_000_000, "attributes": 0, "records": records})


def bombs() -> dict[str, bytes]:
    """Record sets by what makes them large."""
    million = 1 << 20
    small = batch(ZSTD, packed(ZSTD, LEAST * (4 * million // 7)), 4 * million // 7)
    skippable = pack("<II", 0x184D2A50, 0)
    bad = compress(ZSTD, LEAST * 9_000)
    return {
        "zstd, shortest records": small,
        "zstd, many batches": small * 40,
        "zstd, one large record": batch(ZSTD, packed(ZSTD, record(bytes(8 * million))), 1),
        "zstd, headers": batch(ZSTD, packed(ZSTD, record(b"", million)), 1) * 4,
        "zstd, headers of many records": batch(ZSTD, packed(ZSTD, record(b"", 60) * 40_000), 40_000) * 4,
        "zstd, skippable frames": batch(ZSTD, skippable * 4_000 + compress(ZSTD, LEAST), 1),
        "zstd, ends that are damaged": batch(ZSTD, bad[:-1], 9_000) * 100,
        "zstd, a count that lies": batch(ZSTD, packed(ZSTD, LEAST * 100), 0x7FFFFFFF) * 20,
        "gzip, shortest records": batch(GZIP, packed(GZIP, LEAST * (million // 7)), million // 7) * 4,
        "gzip, many members": batch(GZIP, gzip.compress(b"") * 99 + gzip.compress(LEAST), 1) * 10,
        "lz4, shortest records": batch(LZ4, packed(LZ4, LEAST * (million // 7)), million // 7) * 4,
        "snappy, shortest records": batch(SNAPPY, packed(SNAPPY, LEAST * (million // 7)), million // 7),
        "message sets in each other": message_set(GZIP, message_set(GZIP, message() * 20_000) * 200),
        "message set": message_set(GZIP, message() * 100_000) * 4,
    }


def wire_of(records: bytes) -> Wire:
    """Produce v3 of one partition with these records, then a heartbeat that tells that all went on."""
    body = pack(">hhii", -1, 1, 1000, 1) + string("t") + pack(">iii", 1, 0, len(records)) + records
    answer = pack(">i", 1) + string("t") + pack(">iihqqi", 1, 0, 0, 0, -1, 0)
    sent = request(0, 3, 2, body)
    wire = Wire().open().up(request(18, 0, 1)).down(response(1, pack(">hi", 0, 1) + pack(">hhh", 18, 0, 3)))
    for at in range(0, len(sent), 60_000):
        wire.up(sent[at : at + 60_000])
    return wire.down(response(2, answer)).close()
