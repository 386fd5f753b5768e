"""The compression codecs of record batches and message sets, with bounded output.

A codec is the low bits of the attributes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. Compressed bytes come from the
wire, so nothing here trusts a declared size or lets output grow past the limit it was given.

Sources: protocol guide ("Record Batch", "Message sets"), KIP-57 and KAFKA-3160 (LZ4 header checksum), KIP-110
(zstd), RFC 1952 (gzip), the snappy-java stream layout, the LZ4 frame and xxHash specifications.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from kwiresniff.base.batch_layout import CODEC_NAMES
from kwiresniff.codec.batch_libraries import cramjam
from kwiresniff.codec.record_limits import MAX_DECOMPRESSED_BYTES, RecordBudget
from kwiresniff.errors import DecodeError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

#: First guess at the output: a multiple of the input, and a floor that costs little to clear (about 2 µs).
_FIRST_GUESS_RATIO = 8
_FIRST_GUESS_BYTES = 64 * 1024
#: Growth of the guess when it was too small: few repeats, and never more than that beyond what is needed.
_GUESS_GROWTH = 8

#: Members of one gzip stream. Kafka's clients write one; the rest is copied once a member, so there is an end to it.
_MAX_GZIP_MEMBERS = 100

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_unpack_int = struct.Struct(">i").unpack_from


def codec_name(codec: int) -> str:
    """Kafka's name of the codec, ``unknown(n)`` for a number no release has used."""
    return CODEC_NAMES[codec] if 0 <= codec < len(CODEC_NAMES) else f"unknown({codec})"


def decompress(codec: int, data: bytes, limit: int = MAX_DECOMPRESSED_BYTES, *, repair_lz4: bool = False) -> bytes:
    """At most ``limit`` decompressed bytes; ``repair_lz4`` accepts the header checksum of clients before 0.10. Raises
    DecodeError (``unknown_codec``, ``bad_compressed_data``, ``decompressed_too_large``).
    """
    return _decompress(codec, data, _Output(limit), repair_lz4)


def decompress_within(budget: RecordBudget, codec: int, data: bytes, *, repair_lz4: bool = False) -> bytes:
    """The decompressed bytes, taken from the ``budget`` of their message; see ``decompress``."""
    found, too_large = decompress_front(budget, codec, data, repair_lz4=repair_lz4)
    if too_large is not None:
        raise too_large
    return found


def decompress_front(
    budget: RecordBudget, codec: int, data: bytes, *, repair_lz4: bool = False
) -> tuple[bytes, DecodeError | None]:
    """As many decompressed bytes as the ``budget`` has left, which they take, and the error for more, or None. Broken
    data takes what was made of it. Raises DecodeError for that, and when nothing is left.
    """
    output = _Output(budget.decompress_limit())
    is_last = output.limit == budget.decompressed_bytes
    try:
        return _decompress(codec, data, output, repair_lz4), None
    except DecodeError as error:
        if error.code != "decompressed_too_large":
            raise
        # Another one: this one's traceback would keep what was decompressed.
        return output.front, budget.too_many_bytes() if is_last else DecodeError(str(error), code=error.code)
    finally:
        budget.decompressed_bytes -= output.size


class _Output:
    """The output of a decompressor: its ``size`` so far, its ``limit``, and its ``front`` where it is longer."""

    __slots__ = ("front", "limit", "size")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.front = b""

    def too_large(self, front: bytes) -> DecodeError:
        """Reports that there are more bytes than the limit, ``front`` first."""
        self.size = self.limit
        self.front = front
        return DecodeError(f"decompresses to more than {self.limit:,} bytes", code="decompressed_too_large")


def _decompress(codec: int, data: bytes, output: _Output, repair_lz4: bool) -> bytes:
    try:
        if codec == GZIP:
            return _gunzip(data, output)
        if codec == SNAPPY:
            return _unsnappy(data, output)
        if codec == LZ4:
            return _into_buffer(cramjam().lz4, _with_correct_lz4_checksum(data) if repair_lz4 else data, output)
        if codec == ZSTD:
            return _into_buffer(cramjam().zstd, data, output)
    except (cramjam().DecompressionError, zlib.error, struct.error, ValueError) as error:
        raise DecodeError(
            f"the {codec_name(codec)} data cannot be decompressed: {error}", code="bad_compressed_data"
        ) from error
    raise DecodeError(f"compression codec {codec} is not known", code="unknown_codec")


def _first_guess(data: bytes, limit: int) -> int:
    """The bytes that ``data`` may well be decompressed to."""
    return min(limit, max(_FIRST_GUESS_BYTES, _FIRST_GUESS_RATIO * len(data)))


def _gunzip(data: bytes, output: _Output) -> bytes:
    """Every gzip member, as Java's reader takes them. zlib stops by itself at a size, and measures fastest."""
    parts: list[bytes] = []
    step = max(1, _first_guess(data, output.limit))  # zlib takes 0 for no limit
    for _ in range(_MAX_GZIP_MEMBERS):
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            room = output.limit - output.size
            most = min(step, room + 1)
            output.size += most  # so many bytes may have been made when it fails
            part = member.decompress(data, most)
            if len(part) > room:
                raise output.too_large(b"".join((*parts, part[:room])))
            output.size -= most - len(part)
            parts.append(part)
            data = member.unconsumed_tail
            if not member.eof and len(part) < most:
                raise ValueError("the stream ends too early")
            step *= _GUESS_GROWTH
        data = member.unused_data
        if not data:
            return b"".join(parts)
    raise ValueError(f"more than {_MAX_GZIP_MEMBERS} members")


def _into_buffer(library: Any, data: bytes, output: _Output) -> bytes:
    """Decompress into a buffer that grows only up to the limit: the library cannot write past its end."""
    if not data:
        raise ValueError("there are no bytes")
    output.size = _first_guess(data, output.limit)
    while True:
        buffer = bytearray(output.size)
        try:
            output.size = library.decompress_into(data, buffer)
        except cramjam().DecompressionError as error:
            if "write whole buffer" not in str(error):
                raise
            if output.size >= output.limit:
                raise output.too_large(bytes(buffer)) from error
            output.size = min(output.limit, output.size * _GUESS_GROWTH)
        else:
            return bytes(memoryview(buffer)[: output.size])


def _unsnappy(data: bytes, output: _Output) -> bytes:
    """Either snappy-java's stream of blocks, each led by its INT32 size, or one raw snappy block."""
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(data, output, [])
    if len(data) < len(_XERIAL_HEADER):
        raise ValueError("the stream ends inside its header")
    pos = 0
    blocks: list[bytes] = []
    while pos < len(data):
        if data.startswith(_XERIAL_MAGIC, pos):  # streams may be joined end to end
            pos += len(_XERIAL_HEADER)
            continue
        (size,) = _unpack_int(data, pos)  # struct.error when it is cut off
        pos += 4
        if size < 0 or pos + size > len(data):
            raise ValueError(f"a block of {size} bytes where {len(data) - pos} are left")
        blocks.append(_unsnappy_block(data[pos : pos + size], output, blocks))
        pos += size
    return b"".join(blocks)


def _unsnappy_block(data: bytes, output: _Output, before: list[bytes]) -> bytes:
    size = cramjam().snappy.decompress_raw_len(data)
    if size > output.limit - output.size:
        raise output.too_large(b"".join(before))
    output.size += size
    return bytes(cramjam().snappy.decompress_raw(data))


def _with_correct_lz4_checksum(data: bytes) -> bytes:
    """The LZ4 frame with the checksum of its specification: before Kafka 0.10 the magic was hashed, too."""
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
