"""Random bodies for a definition, in the decoder's terms."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kwiresniff.codec.field_layout import default_value
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import INTEGER_RANGES

TEXTS = ("", "orders", "größe", "x" * 127, "y" * 300)
BLOBS = (b"", b"\xff\x00", bytes(range(150)))


def random_body(message: MessageVersion, rng: random.Random) -> dict[str, Any]:
    """A body with extremes, nulls, empty arrays and, in a flexible version, tagged fields known and unknown."""
    return _structure(message.fields, message.flexible, rng)


def usual_body(message: MessageVersion, rng: random.Random) -> dict[str, Any]:
    """One without what quick readers are not made for: error codes, tagged fields."""
    body: dict[str, Any] = _without(random_body(message, rng), message.fields)
    return body


def _without(value: Any, fields: tuple[WireField, ...]) -> Any:
    value.pop("_tagged_fields", None)
    for field in fields:
        if field.enum == "error_code":
            value[field.name] = [0] * len(value[field.name] or ()) if field.array else 0
        elif field.tag is not None:
            value[field.name] = default_value(field)
        elif field.type == "STRUCT" and value[field.name] is not None:
            for part in value[field.name] if field.array else [value[field.name]]:
                _without(part, field.fields)
    return value


def drawable_body(
    message: MessageVersion, rng: random.Random, code: Callable[[], int] = int, unknown: bool = False
) -> dict[str, Any]:
    """One without unknown tagged fields, for which trees are drawn from nodes; with ``unknown`` it may have some. Each
    error code is ``code()``.
    """
    body: dict[str, Any] = _drawable(random_body(message, rng), message.fields, code, unknown)
    return body


def _drawable(value: Any, fields: tuple[WireField, ...], code: Callable[[], int], unknown: bool) -> Any:
    if not unknown:
        value.pop("_tagged_fields", None)
    elif "_tagged_fields" in value:
        value["_tagged_fields"] = {5000: b"x y", 5001: b"", 70_000: b"\xff\x00"}
    for field in fields:
        if field.name.endswith("error_code"):
            value[field.name] = code()
        elif field.tag is not None and (field.type == "STRUCT" and not field.array and field.nullable):
            value[field.name] = default_value(field)
        elif field.type == "STRUCT" and value[field.name] is not None:
            for part in value[field.name] if field.array else [value[field.name]]:
                _drawable(part, field.fields, code, unknown)
    return value


def _structure(fields: tuple[WireField, ...], flexible: bool, rng: random.Random) -> dict[str, Any]:
    body = {field.name: _value(field, flexible, rng) for field in fields}
    if flexible and rng.random() < 0.2:
        body["_tagged_fields"] = {5000: rng.choice(BLOBS)}
    return body


def _value(field: WireField, flexible: bool, rng: random.Random) -> Any:
    if (field.nullable or "NULLABLE" in field.type) and rng.random() < 0.25:
        return None if field.nullable or not field.array else []
    if field.array:
        return [_single(field, flexible, rng) for _ in range(rng.choice((0, 1, 2)))]
    return _single(field, flexible, rng)


def _single(field: WireField, flexible: bool, rng: random.Random) -> Any:
    if field.type == "STRUCT":
        return _structure(field.fields, flexible, rng)
    if field.type in INTEGER_RANGES:
        low, high = INTEGER_RANGES[field.type]
        return rng.choice((0, low, high, rng.randint(low, high)))
    if field.type == "BOOLEAN":
        return rng.random() < 0.5
    if field.type == "FLOAT64":
        return rng.choice((0.0, -1.5, "NaN", "-Infinity"))
    if field.type == "UUID":
        return rng.choice(("AAAAAAAAAAAAAAAAAAAAAA", "ABEiM0RVZneImaq7zN3u_w"))
    if field.type.endswith("STRING"):
        return rng.choice(TEXTS)
    return [] if field.type.endswith("RECORDS") else rng.choice(BLOBS)
