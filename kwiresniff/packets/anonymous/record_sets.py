"""Record sets without what is in their records, of the same length, with the same batches, counts and times.

Keys, values and headers are overwritten by zeros where they lie, but for the markers of transactions. A compressed
batch becomes one that is not: with the same number of records, their offsets and timestamps, neither keys nor values,
and zeros in the last one up to the length that it had. Where that is too short for so many records, zeros stand in the
place of the compressed bytes, and readers say that they cannot be decompressed. CRCs that were right are right; those
that were wrong are as wrong.

The layout is in ``kwiresniff.base.batch_layout`` and the protocol guide ("Record", "Message sets").
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import pack_into, unpack_from
from typing import Final, NamedTuple

from kwiresniff.base.batch_layout import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    CRC_AT,
    HEADER_BYTES,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    RECORDS_COUNT_AT,
)
from kwiresniff.codec.batch_libraries import crc32c
from kwiresniff.codec.compression import decompress
from kwiresniff.codec.primitives import write_varlong
from kwiresniff.errors import DecodeError

#: Bytes that a compressed batch may decompress to for its offsets and times to be read.
MAX_DECOMPRESSED_BYTES: Final = 16 << 20
#: Of a message of magic 0 or 1: its CRC, and where it begins to count.
_OLD_CRC_AT, _OLD_CRC_FROM, _OLD_ATTRIBUTES_AT = 12, 16, 17
_OLD_KEY_AT: Final = {0: 18, 1: 26}
_NULL_VALUES: Final = b"\x01\x01\x00"  # no key, no value, no headers
#: Bytes of an EndTxnMarker's value; other control records, which may name hosts, are longer.
_MARKER_BYTES: Final = 6
#: Bytes of the longest varint: 64 bits in groups of seven.
_MOST_VARINT: Final = 10
#: Bytes of a key that make up for those that no length of a value gives.
_MOST_KEY: Final = 8


class _Record(NamedTuple):
    """The kept parts of a record: its attributes, and the encoded deltas of time and offset."""

    attributes: int
    deltas: bytes


def without_content(data: bytes) -> bytes:
    """The record set ``data`` without the content of its records. What does not read as batches is zeros."""
    out = bytearray(len(data))
    at = 0
    while len(data) - at > MAGIC_AT:
        (length,) = unpack_from(">i", data, at + LENGTH_AT)
        end = at + LOG_OVERHEAD + length
        magic = data[at + MAGIC_AT]
        if length < 0 or end > len(data):  # a batch that is cut off
            whole = magic == 2 and len(data) - at >= HEADER_BYTES
            front = at + (HEADER_BYTES if whole else MAGIC_AT + 1)
            out[at:front] = data[at:front]
            break
        batch = data[at:end]
        if magic == 2 and len(batch) >= HEADER_BYTES:
            out[at:end] = _batch(batch)
        elif magic in _OLD_KEY_AT:
            out[at:end] = _old_message(batch, _OLD_KEY_AT[magic])
        else:
            break
        at = end
    return bytes(out)


def _batch(batch: bytes) -> bytes:
    out = bytearray(batch)
    attributes = int.from_bytes(batch[ATTRIBUTES_AT : ATTRIBUTES_AT + 2], "big")
    block = batch[HEADER_BYTES:]
    if attributes & CODEC_MASK:
        (count,) = unpack_from(">i", batch, RECORDS_COUNT_AT)
        plain = _uncompressed(attributes & CODEC_MASK, block, count)
        if plain is not None:
            pack_into(">H", out, ATTRIBUTES_AT, attributes & ~CODEC_MASK)
        out[HEADER_BYTES:] = bytes(len(block)) if plain is None else plain
    else:
        out[HEADER_BYTES:] = _blanked(block, kept=_MARKER_BYTES if attributes & CONTROL else 0)
    crc = crc32c()
    (stated,) = unpack_from(">I", batch, CRC_AT)
    wrong_by = stated ^ crc(bytes(batch[ATTRIBUTES_AT:]))
    pack_into(">I", out, CRC_AT, crc(bytes(out[ATTRIBUTES_AT:])) ^ wrong_by)
    return bytes(out)


def _blanked(block: bytes, *, kept: int) -> bytes:
    """Uncompressed records with zeros for keys, values and headers longer than ``kept``; zeros behind damage."""
    out = bytearray(len(block))
    at = 0
    try:
        while at < len(block):
            size, start = _varint(block, at)
            end = start + size
            if size <= 0 or end > len(block):
                break
            out[at:end] = _blank_record(block, at, start, end, kept)
            at = end
    except IndexError:
        pass
    return bytes(out)


def _blank_record(block: bytes, at: int, start: int, end: int, kept: int) -> bytes:
    """A record with its lengths, and zeros for what they are the lengths of. Raises IndexError."""
    out = bytearray(block[at:end])
    place = start + 1
    for _ in range(2):
        _, place = _varint(block, place)
    spans, place = _pair(block, place)
    headers, place = _varint(block, place)
    for _ in range(headers):
        more, place = _pair(block, place)
        spans += more
    if place > end:
        raise IndexError
    for first, last in spans:
        if last - first > kept:
            out[first - at : last - at] = bytes(last - first)
    out[place - at :] = bytes(end - place)
    return bytes(out)


def _pair(block: bytes, place: int) -> tuple[list[tuple[int, int]], int]:
    """The places of the two byte arrays of a record or header at ``place``, and their end."""
    spans = []
    for _ in range(2):
        size, place = _varint(block, place)
        size = max(size, 0)
        spans.append((place, place + size))
        place += size
    return spans, place


def _uncompressed(codec: int, block: bytes, count: int) -> bytes | None:
    """As many bytes of records that are not compressed, in the place of compressed ones; None where that cannot be."""
    if not 0 < count <= len(block):
        return None
    try:
        records = list(_deltas(decompress(codec, block, MAX_DECOMPRESSED_BYTES), count))
    except (DecodeError, IndexError):
        return None
    if len(records) != count:
        return None
    front = b"".join(_written(one, _NULL_VALUES) for one in records[:-1])
    room = len(block) - len(front)
    longer: bytes | None = None
    for key_bytes in range(-1, _MOST_KEY):
        key = write_varlong(key_bytes) + bytes(max(key_bytes, 0))
        for value_bytes in range(min(room, room - len(key) - 4), max(room - len(key) - 24, -2), -1):
            last = _written(records[-1], key + write_varlong(value_bytes) + bytes(max(value_bytes, 0)) + b"\0")
            if len(last) == room:
                return front + last
            if len(last) == room - 1:
                longer = longer or front + _with_longer_length(last)
    return longer


def _deltas(block: bytes, count: int) -> Iterator[_Record]:
    at = 0
    for _ in range(count):
        size, start = _varint(block, at)
        if size <= 0 or start + size > len(block):
            return
        end = start + 1
        for _ in range(2):
            _, end = _varint(block, end)
        yield _Record(block[start], block[start + 1 : end])
        at = start + size


def _with_longer_length(record: bytes) -> bytes:
    """A record with a byte more in its length, which says the same."""
    _, start = _varint(record, 0)
    return record[: start - 1] + bytes((record[start - 1] | 0x80, 0)) + record[start:]


def _written(record: _Record, rest: bytes) -> bytes:
    body = bytes((record.attributes,)) + record.deltas + rest
    return write_varlong(len(body)) + body


def _old_message(message: bytes, key_at: int) -> bytes:
    """A message of magic 0 or 1 with zeros for key and value; one that holds others, compressed, becomes one alone."""
    out = bytearray(message)
    out[_OLD_ATTRIBUTES_AT] &= ~CODEC_MASK & 0xFF
    place = key_at
    for _ in range(2):
        if place + 4 > len(message):
            break
        (size,) = unpack_from(">i", message, place)
        end = min(place + 4 + max(size, 0), len(message))
        out[place + 4 : end] = bytes(end - place - 4)
        place = end
    out[place:] = bytes(len(message) - place)
    (stated,) = unpack_from(">I", message, _OLD_CRC_AT)
    wrong_by = stated ^ zlib.crc32(message[_OLD_CRC_FROM:])
    pack_into(">I", out, _OLD_CRC_AT, zlib.crc32(out[_OLD_CRC_FROM:]) ^ wrong_by)
    return bytes(out)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint of at most 64 bits, and where it ends. Raises IndexError."""
    number = 0
    for shift in range(0, 7 * _MOST_VARINT, 7):
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return number >> 1 ^ -(number & 1), at
    raise IndexError
