"""Single values to bytes, the reverse of ``kwiresniff.codec.primitives``."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from binascii import Error as Base64Error

from kwiresniff.codec.primitives import uuid_text
from kwiresniff.schema.wire_types import FIXED


def write_uvarint(value: int) -> bytes:
    """UNSIGNED_VARINT in the fewest bytes; ``value`` is 0 to 2**32 - 1, anything else raises ValueError."""
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} does not fit an UNSIGNED_VARINT")
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of Kafka's text form; raises ValueError for anything else."""
    try:
        raw = urlsafe_b64decode(f"{text}==")
    except (Base64Error, ValueError) as error:
        raise ValueError(f"{text!r} is not a UUID in Kafka's base64 form") from error
    if len(raw) != FIXED["UUID"].size or uuid_text(raw) != text:
        raise ValueError(f"{text!r} is not a UUID in Kafka's base64 form")
    return raw
