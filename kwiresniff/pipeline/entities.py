"""What an exchange speaks of: topics, partitions, groups, transactional ids.

Of bodies that are text, names are read from the bytes, by a plan that marks the fields with names. Decoded bodies are
walked (``kwiresniff.analysis.body_entities``), which costs as much as decoding them. Most messages have no field for a
group, and many none for a topic: definitions say which, once for each version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple, final

from kwiresniff import codec
from kwiresniff.analysis.body_entities import groups_of, partitions_of, session_topics, topics_of, transactional_ids_of
from kwiresniff.base import entities as named
from kwiresniff.codec.text.entities import (
    GROUP,
    GROUPS,
    PARTITION,
    REPLICA,
    TOPIC,
    TOPICS,
    TRANSACTION,
    TRANSACTIONS,
    EntityReader,
    readied,
)
from kwiresniff.codec.text.plan import TAG_SECTION, Step, plan
from kwiresniff.errors import SchemaError
from kwiresniff.model import Body, Direction, Exchange, Message, TopicNames
from kwiresniff.schema import message as definition
from kwiresniff.schema.types import WireField

#: Partition indexes are INT32; other numbers may stand in fields of the same name.
LEAST_INDEX: Final = -(1 << 31)
MOST_INDEX: Final = (1 << 31) - 1


@final
class Entities:
    """What one exchange after another speaks of: each in order, once. ``replica_id`` is the node that asks, or -1."""

    def __init__(self, topic_name: TopicNames) -> None:
        self._topic_name = topic_name
        self._reader = EntityReader(topic_name)
        self._plans: dict[int, list[Step] | None] = {}
        self.topics: list[str] = []
        self.partitions: list[int] = []
        self.groups: list[str] = []
        self.transactional_ids: list[str] = []
        self.replica_id = -1

    def find(self, exchange: Exchange) -> None:
        """Fill the lists."""
        reader = self._reader
        reader.begin()
        request, response = exchange.request, exchange.response
        if request is not None:
            self._message(exchange, request, True)
        if response is not None:
            self._message(exchange, response, False)
        if exchange.topics:
            reader.topics += exchange.topics
        fetched = exchange.fetched
        if fetched is not None:
            reader.topics += session_topics(exchange, self._topic_name)
            reader.partitions += [number for number in fetched.partitions if LEAST_INDEX <= number <= MOST_INDEX]
        self.topics = once(reader.topics)
        self.partitions = reader.partitions if len(reader.partitions) < 2 else list(dict.fromkeys(reader.partitions))
        self.groups = once(reader.groups)
        self.transactional_ids = once(reader.transactional_ids)
        self.replica_id = int(reader.replica_id)

    def _message(self, exchange: Exchange, message: Message, asked: bool) -> None:
        frame = message.frame
        if message.text is None or frame is None:
            if message.body is not None:
                self._body(exchange, message.version, asked, message.body)
            return
        key = (exchange.api_key << 17) + (message.version << 1) + (1 if asked else 0)
        if key in self._plans:
            steps = self._plans[key]
        else:
            steps = self._plans[key] = marked(exchange.api_key, message.version, "request" if asked else "response")
        if steps is None:
            decode = codec.decoder(exchange.api_key, message.version, "request" if asked else "response", "skip")
            body, _ = decode(frame, message.body_offset, [])
            self._body(exchange, message.version, asked, body)
        elif steps:
            self._reader.read(steps, frame, message.body_offset)

    def _body(self, exchange: Exchange, version: int, asked: bool, body: Body) -> None:
        fields = _fields(exchange.api_key, version, "request" if asked else "response")
        reader = self._reader
        if fields.topics and not exchange.topics:
            reader.topics += topics_of(body, self._topic_name)
        if fields.partitions:
            reader.partitions += [number for number in partitions_of(body) if LEAST_INDEX <= number <= MOST_INDEX]
        if fields.groups:
            reader.groups += groups_of(body, deep=fields.groups == _DEEP)
        if fields.transactional_ids:
            reader.transactional_ids += transactional_ids_of(body, deep=fields.transactional_ids == _DEEP)


def once(names: list[str]) -> list[str]:
    """Each name once, in order of first appearance."""
    return names if len(names) < 2 else list(dict.fromkeys(names))


def marked(api_key: int, version: int, direction: Direction) -> list[Step] | None:
    """How what a message speaks of is read; None where one field says what another one names."""
    with suppress(SchemaError):
        steps = plan(definition(api_key, version, direction))
        _mark(steps, "", outermost=True)
        return readied(steps)
    return None


def _mark(steps: list[Step], parent: str, *, outermost: bool = False) -> None:
    fields = [step.field for step in steps if step.field is not None]
    names = {field.name for field in fields}
    topics = [field for field in fields if not field.array and _role(field, parent, outermost) == TOPIC]
    if named.RESOURCE_FIELD in names or (outermost and names & named.KEY_FIELDS) or len(topics) > 1:
        raise SchemaError("one field says what another one names")
    before = False
    for step in steps:
        if step.kind == TAG_SECTION:
            # Those that are there come in no text; those that are not have numbers all the same.
            if any(_role(one.field, parent, outermost) == PARTITION for one in step.steps if one.field is not None):
                raise SchemaError("a partition that need not be told")
        elif step.field is not None:
            step.role = _role(step.field, parent, outermost)
            _mark(step.steps, step.field.name)
            if step.role == TOPIC and before:
                raise SchemaError("names what it is about behind what it holds")
            before = before or step.role == TOPICS or _names_topics(step.steps)


def _names_topics(steps: list[Step]) -> bool:
    return any(step.role in (TOPIC, TOPICS) or _names_topics(step.steps) for step in steps)


def _role(field: WireField, parent: str, outermost: bool) -> int:
    name = field.name
    if "STRING" in field.type:
        if field.array:
            lists = ((named.TOPIC_LISTS, TOPICS), (named.GROUP_LISTS, GROUPS), (named.TRANSACTION_LISTS, TRANSACTIONS))
            return next((role for among, role in lists if name in among), 0)
        if named.is_topic_field(name) or (name == "name" and named.holds_topics(parent)):
            return TOPIC
        return GROUP if name in named.GROUP_FIELDS else TRANSACTION if name in named.TRANSACTION_FIELDS else 0
    if field.type == "UUID":
        return TOPIC if name == named.TOPIC_ID and not field.array else 0
    is_index = name in named.PARTITION_LISTS if field.array else _is_index(name, parent)
    if is_index and field.type in _NUMBERS:
        if field.type != "INT32":
            raise SchemaError("a partition of another size")
        return PARTITION
    return REPLICA if outermost and name == "replica_id" and field.type == "INT32" and not field.array else 0


def _is_index(name: str, parent: str) -> bool:
    return name in named.PARTITION_FIELDS or (name == "index" and "partition" in parent)


_NUMBERS: Final = frozenset({"INT8", "INT16", "UINT16", "INT32", "UINT32", "INT64"})


class _Fields(NamedTuple):
    """Which of them a message may have a field for; groups and transactional ids only outermost, or deep inside."""

    topics: bool
    partitions: bool
    groups: int
    transactional_ids: int


_OUTERMOST: Final = 1
_DEEP: Final = 2


@lru_cache(maxsize=2048)
def _fields(api_key: int, version: int, direction: Direction) -> _Fields:
    try:
        outermost = definition(api_key, version, direction).fields
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
