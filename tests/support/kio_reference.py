"""kio as an independent oracle: random instances of its entities, and what they should decode to.

kio is another Python implementation whose classes were generated from Kafka's definitions by other people. Its
field names differ a little (no ``_ms``), so values are compared by position: regular fields in wire order, then
tagged fields by tag. Durations and times are compared in milliseconds.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import io
import random
import types
import typing
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
ERRORS = tuple(ErrorCode)
RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
}


#: Byte strings to choose from, each of another size.
BLOBS = {len(blob): blob for blob in (b"", b"\x00\xff\x80", bytes(range(200)))}


@dataclasses.dataclass(frozen=True)
class Slot:
    """One field of a kio entity: ``kind`` is kio's name for the type, or ``entity`` with the class in ``entity``."""

    name: str
    kind: str
    array: bool
    nullable: bool
    tag: int | None
    optional: bool
    entity: Any = None


@lru_cache(None)
def slots(entity: type) -> tuple[Slot, ...]:
    """The fields of an entity in wire order, tagged ones last by tag."""
    hints = typing.get_type_hints(entity)
    found = [_slot(field, hints[field.name]) for field in dataclasses.fields(entity)]
    return tuple(sorted(found, key=lambda slot: -1 if slot.tag is None else slot.tag))


def _slot(field: Any, hint: Any) -> Slot:
    hint, nullable = _without_none(hint)
    array = typing.get_origin(hint) is tuple
    if array:
        hint, _ = _without_none(typing.get_args(hint)[0])
    kind = field.metadata.get("kafka_type", "entity")
    optional = field.default is not dataclasses.MISSING
    entity = hint if kind == "entity" else None
    return Slot(field.name, kind, array, nullable, field.metadata.get("tag"), optional, entity)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint, False
    (left,) = (part for part in typing.get_args(hint) if part is not types.NoneType)
    return left, True


#: What kio can read.
NAMES = tuple(sorted(schema_name_map))
#: Its classes for these, in all versions.
CLASSES = sum(len(kinds) for versions in schema_name_map.values() for kinds in versions.values())


def entities(name: str) -> Iterator[tuple[int, str, type]]:
    """``(version, kind, class)`` of what goes by a name; kind is request, response, header or data."""
    for version, by_kind in schema_name_map[name].items():
        for kind, path in by_kind.items():
            module, _, class_name = path.partition(":")
            yield version, kind.name, getattr(import_module(module), class_name)


def instance(entity: type, rng: random.Random) -> Any:
    """A random instance; extremes, nulls, empty and non-ASCII text all turn up."""
    chosen = [slot for slot in slots(entity) if slot.tag is None or not slot.optional or rng.random() < 0.6]
    return entity(**{slot.name: _value(slot, rng) for slot in chosen})


def _value(slot: Slot, rng: random.Random) -> Any:
    if slot.nullable and slot.kind not in ("uuid", "datetime_i64") and rng.random() < 0.25:
        return None
    if slot.array:
        return tuple(_single(slot, rng) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    return _single(slot, rng)


def _single(slot: Slot, rng: random.Random) -> Any:
    kind = slot.kind
    if kind == "entity":
        return instance(slot.entity, rng)
    if kind in RANGES:
        low, high = RANGES[kind]
        return rng.choice((0, 1, low, high, -1 if low else 1, rng.randint(low, high)))
    if kind == "string":
        return rng.choice(("", "orders", "größe-µ-日本", "x" * 126, "y" * 127, "z" * 300))
    if kind in ("bytes", "records"):
        return rng.choice(list(BLOBS.values()))
    others: dict[str, Callable[[], Any]] = {
        "bool": lambda: rng.random() < 0.5,
        "error_code": lambda: rng.choice(ERRORS),
        "float64": lambda: rng.choice((0.0, -1.5, 1e300)),
        "uuid": lambda: uuid.UUID(int=rng.getrandbits(128)),
        "timedelta_i32": lambda: datetime.timedelta(milliseconds=rng.choice((0, 1, 30_000, 2**31 - 1))),
        "timedelta_i64": lambda: datetime.timedelta(milliseconds=rng.choice((0, 1, 30_000, 10**12))),
        "datetime_i64": lambda: EPOCH + datetime.timedelta(milliseconds=rng.randrange(2 * 10**12)),
    }
    return others[kind]()


def encoded(value: Any) -> bytes:
    """The bytes kio writes for an instance."""
    buffer = io.BytesIO()
    entity_writer(type(value))(buffer, value)
    return buffer.getvalue()


def decoded(entity: Any, raw: bytes) -> Any:
    """What kio reads from bytes."""
    value, size = entity_reader(entity)(raw, 0)
    assert size == len(raw)
    return value


def expected(value: Any) -> Any:
    """An instance as nested lists of plain values, fields in wire order; of record sets only the size."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [_plain(slot, getattr(value, slot.name)) for slot in slots(type(value))]
    raise TypeError(type(value))


def _plain(slot: Slot, value: Any) -> Any:
    if value is None:
        return None if slot.array else {"uuid": "A" * 22, "datetime_i64": -1}.get(slot.kind)
    if slot.array:
        return [_plain(dataclasses.replace(slot, array=False), one) for one in value]
    if slot.kind == "entity":
        return expected(value)
    if slot.kind == "records":
        return [len(value)]
    if isinstance(value, uuid.UUID):
        return urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(milliseconds=1)
    return int(value) if isinstance(value, enum.IntEnum) else value


def positional(body: Any) -> Any:
    """A body decoded with records skipped, in the same form."""
    if isinstance(body, dict):
        return [positional(value) for value in body.values()]
    return [positional(value) for value in body] if isinstance(body, list) else body


def with_record_bytes(body: Any) -> Any:
    """A body decoded with records skipped, with the record sets of the instance put back by their sizes."""
    if isinstance(body, dict):
        if list(body) == ["size_bytes"]:
            return BLOBS[body["size_bytes"]]
        return {name: with_record_bytes(value) for name, value in body.items()}
    return [with_record_bytes(value) for value in body] if isinstance(body, list) else body
