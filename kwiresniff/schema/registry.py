"""Messages at a version. Nothing is parsed before it is asked for.

The definitions lie in ``data/``, one file an API. A message costs the parsing of what its file has of that kind (a
tenth of a millisecond to one, once).
"""

from __future__ import annotations

from functools import cache, lru_cache

from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction
from kwiresniff.schema.apis import data_index, find_api, nearest, read_data
from kwiresniff.schema.definition import Message, Record
from kwiresniff.schema.definition_language import parse
from kwiresniff.schema.resolve import resolve
from kwiresniff.schema.types import MessageVersion

#: Between a message's name and the release that had it in another shape.
EARLIER = "@"


@cache
def definitions(file: str) -> tuple[Message, ...]:
    """The messages of one definition file, with all their versions."""
    return parse(_text(file), f"{file}.txt")


#: Files kept as they are: a request is mostly followed by its response.
_TEXTS = 16


@lru_cache(_TEXTS)
def _text(file: str) -> str:
    return read_data(f"{file}.txt")


@cache
def _side(file: str, kind: str) -> Message | None:
    """The request or the response of a file; who follows a capture needs few of both."""
    return next((found for found in parse(_text(file), f"{file}.txt", kind) if found.kind == kind), None)


@cache
def message(api: int | str, version: int, direction: Direction) -> MessageVersion:
    """The request or response of an API at a version; raises SchemaError saying which versions there are."""
    return _resolve(find_api(api).name, direction, version)


@cache
def data_message(name: str, version: int) -> MessageVersion:
    """A message that is carried inside others or stored in a log; raises SchemaError."""
    return resolve(_data_definition(name), version)


def _data_definition(name: str) -> Message:
    files = data_index().files
    file = files.get(name)
    if file is None:
        raise SchemaError(f"no data message is named {name!r}{nearest(name, list(files))}")
    return next(message for message in definitions(file) if message.name == name)


@cache
def data_versions(name: str) -> tuple[int, int]:
    """The lowest and highest version of such a message; raises SchemaError."""
    low, high = _data_definition(name).versions
    return low, high


@cache
def earlier_shapes(name: str) -> tuple[str, ...]:
    """Names of a message's shapes while it was on trial, such as ``ShareUpdateValue@4.0``, newest first."""
    return tuple(sorted((other for other in data_index().files if other.startswith(f"{name}{EARLIER}")), reverse=True))


def stored_records() -> dict[str, Record]:
    """Messages that are records of internal topics: what part of one, and of which type."""
    return data_index().records


@cache
def header(kind: Direction, version: int) -> MessageVersion:
    """The header of requests or responses at a header version; raises SchemaError."""
    found = next(message for message in definitions("headers") if message.name == kind)
    return resolve(found, version)


def _resolve(file: str, kind: str, version: int) -> MessageVersion:
    found = _side(file, kind)
    if found is None:
        raise SchemaError(f"{file} has no {kind}; a message is a request or a response")
    return resolve(found, version)
