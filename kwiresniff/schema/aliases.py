"""Older names of fields, for what people type: a guide of 2014 calls by other names what is on the wire today.

The definition files have them behind ``was``. They come from the schemas in the code of 0.8.2 to 2.8, as the protocol
guides of these releases print them, and from the definitions of the releases since 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

from kwiresniff.model import Direction
from kwiresniff.schema.apis import api_by_key, apis
from kwiresniff.schema.definition import Field
from kwiresniff.schema.registry import definitions

Path = tuple[str, ...]

#: Paths remembered; a filter has a few, each asked for a few APIs.
_REMEMBERED = 4096


@lru_cache(_REMEMBERED)
def newer_paths(api_key: int, direction: Direction, path: Path) -> tuple[Path, ...]:
    """The other paths that ``path`` may mean where it has older names; unknown names stay, with all behind."""
    api = api_by_key(api_key)
    if api is None:
        return ()
    fields = next(message.fields for message in definitions(api.name) if message.kind == direction)
    return tuple(dict.fromkeys(found for found in _paths(fields, path) if found != path))


@cache
def body_fields(direction: Direction) -> tuple[Field, ...]:
    """The outermost fields of bodies, of all APIs and versions together."""
    return tuple(
        field
        for api in apis()
        for message in definitions(api.name)
        if message.kind == direction
        for field in message.fields
    )


def names_of(fields: tuple[Field, ...]) -> frozenset[str]:
    """The names that fields have or had."""
    return frozenset(name for field in fields for name in (field.name, *field.aliases))


def fields_below(fields: tuple[Field, ...], name: str) -> tuple[Field, ...]:
    """The fields that stand below those of ``fields`` that have or had this name."""
    return tuple(child for field in fields if name == field.name or name in field.aliases for child in field.fields)


def _paths(fields: tuple[Field, ...], path: Path) -> Iterator[Path]:
    if not path:
        yield ()
        return
    meant = dict.fromkeys(field.name for field in fields if path[0] == field.name or path[0] in field.aliases)
    for name in meant:
        inner = tuple(child for field in fields if field.name == name for child in field.fields)
        yield from ((name, *rest) for rest in _paths(inner, path[1:]))
    if not meant:
        yield path
