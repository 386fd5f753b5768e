"""Conversations in every API whose texts are odd, whose bodies have tagged fields that nobody knows, and which may be
damaged besides."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from kwiresniff import schema
from kwiresniff.model import Direction
from kwiresniff.schema.types import WireField
from kwiresniff.schema.wire_types import INTEGER_RANGES
from tests.support.conversation import Wire, exchange_frames, known_wire
from tests.support.encoding import encoder

#: Stands in a body for an odd text, of as many bytes.
MARK = "QZQZQZQZ"
#: No UTF-8; a terminal's escape sequence; a right-to-left override; the end of a script; C1; surrogates; zeros.
ODD = (
    b"\xff\xfe\xff\xfe\xff\xfe\xff\xfe", b"\x1b[31m\x1b]0", "\u202e\u2066ab".encode(), b"</script", b"\xc2\x9b31m\r\na",
    b"\xed\xa0\x80\xed\xb0\x80ab", bytes(8),
)  # fmt: skip


#: Error codes that fields have: mostly none, or REBALANCE_IN_PROGRESS.
ERRORS = (0, 0, 0, 27)


def value(field: WireField, rng: Random, errors: tuple[int, ...]) -> Any:
    if not field.array:
        return single(field, rng, errors)
    return [single(field, rng, errors) for _ in range(rng.choice((1, 1, 2)))]


def single(field: WireField, rng: Random, errors: tuple[int, ...]) -> Any:
    if field.type == "STRUCT":
        return structure(field.fields, rng, errors)
    if field.type in INTEGER_RANGES:
        low, high = INTEGER_RANGES[field.type]
        return rng.choice(errors) if field.enum == "error_code" else rng.choice((0, 1, 2, low, high))
    if field.type.endswith("STRING"):
        return rng.choice((MARK, MARK, MARK, "orders"))
    if field.type == "UUID":
        return rng.choice(("A" * 22, "ABEiM0RVZneImaq7zN3u_w"))
    return {"BOOLEAN": True, "FLOAT64": 1.5}.get(field.type, [] if field.type.endswith("RECORDS") else MARK.encode())


def structure(fields: tuple[WireField, ...], rng: Random, errors: tuple[int, ...]) -> dict[str, Any]:
    return {field.name: value(field, rng, errors) for field in fields}


def body(api_key: int, version: int, direction: Direction, rng: Random, errors: tuple[int, ...] = ERRORS) -> bytes:
    """A body as bytes, with a tagged field of its own where there may be one."""
    message = schema.message(api_key, version, direction)
    made = structure(message.fields, rng, errors)
    if message.flexible:
        made["_tagged_fields"] = {5000: MARK.encode()}
    return encoder(api_key, version, direction)(made)


def damaged(data: bytes, rng: Random) -> bytes:
    """Cut off, longer, or with other bytes in it."""
    kind = rng.randrange(4)
    if not data or not kind:
        return data[: rng.randrange(len(data) + 1)]
    if kind == 1:
        return data + rng.randbytes(rng.randint(1, 9))
    changed = bytearray(data)
    for _ in range(kind - 1):
        changed[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    return bytes(changed)


def exchange(
    api_key: int, version: int, correlation_id: int, rng: Random, *, damage: bool, errors: tuple[int, ...] = ERRORS
) -> tuple[bytes, bytes]:
    """A request and its response as frames."""
    odd = rng.choice(ODD)
    asked, answered = (body(api_key, version, direction, rng, errors) for direction in ("request", "response"))
    asked, answered = asked.replace(MARK.encode(), odd), answered.replace(MARK.encode(), odd)
    if damage:
        asked, answered = damaged(asked, rng), damaged(answered, rng)
    first, second = exchange_frames(api_key, version, correlation_id, asked, answered, MARK)
    return first.replace(MARK.encode(), odd), second


def conversations(seed: str, *, damage: bool = False) -> Iterator[Wire]:
    """One of each API, with all its versions."""
    rng = Random(seed)
    for number, api in enumerate(schema.apis()):
        low, high = schema.version_range(api.key)
        wire = known_wire(20_000 + number)
        for version in range(low, high + 1):
            asked, answered = exchange(api.key, version, 10 + version, rng, damage=damage)
            wire.up(asked).down(answered)
        yield wire.close()


def refusals(seed: str, code: int) -> Wire:
    """A conversation of one exchange in each API, in which every error field of the response has this code."""
    rng = Random(seed)
    wire = known_wire()
    for correlation_id, api in enumerate(schema.apis(), 10):
        version = rng.randint(*schema.version_range(api.key))
        asked, answered = exchange(api.key, version, correlation_id, rng, damage=False, errors=(code,))
        wire.up(asked).down(answered)
    return wire.close()
