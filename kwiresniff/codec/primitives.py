"""Single values on the wire: varints, UUIDs, floats, tag sections. Big-endian throughout.

Readers take ``(buffer, position)`` and return ``(value, position after it)``; they raise DecodeError and never
read past the buffer. Sources: the protocol guide's "Protocol Primitive Types" and, for UNSIGNED_VARINT, the
compact types and tagged fields, KIP-482. VARINT and VARLONG are zigzag-encoded as in Protocol Buffers.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable
from functools import lru_cache
from math import isfinite
from typing import Any

from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.codec.decode_errors import bad_count, bad_varint, truncated
from kwiresniff.codec.field_layout import MAX_TAGS
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.schema.wire_types import BY_GUIDE

#: A 32-bit value needs five groups of seven bits.
MAX_VARINT_BYTES = 5

#: Distinct topic, member and directory ids kept as text; a large cluster has some ten thousand topics.
UUID_CACHE_SIZE = 16_384


def read_uvarint(buffer: bytes, position: int) -> tuple[int, int]:
    """An UNSIGNED_VARINT of at most five bytes and 32 bits, least significant group first. Raises DecodeError."""
    value = shift = 0
    for _ in range(MAX_VARINT_BYTES):
        if position >= len(buffer):
            raise truncated()
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 32:
                raise bad_varint()
            return value, position
        shift += 7
    raise bad_varint()


def write_varlong(value: int) -> bytes:
    """``value`` as a VARLONG, and so as a VARINT, in the fewest bytes; raises ValueError for more than 64 bits."""
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} does not fit a VARLONG")
    value = (value << 1) ^ (value >> 63)
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


#: From the letters of base64 to those that may stand in an address.
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


@lru_cache(UUID_CACHE_SIZE)
def uuid_text(raw: bytes) -> str:
    """16 bytes (most significant first) as Kafka prints them: URL-safe base64 without padding, 22 characters."""
    return b2a_base64(raw)[:22].translate(_URL_SAFE).decode()


def float_value(value: float) -> float | str:
    """A FLOAT64 ``value`` as JSON can hold it: NaN and the infinities as text."""
    if isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


#: What makes a value of what ``struct`` gives, by the names that ``wire_types`` has for them.
READERS: dict[str, Callable[[Any], Any]] = {"uuid_text": uuid_text, "float_value": float_value}


def reader_of(wire_type: str) -> Callable[[Any], Any] | None:
    """The function that makes a fixed-size value of what ``struct`` gives, None for none. Raises SchemaError."""
    name = BY_GUIDE[wire_type].reader
    if not name:
        return None
    if name not in READERS:
        raise SchemaError(f"{wire_type} cannot be read: there is no {name}")
    return READERS[name]


def check_tag_count(count: int, remaining: int, path: str) -> None:
    """Raises DecodeError for more tagged fields than the ``remaining`` bytes can hold, or than anybody would define."""
    if failure := too_many_tags(count, remaining, path):
        raise failure


def too_many_tags(count: int, remaining: int, path: str) -> DecodeError | None:
    """The error of such a count; None for a possible one."""
    return bad_count(count, remaining, path) if count * 2 > remaining or count > MAX_TAGS else None


def read_tags(buffer: bytes, position: int, first: int) -> tuple[dict[int, bytes], int]:
    """The raw fields, by tag, of a tag section with the count byte ``first`` before ``position``, and its end."""
    count, position = read_uvarint(buffer, position - 1) if first > 0x7F else (first, position)
    check_tag_count(count, len(buffer) - position, UNKNOWN_TAGS)
    fields: dict[int, bytes] = {}
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        if size > len(buffer) - position:
            raise truncated(UNKNOWN_TAGS, size - (len(buffer) - position))
        fields[tag] = buffer[position : position + size]
        position += size
    return fields, position


def skip_tags(buffer: bytes, position: int, first: int) -> int:
    """The position behind a tag section with the count byte ``first`` before ``position``. Raises DecodeError."""
    return read_tags(buffer, position, first)[1]
