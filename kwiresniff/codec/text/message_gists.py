"""What a Produce or a Fetch is about, straight from its bytes, for one-line summaries; see ``kwiresniff.model.Gist``.

Reads what the decoders read that leave records alone, and nothing that they would have to say something about. With
those alone ``read -o summary`` would take nearly twice as long.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from kwiresniff import schema
from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.base.batch_layout import ATTRIBUTES_AT, CODEC_MASK, RECORDS_COUNT_AT
from kwiresniff.base.entities import PARTITION_INDEXES, TOPIC_ARRAYS
from kwiresniff.base.json_text import int16, int32
from kwiresniff.codec.primitives import uuid_text
from kwiresniff.codec.text.batch_reader import SHORT, batch_stop
from kwiresniff.codec.text.body_reader import BodyReader
from kwiresniff.codec.text.plan import (
    ERROR_CODE,
    INT32,
    RECORDS,
    SIZES,
    STRING,
    STRUCTURE,
    TAG_SECTION,
    TOPIC,
    TOPIC_ID,
    UUID,
    Step,
    plan,
)
from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction, Gist

if TYPE_CHECKING:
    from mypy_extensions import i64

#: The APIs whose messages hold records of topics.
API_KEYS: Final = frozenset([PRODUCE, FETCH])

#: Elements of arrays in one message that are looked at here; more are for the decoders.
MAX_ELEMENTS: Final = 100_000

#: What a field is to a summary.
_TOPICS: Final = 1
_INDEX: Final = 3
_ACKS: Final = 4
_TRANSACTION: Final = 5
_SESSION: Final = 6

#: The codec with the highest number.
_LAST_CODEC: Final = 4


@final
class GistReader(BodyReader):
    """Reads one body after another; see ``RowWriter`` for what is asked."""

    def __init__(self, is_internal: Callable[[str], bool]) -> None:
        super().__init__()
        self.is_internal = is_internal
        self.found = Gist()
        self.left: i64 = 0
        self._plans: dict[tuple[int, int, Direction], list[Step] | None] = {}

    def steps(self, api_key: int, version: int, direction: Direction) -> list[Step] | None:
        """How a message is read; None for one that is not."""
        if api_key not in API_KEYS:
            return None
        key = (api_key, version, direction)
        if key not in self._plans:
            steps: list[Step] | None = None
            with suppress(SchemaError):
                steps = plan(schema.message(api_key, version, direction))
                _mark(steps, 0)
            self._plans[key] = steps
        return self._plans[key]

    def gist(self, steps: list[Step], frame: bytes, offset: i64) -> Gist | None:
        """What the body is about; None for one with anything unusual."""
        self.frame = frame
        self.found = Gist()
        self.left = MAX_ELEMENTS
        try:
            end: i64 = self._fields(steps, offset)
        except (IndexError, UnicodeDecodeError):
            return None
        return self.found if end == len(frame) else None

    def _fields(self, steps: list[Step], pos: i64) -> i64:
        frame = self.frame
        for step in steps:
            kind: i64 = step.kind
            if step.field is None:
                if kind == TAG_SECTION:
                    if frame[pos]:
                        return -1
                    pos += 1
                continue
            if step.array:
                pos = self._array(step, kind, pos)
            elif step.least and kind < STRING and kind > STRUCTURE and kind != UUID:
                if step.role:
                    self._number(step, kind, pos)
                pos += step.least
            else:
                pos = self._value(step, kind, pos)
            if pos < 0:
                return -1
        return pos

    def _number(self, step: Step, kind: i64, pos: i64) -> None:
        found = self.found
        if step.role == _INDEX:
            found.add_partition(int32(self.frame, pos))
        elif step.role == _ACKS:
            found.acks = int16(self.frame, pos)
        elif step.role == _SESSION:
            found.session_id = int32(self.frame, pos)

    def _value(self, step: Step, kind: i64, pos: i64) -> i64:
        """What is not simply a number."""
        frame = self.frame
        if kind == ERROR_CODE:
            return -1 if int16(frame, pos) else pos + 2
        if kind == STRUCTURE:
            return -1 if step.nullable else self._fields(step.steps, pos)
        if kind in (UUID, TOPIC_ID):
            if pos + 16 > len(frame):
                return -1
            if kind == TOPIC_ID:
                text = uuid_text(frame[pos : pos + 16])
                if self.is_internal(text):
                    return -1
                self.found.name_topic(text)
                self.found.by_id = True
            return pos + 16
        length: i64 = self.length_of(step, pos)
        pos = self.pos
        if length < 0:
            return pos if length == -1 else -1
        stop: i64 = pos + length
        if kind == RECORDS:
            return self._record_set(pos, stop)
        if kind in (STRING, TOPIC):
            raw = frame[pos:stop]
            text = raw.decode()
            if kind == TOPIC:
                if text.startswith("__") or not text:
                    return -1
                self.found.name_topic(text)
            elif step.role == _TRANSACTION:
                self.found.transactional_id = text
        return stop

    def _array(self, step: Step, kind: i64, pos: i64) -> i64:
        count: i64 = self.count_of(step, pos)
        pos = self.pos
        if count <= 0:
            return pos if count >= -1 else -1
        self.left -= count
        if self.left < 0 or kind == ERROR_CODE:
            return -1
        role: i64 = step.role
        while count:
            count -= 1
            if role == _TOPICS:
                self.found.begin_topic()
            if kind == STRUCTURE:
                pos = self._fields(step.steps, pos)
            elif kind > STRUCTURE and kind < STRING and kind != UUID:
                pos += step.least
                if pos > len(self.frame):
                    return -1
            else:
                pos = self._value(step, kind, pos)
            if pos < 0:
                return -1
            if role == _TOPICS:
                self.found.end_topic()
        return pos

    def _record_set(self, pos: i64, end: i64) -> i64:
        frame = self.frame
        found = self.found
        while pos < end:
            self.left -= 1
            stop: i64 = batch_stop(frame, pos, end)
            if stop == SHORT:
                found.add_batch(0, 0, 0)
                return end
            if self.left < 0 or stop < 0:
                return -1
            codec: i64 = int16(frame, pos + ATTRIBUTES_AT) & CODEC_MASK
            if codec > _LAST_CODEC:
                return -1
            found.add_batch(int32(frame, pos + RECORDS_COUNT_AT), stop - pos, codec)
            pos = stop
        return end


def _mark(steps: list[Step], level: int) -> None:
    """Say which fields tell what a message is about, and what those of fixed size take."""
    for step in steps:
        field = step.field
        if field is None:
            continue
        step.least = step.least if step.array and step.kind == STRUCTURE else SIZES.get(step.kind, 0)
        name = field.name
        if level == 0:
            roles = {"acks": _ACKS, "transactional_id": _TRANSACTION, "session_id": _SESSION}
            step.role = _TOPICS if step.array and name in TOPIC_ARRAYS else roles.get(name, 0)
        elif name in PARTITION_INDEXES and step.kind == INT32 and not step.array:
            step.role = _INDEX
        _mark(step.steps, level + 1)
