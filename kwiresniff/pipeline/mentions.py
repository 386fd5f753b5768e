"""What an exchange speaks of: topics, partitions, groups, transactional ids.

``kwiresniff.analysis.names`` walks a body for each of them, which costs as much as decoding it. Most messages have
no field that could hold a group, many none for a topic; their definitions tell, once for each version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from kwiresniff.analysis.names import groups_of, partitions_of, topics_of, transactional_ids_of
from kwiresniff.errors import SchemaError
from kwiresniff.model import Body, Direction, Exchange, TopicNames
from kwiresniff.schema import message
from kwiresniff.schema.types import WireField

#: Partition indexes are INT32; other numbers may stand in fields of the same name.
_INT32 = range(-(2**31), 2**31)


class Mentions(NamedTuple):
    """Each in order, once."""

    topics: list[str]
    partitions: list[int]
    groups: list[str]
    transactional_ids: list[str]


class _Fields(NamedTuple):
    """Which of them a message may have a field for."""

    topics: bool
    partitions: bool
    groups: bool
    transactional_ids: bool


def mentions(exchange: Exchange, topic_name: TopicNames) -> Mentions:
    """What the two bodies of an exchange speak of; ``exchange.topics`` when they were not decoded."""
    bodies = [
        (body.body, _fields(exchange.api_key, body.version, direction))
        for body, direction in _messages(exchange)
        if body.body is not None
    ]
    return Mentions(
        list(exchange.topics)
        or _each_once((body for body, fields in bodies if fields.topics), lambda body: topics_of(body, topic_name)),
        _each_once((body for body, fields in bodies if fields.partitions), _partitions),
        _each_once((body for body, fields in bodies if fields.groups), groups_of),
        _each_once((body for body, fields in bodies if fields.transactional_ids), transactional_ids_of),
    )


def _messages(exchange: Exchange) -> Iterator[tuple[Any, Direction]]:
    if exchange.request is not None:
        yield exchange.request, "request"
    if exchange.response is not None:
        yield exchange.response, "response"


def _partitions(body: Body) -> list[int]:
    return [number for number in partitions_of(body) if number in _INT32]


def _each_once(bodies: Iterable[Body], find: Callable[[Body], list[Any]]) -> list[Any]:
    return list(dict.fromkeys(value for body in bodies for value in find(body)))


@lru_cache(maxsize=2048)
def _fields(api_key: int, version: int, direction: Direction) -> _Fields:
    try:
        found = list(_all(message(api_key, version, direction).fields))
    except SchemaError:
        return _Fields(True, True, True, True)
    if any("BYTES" in field.type for field in found):  # a message inside: an assignment, an envelope
        return _Fields(True, True, True, True)
    names = {field.name for field in found}
    return _Fields(
        any("topic" in name or name in ("resource_name", "responses", "results") for name in names),
        any("partition" in name for name in names),
        any("group" in name or name in ("key", "coordinator_keys") for name in names),
        any("transaction" in name or name in ("key", "coordinator_keys") for name in names),
    )


def _all(fields: Iterable[WireField]) -> Iterator[WireField]:
    for field in fields:
        yield field
        yield from _all(field.fields)
