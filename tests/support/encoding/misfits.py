"""Which value of a body does not fit its definition, looked for only after an encoder has failed."""

from __future__ import annotations

from typing import Any

from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.codec.field_layout import is_compact, is_records, is_string, may_be_null, single
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import FIXED, INTEGER_RANGES
from tests.support.encoding.primitives import writer_of

#: The longest string with an INT16 length.
MAX_INT16 = 2**15 - 1

#: A path and what is wrong there.
Misfit = tuple[str, str]


def misfit(message: MessageVersion, body: Any) -> Misfit | None:
    """The path of the first value that does not fit and the reason, or None when all do."""
    return _structure(message.fields, body, "")


def _structure(fields: tuple[WireField, ...], value: Any, path: str) -> Misfit | None:
    if not isinstance(value, dict):
        return path, f"is {type(value).__name__}, not a dict of fields"
    for field in fields:
        inner = f"{path}.{field.name}" if path else field.name
        if field.name in value:
            if found := _field(field, value[field.name], inner):
                return found
        elif field.tag is None:
            return inner, "is missing"
    return _unknown_tags(fields, value.get(UNKNOWN_TAGS) or {}, f"{path}.{UNKNOWN_TAGS}" if path else UNKNOWN_TAGS)


def _unknown_tags(fields: tuple[WireField, ...], unknown: Any, path: str) -> Misfit | None:
    if not isinstance(unknown, dict):
        return path, f"is {type(unknown).__name__}, not a dict by tag"
    known = {field.tag: field.name for field in fields if field.tag is not None}
    for tag, raw in unknown.items():
        if not str(tag).isdecimal() or int(tag) >= 1 << 32:
            return path, f"has {tag!r} for a tag"
        if int(tag) in known:
            return path, f"has tag {tag}, which is the field {known[int(tag)]}"
        if not isinstance(raw, bytes):
            return f"{path}[{tag}]", f"is {type(raw).__name__}, not bytes"
    return None


def _field(field: WireField, value: Any, path: str) -> Misfit | None:
    if field.array:
        return _array(field, value, path)
    if value is None:
        return None if may_be_null(field) else (path, "is null, which it may not be")
    if field.type == "STRUCT":
        return _structure(field.fields, value, path)
    reason = _fixed(field.type, value) if field.type in FIXED else _sized(field.type, value)
    return (path, reason) if reason else None


def _array(field: WireField, value: Any, path: str) -> Misfit | None:
    if value is None:
        return None if field.nullable else (path, "is null, which it may not be")
    if not isinstance(value, list | tuple):
        return path, f"is {type(value).__name__}, not a list"
    entry = single(field)
    for index, one in enumerate(value):
        if found := _field(entry, one, f"{path}[{index}]"):
            return found
    return None


def _fixed(wire_type: str, value: Any) -> str:
    if wire_type in INTEGER_RANGES:
        if not isinstance(value, int):
            return f"is {type(value).__name__}, not a whole number"
        low, high = INTEGER_RANGES[wire_type]
        return "" if low <= value <= high else f"is {value}, which does not fit {wire_type} ({low} to {high})"
    try:
        if write := writer_of(wire_type):
            write(value)
    except (ValueError, TypeError) as error:
        return f"does not fit {wire_type}: {error}"
    return ""


def _sized(wire_type: str, value: Any) -> str:
    if is_records(wire_type):
        return "" if isinstance(value, bytes | list) else f"is {type(value).__name__}, not bytes or a list of batches"
    if not is_string(wire_type):
        return "" if isinstance(value, bytes) else f"is {type(value).__name__}, not bytes"
    if not isinstance(value, str):
        return f"is {type(value).__name__}, not text"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "holds half a surrogate pair, which UTF-8 cannot"
    if not is_compact(wire_type) and size > MAX_INT16:
        return f"takes {size} bytes, more than {MAX_INT16}"
    return ""
