"""Which fields of a message may name topics, partitions, groups and transactional ids; others need not be searched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction
from kwiresniff.schema import message as definition
from kwiresniff.schema.types import WireField


class NamingFields(NamedTuple):
    """What a message may have a field for; groups and transactional ids only outermost, or deep inside."""

    topics: bool
    partitions: bool
    groups: int
    transactional_ids: int


OUTERMOST: Final = 1
DEEP: Final = 2


@lru_cache(maxsize=2048)
def naming_fields(api_key: int, version: int, direction: Direction) -> NamingFields:
    """The fields of a message that may hold names; all, of one that is unknown or holds another message."""
    try:
        outermost = definition(api_key, version, direction).fields
    except SchemaError:
        return NamingFields(True, True, DEEP, DEEP)
    found = [*outermost, *(field for outer in outermost for field in _all(outer.fields))]
    if any("BYTES" in field.type for field in found):  # a message inside: an assignment, an envelope
        return NamingFields(True, True, DEEP, DEEP)
    names = {field.name for field in found}
    inner = {field.name for field in found[len(outermost) :]}

    def depth(part: str) -> int:
        def holds(name: str) -> bool:
            return part in name or name in ("key", "coordinator_keys")

        return DEEP if any(map(holds, inner)) else OUTERMOST if any(map(holds, names)) else 0

    return NamingFields(
        any("topic" in name or name in ("resource_name", "responses", "results") for name in names),
        any("partition" in name for name in names),
        depth("group"),
        depth("transaction"),
    )


def _all(fields: Iterable[WireField]) -> Iterator[WireField]:
    for field in fields:
        yield field
        yield from _all(field.fields)
