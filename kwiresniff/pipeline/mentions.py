"""What an exchange speaks of: topics, partitions, groups, transactional ids.

``kwiresniff.analysis.names`` walks a body for each of them, which costs as much as decoding it. Most messages have
no field that could hold a group, many none for a topic; their definitions tell, once for each version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from kwiresniff.analysis.names import groups_of, partitions_of, session_topics, topics_of, transactional_ids_of
from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction, Exchange, TopicNames
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
    """Which of them a message may have a field for; groups and transactional ids only outermost, or deep inside."""

    topics: bool
    partitions: bool
    groups: int
    transactional_ids: int


_OUTERMOST, _DEEP = 1, 2


def mentions(exchange: Exchange, topic_name: TopicNames) -> Mentions:
    """What the two bodies of an exchange speak of; ``exchange.topics`` when they were not decoded."""
    bodies = [
        (body.body, _fields(exchange.api_key, body.version, direction))
        for body, direction in _messages(exchange)
        if body.body is not None
    ]
    topics, partitions, groups, transactional_ids = [], [], [], []
    for body, fields in bodies:
        if fields.topics and not exchange.topics:
            topics += topics_of(body, topic_name)
        if fields.partitions:
            partitions += [number for number in partitions_of(body) if number in _INT32]
        if fields.groups:
            groups += groups_of(body, deep=fields.groups == _DEEP)
        if fields.transactional_ids:
            transactional_ids += transactional_ids_of(body, deep=fields.transactional_ids == _DEEP)
    if exchange.topics:
        topics += exchange.topics
    if exchange.fetched is not None:
        topics += session_topics(exchange, topic_name)
        partitions += [number for number in exchange.fetched.partitions if number in _INT32]
    return Mentions(
        list(dict.fromkeys(topics)),
        list(dict.fromkeys(partitions)),
        list(dict.fromkeys(groups)),
        list(dict.fromkeys(transactional_ids)),
    )


def _messages(exchange: Exchange) -> Iterator[tuple[Any, Direction]]:
    if exchange.request is not None:
        yield exchange.request, "request"
    if exchange.response is not None:
        yield exchange.response, "response"


@lru_cache(maxsize=2048)
def _fields(api_key: int, version: int, direction: Direction) -> _Fields:
    try:
        outermost = message(api_key, version, direction).fields
    except SchemaError:
        return _Fields(True, True, _DEEP, _DEEP)
    found = [*outermost, *(field for outer in outermost for field in _all(outer.fields))]
    if any("BYTES" in field.type for field in found):  # a message inside: an assignment, an envelope
        return _Fields(True, True, _DEEP, _DEEP)
    names = {field.name for field in found}
    inner = {field.name for field in found[len(outermost) :]}

    def depth(part: str) -> int:
        def holds(name: str) -> bool:
            return part in name or name in ("key", "coordinator_keys")

        return _DEEP if any(map(holds, inner)) else _OUTERMOST if any(map(holds, names)) else 0

    return _Fields(
        any("topic" in name or name in ("resource_name", "responses", "results") for name in names),
        any("partition" in name for name in names),
        depth("group"),
        depth("transaction"),
    )


def _all(fields: Iterable[WireField]) -> Iterator[WireField]:
    for field in fields:
        yield field
        yield from _all(field.fields)
