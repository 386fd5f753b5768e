"""The compression codecs of record batches and message sets, with bounded output.

A codec is the low bits of the attributes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. Compressed bytes come from the
wire, so nothing here trusts a declared size or lets output grow past the limit it was given.

Sources: protocol guide ("Record Batch", "Message sets"), KIP-57 and KAFKA-3160 (LZ4 header checksum), KIP-110
(zstd), RFC 1952 (gzip), the snappy-java stream layout, the LZ4 frame and xxHash specifications.
"""

from __future__ import annotations

import struct
import zlib

from kwiresniff.base.batch_layout import CODEC_NAMES
from kwiresniff.base.light_typing import Any
from kwiresniff.codec.batch_libraries import cramjam
from kwiresniff.codec.record_limits import MAX_DECOMPRESSED_BYTES
from kwiresniff.errors import DecodeError, EncodeError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

#: First guess at the output, as a multiple of the input and as a floor: covers text and JSON at once, and clearing
#: the buffer (about 2 µs) stays small beside the decompression itself.
_FIRST_GUESS_RATIO = 8
_FIRST_GUESS_BYTES = 64 * 1024
#: Growth of the guess when it was too small: few repeats, and never more than that beyond what is needed.
_GUESS_GROWTH = 8

#: Members of one gzip stream. Kafka's clients write one; the rest is copied once a member, so there is an end to it.
_MAX_GZIP_MEMBERS = 100

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
#: Block size snappy-java's stream cuts its input into.
_XERIAL_BLOCK_BYTES = 32 * 1024

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
#: Version 1, independent blocks; Kafka refuses dependent ones. Blocks of at most 64 KiB, Kafka's own choice.
_LZ4_FLAGS = b"\x60\x40"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 1 << 31

_unpack_int = struct.Struct(">i").unpack_from


def codec_name(codec: int) -> str:
    """Kafka's name of the codec, ``unknown(n)`` for a number no release has used."""
    return CODEC_NAMES[codec] if 0 <= codec < len(CODEC_NAMES) else f"unknown({codec})"


def decompress(codec: int, data: bytes, limit: int = MAX_DECOMPRESSED_BYTES, *, repair_lz4: bool = False) -> bytes:
    """The decompressed bytes, at most ``limit`` of them. ``codec`` is the number in a batch's attributes.

    ``repair_lz4`` accepts the wrong LZ4 header checksum that clients before 0.10 put into message sets. Raises
    DecodeError with code ``unknown_codec``, ``bad_compressed_data`` or ``decompressed_too_large``.
    """
    try:
        if codec == GZIP:
            return _gunzip(data, limit)
        if codec == SNAPPY:
            return _unsnappy(data, limit)
        if codec == LZ4:
            return _into_buffer(cramjam().lz4, _with_correct_lz4_checksum(data) if repair_lz4 else data, limit)
        if codec == ZSTD:
            return _into_buffer(cramjam().zstd, data, limit)
    except (cramjam().DecompressionError, zlib.error, struct.error, ValueError) as error:
        raise DecodeError(
            f"the {codec_name(codec)} data cannot be decompressed: {error}", code="bad_compressed_data"
        ) from error
    raise DecodeError(f"compression codec {codec} is not known", code="unknown_codec")


def compress(codec: int, data: bytes) -> bytes:
    """``data`` compressed and framed the way Kafka's Java client does. Raises EncodeError for an unknown codec."""
    if codec == GZIP:
        return bytes(cramjam().gzip.compress(data))
    if codec == SNAPPY:
        return _snappy(data)
    if codec == LZ4:
        return _lz4(data)
    if codec == ZSTD:
        return bytes(cramjam().zstd.compress(data))
    raise EncodeError(f"compression codec {codec} is not known")


def _too_large(limit: int) -> DecodeError:
    return DecodeError(f"decompresses to more than {limit:,} bytes", code="decompressed_too_large")


def _gunzip(data: bytes, limit: int) -> bytes:
    """Every gzip member, as Java's reader takes them. zlib stops by itself at a size, and measures fastest."""
    out = b""
    for _ in range(_MAX_GZIP_MEMBERS):
        member = zlib.decompressobj(wbits=31)
        out += member.decompress(data, limit + 1 - len(out))
        if len(out) > limit:
            raise _too_large(limit)
        if not member.eof:
            raise ValueError("the stream ends too early")
        data = member.unused_data
        if not data:
            return out
    raise ValueError(f"more than {_MAX_GZIP_MEMBERS} members")


def _into_buffer(library: Any, data: bytes, limit: int) -> bytes:
    """Decompress into a buffer that grows only up to the limit: the library cannot write past its end."""
    if not data:
        raise ValueError("there are no bytes")
    size = min(limit, max(_FIRST_GUESS_BYTES, _FIRST_GUESS_RATIO * len(data)))
    while True:
        buffer = bytearray(size)
        try:
            length = library.decompress_into(data, buffer)
        except cramjam().DecompressionError as error:
            if "write whole buffer" not in str(error):
                raise
            if size >= limit:
                raise _too_large(limit) from error
            size = min(limit, size * _GUESS_GROWTH)
        else:
            return bytes(memoryview(buffer)[:length])


def _unsnappy(data: bytes, limit: int) -> bytes:
    """Either snappy-java's stream of blocks, each led by its INT32 size, or one raw snappy block."""
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(data, limit)
    if len(data) < len(_XERIAL_HEADER):
        raise ValueError("the stream ends inside its header")
    pos = 0
    room = limit
    blocks: list[bytes] = []
    while pos < len(data):
        if data.startswith(_XERIAL_MAGIC, pos):  # streams may be joined end to end
            pos += len(_XERIAL_HEADER)
            continue
        (size,) = _unpack_int(data, pos)  # struct.error when it is cut off
        pos += 4
        if size < 0 or pos + size > len(data):
            raise ValueError(f"a block of {size} bytes where {len(data) - pos} are left")
        block = _unsnappy_block(data[pos : pos + size], room)
        room -= len(block)
        blocks.append(block)
        pos += size
    return b"".join(blocks)


def _unsnappy_block(data: bytes, limit: int) -> bytes:
    if cramjam().snappy.decompress_raw_len(data) > limit:
        raise _too_large(limit)
    return bytes(cramjam().snappy.decompress_raw(data))


def _snappy(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam().snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _lz4(data: bytes) -> bytes:
    parts = [_LZ4_MAGIC, _LZ4_FLAGS, _lz4_checksum(_LZ4_FLAGS)]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        raw = data[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam().lz4.compress_block(raw, store_size=False))
        if len(block) < len(raw):
            parts += (len(block).to_bytes(4, "little"), block)
        else:
            parts += ((len(raw) | _LZ4_STORED).to_bytes(4, "little"), raw)
    parts.append(bytes(4))
    return b"".join(parts)


def _with_correct_lz4_checksum(data: bytes) -> bytes:
    """The frame with the header checksum that the LZ4 specification wants.

    Kafka before 0.10 hashed the frame's magic too, and its readers of magic 0 still ignore the checksum.
    """
    if len(data) < 7 or not data.startswith(_LZ4_MAGIC):
        return data
    flags = data[4]
    end = 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)  # content size and dictionary id
    return data[:end] + _lz4_checksum(data[4:end]) + data[end + 1 :]


_PRIME_1, _PRIME_2, _PRIME_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_PRIME_4, _PRIME_5 = 0x27D4EB2F, 0x165667B1
_U32 = 0xFFFFFFFF


def _lz4_checksum(descriptor: bytes) -> bytes:
    """The second byte of the frame descriptor's xxHash-32 (seed 0); descriptors are shorter than 16 bytes."""
    digest = (_PRIME_5 + len(descriptor)) & _U32
    words = len(descriptor) // 4 * 4
    for pos in range(0, words, 4):
        digest = (digest + int.from_bytes(descriptor[pos : pos + 4], "little") * _PRIME_3) & _U32
        digest = _rotated(digest, 17) * _PRIME_4 & _U32
    for byte in descriptor[words:]:
        digest = (digest + byte * _PRIME_5) & _U32
        digest = _rotated(digest, 11) * _PRIME_1 & _U32
    digest = (digest ^ digest >> 15) * _PRIME_2 & _U32
    digest = (digest ^ digest >> 13) * _PRIME_3 & _U32
    digest ^= digest >> 16
    return bytes([digest >> 8 & 0xFF])


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _U32
