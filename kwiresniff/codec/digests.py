"""What analyses ask of every message, straight from its bytes; see ``kwiresniff.model.Digest``.

For analyses that look at a few values of most messages and at all of a few: decoding everything costs ten times as
much. A body that has a digest reads as its definition says, to its last byte, and has neither an error code nor
anything else that somebody would have to tell. Whatever is unusual has none, and is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from kwiresniff import schema
from kwiresniff.base import entities
from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.base.batch_layout import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CODEC_NAMES,
    CONTROL,
    LAST_DELTA_AT,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
)
from kwiresniff.base.fastint import i16, i32, u32
from kwiresniff.codec.field_layout import (
    STRING_LENGTH,
    check_nesting,
    is_records,
    is_string,
    length_prefix,
    may_be_null,
    regular,
    single,
)
from kwiresniff.codec.primitives import uuid_text
from kwiresniff.codec.text.batch_reader import SHORT, batch_stop
from kwiresniff.errors import SchemaError
from kwiresniff.model import Digest, Direction, PartitionDigest, TopicDigest
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import FIXED

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Structures, strings and arrays of one message that are looked at here; more are for the decoders, which count them.
MAX_VALUES: Final = 500_000
#: Topic ids whose text is remembered; a text takes a hundred bytes.
MAX_IDS: Final = 10_000

#: The APIs whose messages are opened where they hold records of topics that Kafka keeps for itself.
_OPENED: Final = frozenset([PRODUCE, FETCH])

_JUMP: Final = 0  # ``size`` bytes
_NUMBER: Final = 1  # a number with a role
_CODE: Final = 2  # an error code, an INT16 that must be zero
_ID: Final = 3  # a topic's id
_TAGS: Final = 4  # a tag section, which must be empty
_OPTIONAL: Final = 5  # an INT8: 1 and what is ``inside``, or -1
_TEXT: Final = 6  # from here on what has a length or a count: UTF-8
_BYTES: Final = 7
_RECORDS: Final = 8
_ARRAY: Final = 9

#: What a value is to a digest.
_TOPIC: Final = 1
_OPENED_TOPIC: Final = 2  # of which Kafka's own must be opened
_GROUP: Final = 3
_TRANSACTION: Final = 4
_ACKS: Final = 5
_REPLICA: Final = 6
_THROTTLE: Final = 7
_TOPICS: Final = 8  # an array whose elements are topics with their partitions
_PARTITIONS: Final = 9  # one whose elements are those
_INDEX: Final = 10
_OFFSET: Final = 11
_HIGH_WATERMARK: Final = 12

_NUMBERS: Final = {"acks": _ACKS, "replica_id": _REPLICA, "throttle_time_ms": _THROTTLE}
#: The fields of Produce and Fetch that hold topics, partitions, and what is noted of those.
_ARRAYS: Final = {
    "topics": _TOPICS, "topic_data": _TOPICS, "responses": _TOPICS,
    "partitions": _PARTITIONS, "partition_data": _PARTITIONS, "partition_responses": _PARTITIONS,
}  # fmt: skip
_OF_PARTITIONS: Final = {
    "index": _INDEX, "partition": _INDEX, "partition_index": _INDEX,
    "fetch_offset": _OFFSET, "base_offset": _OFFSET, "high_watermark": _HIGH_WATERMARK,
}  # fmt: skip
_INTERNAL: Final = b"__"
_NO_ID: Final = bytes(16)

#: The lowest byte of a batch's attributes.
_LOW_ATTRIBUTES_AT: Final = ATTRIBUTES_AT + 1
_LAST_CODEC: Final = len(CODEC_NAMES) - 1

#: How a length or count lies on the wire: an INT16, an INT32, an UNSIGNED_VARINT of one more.
_SHORT: Final = 2
_LONG: Final = 4
_VARINT: Final = 1


@final
class Look:
    """One thing to pass over, and what it is to a digest (``role``).

    ``width`` says how the length or count lies on the wire, ``nullable`` that it may stand for null. ``inside`` is what
    an element or an optional structure is made of; ``weight`` counts the values of one.
    """

    def __init__(self, kind: i64, size: i64 = 0, role: i64 = 0) -> None:
        self.kind: i64 = kind
        self.size: i64 = size
        self.role: i64 = role
        self.width: i64 = 0
        self.nullable = False
        self.listed = False  # an element, of which an empty one counts as well
        self.inside: list[Look] = []
        self.weight: i64 = 1


@final
class DigestReader:
    """Reads one body after another. ``is_internal`` tells of a topic's id whether it is one that Kafka keeps for itself
    and whose records are opened."""

    def __init__(self, is_internal: Callable[[str], bool]) -> None:
        self._is_internal = is_internal
        self._plans: dict[tuple[int, int, Direction], list[Look] | None] = {}
        self._ids: dict[bytes, str] = {}
        self._data = b""
        self._at: i64 = 0
        self._left: i64 = 0
        self._found = Digest()
        self._nowhere = TopicDigest()  # stands for a topic where none is being read
        self._topic = self._nowhere
        self._partition = PartitionDigest()

    def steps(self, api_key: int, version: int, direction: Direction) -> list[Look] | None:
        """How a message is read; None for one that is not."""
        key = (api_key, version, direction)
        if key not in self._plans:
            steps: list[Look] | None = None
            with suppress(SchemaError):
                steps = looks(schema.message(api_key, version, direction), opened=api_key in _OPENED)
            self._plans[key] = steps
        return self._plans[key]

    def digest(self, steps: list[Look], frame: bytes, offset: int) -> Digest | None:
        """What the body says; None for one with anything unusual."""
        self._data = frame
        self._found = Digest()
        self._left = MAX_VALUES
        self._topic = self._nowhere
        try:
            end = self._pass(steps, offset)
        except UnicodeDecodeError:
            return None
        return self._found if end == len(frame) else None

    def _pass(self, steps: list[Look], at: i64) -> i64:
        """Where the bytes behind ``steps`` begin, or -1."""
        data = self._data
        end: i64 = len(data)
        for step in steps:
            kind: i64 = step.kind
            if kind == _JUMP:
                at += step.size
            elif kind >= _TEXT:
                at = self._sized(step, kind, at, end)
                if at < 0:
                    return -1
            elif kind == _CODE:
                if at + 2 > end or data[at] or data[at + 1]:
                    return -1
                at += 2
            elif kind == _TAGS:
                if at >= end or data[at]:
                    return -1
                at += 1
            elif kind == _NUMBER:
                if at + step.size > end:
                    return -1
                self._number(step.role, at)
                at += step.size
            elif kind == _ID:
                if at + 16 > end or not self._topic_id(step, data[at : at + 16]):
                    return -1
                at += 16
            else:
                if at >= end:
                    return -1
                mark: i64 = data[at]
                at += 1
                if mark == 1:
                    at = self._pass(step.inside, at)
                    if at < 0:
                        return -1
                elif mark != 255:
                    return -1
        return at if at <= end else -1

    def _sized(self, step: Look, kind: i64, at: i64, end: i64) -> i64:
        """What has a length or a count; where the bytes behind it begin, or -1."""
        length: i64 = self._length(step.width, at, end)
        at = self._at
        if length < 0:
            return at if length == -1 and step.nullable else -1
        if length > end - at:  # an element takes a byte at least
            return -1
        if kind == _ARRAY:
            return self._array(step, length, at, end)
        stop: i64 = at + length
        if kind == _TEXT:
            raw = self._data[at:stop]
            if step.role:
                return stop if self._name(step, raw) else -1
            raw.decode()
        elif kind == _RECORDS:
            return self._record_set(at, stop)
        return stop

    def _array(self, step: Look, count: i64, at: i64, end: i64) -> i64:
        inside = step.inside
        self._left -= count * step.weight
        if self._left < 0:
            return -1
        if len(inside) == 1 and inside[0].kind == _JUMP:
            at += count * inside[0].size
            return at if at <= end else -1
        role: i64 = step.role
        while count > 0:
            if role == _PARTITIONS:
                self._partition = PartitionDigest()
                self._topic.partitions.append(self._partition)
            elif role == _TOPICS:
                self._begin_topic()
            at = self._pass(inside, at)
            if at < 0:
                return -1
            count -= 1
        if role == _TOPICS:
            self._topic = self._nowhere
        return at

    def _begin_topic(self) -> None:
        topic = self._topic = TopicDigest()
        found = self._found
        if found.parts is None:
            found.parts = [topic]
        else:
            found.parts.append(topic)

    def _length(self, width: i64, at: i64, end: i64) -> i64:
        """The length or count at a position, -1 for null, -2 for none; behind it is ``_at``."""
        data = self._data
        self._at = at + width
        if at + width > end:
            return -2
        if width == _SHORT:
            return i16(data, at)
        if width == _LONG:
            return i32(data, at)
        number: i64 = data[at]
        if number > 127:
            number &= 127
            shift: i64 = 7
            while True:
                at += 1
                if at >= end or shift > 28:
                    return -2
                byte: i64 = data[at]
                number |= (byte & 127) << shift
                if byte < 128:
                    break
                shift += 7
            self._at = at + 1
        return number - 1

    def _number(self, role: i64, at: i64) -> None:
        data = self._data
        if role == _INDEX:
            self._partition.index = i32(data, at)
        elif role == _OFFSET:
            self._partition.offset = _int64(data, at)
        elif role == _HIGH_WATERMARK:
            self._partition.high_watermark = _int64(data, at)
        elif role == _THROTTLE:
            self._found.throttle_time_ms = i32(data, at)
        elif role == _ACKS:
            self._found.acks = i16(data, at)
        else:
            self._found.replica_id = i32(data, at)

    def _topic_id(self, step: Look, raw: bytes) -> bool:
        """Note a topic's id; False for one whose records are to be opened."""
        if raw == _NO_ID:
            return True
        text = self._ids.get(raw)
        if text is None:
            text = uuid_text(raw)
            if len(self._ids) >= MAX_IDS:
                self._ids.clear()
            self._ids[raw] = text
        if step.role == _OPENED_TOPIC:
            if self._is_internal(text):
                return False
            self._topic.name = text
            self._topic.is_id = True
        if self._found.topic_ids is None:
            self._found.topic_ids = [text]
        else:
            self._found.topic_ids.append(text)
        return True

    def _name(self, step: Look, raw: bytes) -> bool:
        """Note a name; False for that of a topic whose records are to be opened."""
        found = self._found
        name = raw.decode()
        role: i64 = step.role
        if not name and not step.listed:
            return True
        if role == _GROUP:
            if found.groups is None:
                found.groups = [name]
            else:
                found.groups.append(name)
        elif role == _TRANSACTION:
            if found.transactional_ids is None:
                found.transactional_ids = [name]
            else:
                found.transactional_ids.append(name)
        else:
            if role == _OPENED_TOPIC:
                if raw.startswith(_INTERNAL):
                    return False
                self._topic.name = name
            if found.topics is None:
                found.topics = [name]
            else:
                found.topics.append(name)
        return True

    def _record_set(self, at: i64, end: i64) -> i64:
        """Batches of which nothing would have to be told; where the bytes behind them begin, or -1."""
        data = self._data
        found = self._found
        while at < end:
            self._left -= 1
            stop: i64 = batch_stop(data, at, end)
            if stop == SHORT:
                found.is_cut = True
                return end
            if stop < 0 or self._left < 0:
                return -1
            if data[at + _LOW_ATTRIBUTES_AT] & CODEC_MASK > _LAST_CODEC:
                return -1
            found.batches += 1
            found.records += i32(data, at + RECORDS_COUNT_AT)
            if not self._batch(at, stop):
                return -1
            at = stop
        return end

    def _batch(self, at: i64, stop: i64) -> bool:
        """Note a batch of the partition that is being read; False for one of another codec than those before it."""
        data = self._data
        partition = self._partition
        attributes: i64 = data[at + _LOW_ATTRIBUTES_AT]
        first: i64 = _int64(data, at)
        if not partition.batches:
            partition.first_offset = first
            partition.codec = attributes & CODEC_MASK
        elif partition.codec != attributes & CODEC_MASK:
            return False
        partition.batches += 1
        partition.size_bytes += stop - at
        partition.end_offset = first + i32(data, at + LAST_DELTA_AT) + 1
        if not attributes & CONTROL:
            partition.records += i32(data, at + RECORDS_COUNT_AT)
        if data[at + PRODUCER_ID_AT] < 128:
            partition.is_idempotent = True
        return True


def _int64(data: bytes, at: i64) -> i64:
    high: i64 = i32(data, at)
    low: i64 = u32(data, at + 4)
    return high << 32 | low


def looks(message: MessageVersion, *, opened: bool) -> list[Look]:
    """How a message is passed over; with ``opened`` it has topics whose records are to be opened where Kafka keeps them
    for itself. Raises SchemaError for one whose names only its decoded body tells."""
    check_nesting(message)
    maker = _Maker(message, opened)
    steps = maker.structure(message.fields, "", outermost=True)
    kinds = [kind for kind, role in _named(steps) if role == maker.topic]
    if kinds != sorted(kinds, reverse=True):  # a digest has the names before the ids
        raise maker.untold("names topics by ids before names")
    return steps


class _Maker:
    def __init__(self, message: MessageVersion, opened: bool) -> None:
        self.message = message
        self.topic = _OPENED_TOPIC if opened else _TOPIC

    def structure(self, fields: tuple[WireField, ...], parent: str, *, outermost: bool = False) -> list[Look]:
        """The names of a structure are told before those inside it, in whatever order a decoded body is searched."""
        names = {field.name for field in fields}
        if entities.RESOURCE_FIELD in names or (outermost and names & entities.KEY_FIELDS):
            raise self.untold("says by one field what another one names")
        steps: list[Look] = []
        inner: set[int] = set()
        for field in regular(fields):
            role = self.role(field, parent, outermost)
            if role in inner or (role == self.topic and not field.array and any(step.role == role for step in steps)):
                raise self.untold("names the same thing in several places")
            made = self.field(field, role)
            if field.array or field.type == "STRUCT":
                inner |= {role for _, role in _named(made)}
            for step in made:
                if step.kind == _JUMP and steps and steps[-1].kind == _JUMP:
                    step = Look(_JUMP, steps.pop().size + step.size)
                steps.append(step)
        return [*steps, Look(_TAGS)] if self.message.flexible else steps

    def role(self, field: WireField, parent: str, outermost: bool) -> int:
        """What a field is to a digest, 0 for nothing."""
        name = field.name
        if is_string(field.type):
            topics = entities.TOPIC_LISTS if field.array else entities.TOPIC_FIELDS
            if name in topics or (name == "name" and not field.array and entities.holds_topics(parent)):
                return self.topic
            if name in (entities.GROUP_LISTS if field.array else entities.GROUP_FIELDS):
                return _GROUP
            if name in (entities.TRANSACTION_LISTS if field.array else entities.TRANSACTION_FIELDS):
                return _TRANSACTION
        elif name == entities.TOPIC_ID and field.type == "UUID" and not field.array:
            return self.topic
        elif field.type == "STRUCT" and field.array:
            return self.array_role(name, parent, outermost)
        elif field.type in ("INT16", "INT32", "INT64") and not field.array:
            if outermost:
                return _NUMBERS.get(name, 0)
            if self.topic == _OPENED_TOPIC and _ARRAYS.get(parent) == _PARTITIONS:
                return _OF_PARTITIONS.get(name, 0)
        return 0

    def array_role(self, name: str, parent: str, outermost: bool) -> int:
        """What an array of structures is to a digest."""
        role = _ARRAYS.get(name, 0) if self.topic == _OPENED_TOPIC else 0
        place = _TOPICS if outermost else _PARTITIONS if _ARRAYS.get(parent) == _TOPICS else 0
        return role if role == place else 0

    def field(self, field: WireField, role: int) -> list[Look]:
        """The steps over a field; over one of fixed size or a structure several."""
        if field.array:
            step = Look(_ARRAY, 0, role if field.type == "STRUCT" else 0)
            step.width, step.nullable = self.width(field), field.nullable
            step.inside = self.field(single(field), role)
            if field.type != "STRUCT":
                step.inside[0].listed = True
            step.weight = 1 + sum(one.kind >= _TEXT for one in step.inside)
            return [step]
        if field.type == "STRUCT":
            if not field.nullable:
                return self.structure(field.fields, field.name)
            step = Look(_OPTIONAL)
            step.inside = self.structure(field.fields, field.name)
            return [step]
        if field.enum == "error_code":
            if field.type != "INT16":
                raise self.untold("has an error code that is no INT16")
            return [Look(_CODE)]
        fixed = FIXED.get(field.type)
        if fixed is not None:
            kind = _JUMP if not role else _ID if field.type == "UUID" else _NUMBER
            return [Look(kind, fixed.size, role)]
        step = Look(_TEXT if is_string(field.type) else _RECORDS if is_records(field.type) else _BYTES, 0, role)
        step.width, step.nullable = self.width(field), may_be_null(field)
        return [step]

    def width(self, field: WireField) -> int:
        prefix = length_prefix(field, self.message.flexible)
        return _VARINT if prefix is None else _SHORT if prefix is STRING_LENGTH else _LONG

    def untold(self, why: str) -> SchemaError:
        return SchemaError(f"{self.message.name} v{self.message.version} {why}")


def _named(steps: list[Look]) -> Iterator[tuple[int, int]]:
    """Kind and role of what is named, in the order in which it is read; what repeats comes twice."""
    for step in steps:
        if step.role:
            yield int(step.kind), int(step.role)
        for _ in range(2 if step.kind == _ARRAY else 1):
            yield from _named(step.inside)
