"""Messages written from values by their definitions: the decoders' inverse.

They take what the decoder gives: ``decode(encode(body)) == body``, and for canonical bytes (shortest varints,
ascending tags, no tagged field that equals its default) ``encode(decode(raw)) == raw``. A tagged field that equals its
default, or is missing, is not written. ``tests/oracle`` holds them to the bytes of Kafka's own classes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from struct import pack
from typing import Any

from kwiresniff import schema
from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.codec.field_layout import (
    NULLABLE_STRUCT_MARK,
    default_value,
    is_records,
    length_prefix,
    null_mark,
    regular,
    single,
    tagged,
)
from kwiresniff.model import Body, Direction
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import FIXED
from tests.support.encoding.primitives import uuid_bytes, write_uvarint
from tests.support.encoding.record_sets import encode_record_set

#: ``raw = encode(body)``
Encoder = Callable[[Body], bytes]


@cache
def encoder(api_key: int, version: int, direction: Direction) -> Encoder:
    """``raw = encode(body)`` for one message, without its header."""
    return partial(encode, schema.message(api_key, version, direction))


@cache
def data_encoder(name: str, version: int) -> Encoder:
    """The encoder of a message that is carried in bytes fields or stored in a log."""
    return partial(encode, schema.data_message(name, version))


def encode(message: MessageVersion, body: Body) -> bytes:
    """The bytes of a message body."""
    return _structure(message.fields, body, message.flexible)


def _structure(fields: tuple[WireField, ...], body: Body, flexible: bool) -> bytes:
    parts = [_value(field, body[field.name], flexible) for field in regular(fields)]
    return b"".join(parts) + (_tag_section(fields, body) if flexible else b"")


def _tag_section(fields: tuple[WireField, ...], body: Body) -> bytes:
    values = {int(tag): raw for tag, raw in (body.get(UNKNOWN_TAGS) or {}).items()}
    for field in tagged(fields):
        default = default_value(field)
        value = body.get(field.name, default)
        if value != default:
            values[int(field.tag or 0)] = _value(field, value, True)
    parts = [write_uvarint(tag) + write_uvarint(len(raw)) + raw for tag, raw in sorted(values.items())]
    return write_uvarint(len(parts)) + b"".join(parts)


def _value(field: WireField, value: Any, flexible: bool) -> bytes:
    if field.array:
        entry = single(field)
        entries = b"".join([_value(entry, one, flexible) for one in value or ()])
        return _length(field, value, flexible) + entries
    if field.type == "STRUCT":
        mark = b"" if not field.nullable else pack(NULLABLE_STRUCT_MARK.code, null_mark(field) if value is None else 1)
        return mark + (b"" if value is None and field.nullable else _structure(field.fields, value, flexible))
    if fixed := FIXED.get(field.type):
        return pack(f">{fixed.code}", _as_packed(field.type, value))
    if isinstance(value, str):
        value = value.encode()
    elif is_records(field.type) and isinstance(value, list):
        value = encode_record_set(value)
    return _length(field, value, flexible) + (value or b"")


def _as_packed(wire_type: str, value: Any) -> Any:
    if wire_type == "UUID":
        return uuid_bytes(value)
    return float(value) if wire_type == "FLOAT64" else value


def _length(field: WireField, value: Any, flexible: bool) -> bytes:
    """The length or count before a value; -1 stands for null."""
    length = -1 if value is None else len(value)
    prefix = length_prefix(field, flexible)
    return write_uvarint(length + 1) if prefix is None else pack(f">{prefix.code}", length)
