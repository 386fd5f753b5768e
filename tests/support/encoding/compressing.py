"""Record data compressed and framed as Kafka's Java client does it."""

from __future__ import annotations

import struct

import cramjam

from kwiresniff.codec.compression import GZIP, LZ4, SNAPPY, ZSTD, _lz4_checksum

_XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
#: Block size snappy-java's stream cuts its input into.
_XERIAL_BLOCK_BYTES = 32 * 1024

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
#: Version 1, independent blocks; Kafka refuses dependent ones. Blocks of at most 64 KiB, Kafka's own choice.
_LZ4_FLAGS = b"\x60\x40"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 1 << 31


def compress(codec: int, data: bytes) -> bytes:
    """``data`` compressed and framed the way Kafka's Java client does."""
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data))
    if codec == SNAPPY:
        return _snappy(data)
    if codec == LZ4:
        return _lz4(data)
    assert codec == ZSTD
    return bytes(cramjam.zstd.compress(data))


def _snappy(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _lz4(data: bytes) -> bytes:
    parts = [_LZ4_MAGIC, _LZ4_FLAGS, _lz4_checksum(_LZ4_FLAGS)]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        raw = data[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(raw, store_size=False))
        if len(block) < len(raw):
            parts += (len(block).to_bytes(4, "little"), block)
        else:
            parts += ((len(raw) | _LZ4_STORED).to_bytes(4, "little"), raw)
    parts.append(bytes(4))
    return b"".join(parts)
