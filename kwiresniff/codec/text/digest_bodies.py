"""Digests straight from bytes, by a plan: ``-o summary`` and ``doctor`` take 1.8 times as long from dicts.

For whoever looks at a few values of most messages and at all of a few (``kwiresniff.digest``); ``clients`` takes 4.6
times as long. A body that has a digest reads as its definition says, and has nothing in it that somebody would have to
tell but error codes, which are given beside it, and bytes behind it. Whatever else is unusual has none, and is decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from kwiresniff.base.batch_layout import (
    BASE_SEQUENCE_AT,
    CODEC_MASK,
    CODEC_NAMES,
    CONTROL,
    CRC_AT,
    LAST_DELTA_AT,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
)
from kwiresniff.base.entities import TOPIC_RESOURCE
from kwiresniff.codec.primitives import uuid_text
from kwiresniff.codec.text.batch_reader import SHORT, BatchHeader
from kwiresniff.codec.text.body_reader import BodyReader, int16, int32
from kwiresniff.codec.text.digest_steps import (
    A_GROUP,
    A_PARTITION,
    A_RESOURCE,
    A_TRANSACTION,
    ACKS,
    HIGH_WATERMARK,
    INDEX,
    LISTED,
    OFFSET,
    OPENED_TOPIC,
    PARTITIONS,
    REPLICA,
    RESOURCE_TYPE,
    SESSION,
    THROTTLE,
    TOPICS,
    digest_steps,
)
from kwiresniff.codec.text.plan import (
    BYTES,
    ERROR_CODE,
    JUMP,
    RECORDS,
    STRING,
    STRUCTURE,
    TAG_SECTION,
    TOPIC,
    TOPIC_ID,
    UUID,
    Step,
)
from kwiresniff.digest import Digest, PartitionDigest, TopicDigest, offset_behind
from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Topic ids whose text is remembered; a text takes a hundred bytes.
MAX_IDS: Final = 10_000

#: No offset of a record comes near this; added to one below it, the 32 bits of a delta stay within 64.
USUAL_OFFSETS: Final = 1 << 62
_NO_ID: Final = bytes(16)
_LAST_CODEC: Final = len(CODEC_NAMES) - 1


@final
class DigestReader(BodyReader):
    """Reads one body after another. ``is_internal`` tells of a topic's id whether it is one that Kafka keeps for itself
    and whose records are opened."""

    def __init__(self, is_internal: Callable[[str], bool]) -> None:
        super().__init__()
        self._is_internal = is_internal
        self._plans: dict[tuple[int, int, Direction], list[Step] | None] = {}
        self._ids: dict[bytes, str] = {}
        self._last_raw, self._last_name = b"", ""
        self._resource: i64 = 0  # the type of the one whose name comes
        self._batch = BatchHeader()
        self._found = Digest()
        self._nowhere = TopicDigest()  # stands for a topic where none is being read
        self._topic = self._nowhere
        self._partition = PartitionDigest()

    def steps(self, api_key: int, version: int, direction: Direction) -> list[Step] | None:
        """How a message is read; None for one that is not."""
        key = (api_key, version, direction)
        if key not in self._plans:
            steps: list[Step] | None = None
            with suppress(SchemaError):
                steps = digest_steps(api_key, version, direction)
            self._plans[key] = steps
        return self._plans[key]

    def digest(
        self, steps: list[Step], frame: bytes, offset: i64, errors: list[tuple[str, int]] | None = None
    ) -> Digest | None:
        """What the body says, with where it ends in ``pos``; None for one with anything unusual but bytes behind it.

        An error code is nothing unusual where ``errors`` gets its path and itself.
        """
        self.begin(frame, errors)
        self._found = Digest()
        self._topic = self._nowhere
        try:
            end: i64 = self._pass(steps, offset)
        except (IndexError, UnicodeDecodeError):
            return None
        self.pos = end
        return self._found if 0 <= end <= len(frame) else None

    def _pass(self, steps: list[Step], pos: i64) -> i64:
        """Where the bytes behind ``steps`` begin, or -1."""
        frame = self.frame
        for step in steps:
            kind: i64 = step.kind
            if kind == JUMP:
                pos += step.least
            elif step.array:
                pos = self._array(step, pos)
                if pos < 0:
                    return -1
            elif kind == ERROR_CODE:
                code = int16(frame, pos)
                if code:
                    if self.errors is None:
                        return -1
                    self.errors.append((step.name, code))
                pos += 2
            elif kind == TAG_SECTION:
                if frame[pos] == 0:
                    pos += 1
                elif self.unknown_tags(step, pos) is None:
                    return -1
                else:
                    pos = self.pos
            elif kind == STRING or kind == TOPIC or kind == BYTES or kind == RECORDS:  # noqa: SIM109 - comparisons when compiled
                pos = self._sized(step, kind, pos)
                if pos < 0:
                    return -1
            elif kind == STRUCTURE:
                mark: i64 = frame[pos]
                pos += 1
                if mark == 1:
                    first: i64 = self.error_count()
                    pos = self._pass(step.steps, pos)
                    if pos < 0:
                        return -1
                    if self.error_count() > first:
                        self.place_errors(first, step.name)
                elif mark != 255:
                    return -1
            elif kind == UUID or kind == TOPIC_ID:  # noqa: SIM109
                if pos + 16 > len(frame) or not self._topic_id(step, frame[pos : pos + 16]):
                    return -1
                pos += 16
            else:
                self._number(step.role, self.number(kind, pos))
                pos = self.pos
        return pos

    def _sized(self, step: Step, kind: i64, pos: i64) -> i64:
        """What has a length; where the bytes behind it begin, or -1."""
        length: i64 = self.length_of(step, pos)
        pos = self.pos
        if length < 0:
            if length == -1:
                return pos
            return -1
        stop: i64 = pos + length
        if kind == RECORDS:
            return self._record_set(pos, stop)
        if kind != BYTES and (length or step.role > LISTED):
            raw = self.frame[pos:stop]
            if not step.role:
                raw.decode()  # what is no UTF-8 has no digest
            elif not self._name(step.role, self._text(raw)):
                return -1
        return stop

    def _text(self, raw: bytes) -> str:
        """A name from the wire: the one before it where it is the same, as most answers name what was asked for."""
        if raw != self._last_raw:
            self._last_name = raw.decode()
            self._last_raw = raw
        return self._last_name

    def _array(self, step: Step, pos: i64) -> i64:
        count: i64 = self.count_of(step, pos)
        pos = self.pos
        if count < 0:
            if count == -1:
                return pos
            return -1
        inside = step.steps
        if len(inside) == 1 and inside[0].kind == JUMP:
            return pos + count * inside[0].least
        role: i64 = step.role
        known: i64 = self.error_count()
        all_of_them: i64 = count
        while count > 0:
            count -= 1
            if role == PARTITIONS:
                self._partition = PartitionDigest()
                self._topic.partitions.append(self._partition)
            elif role == TOPICS:
                self._begin_topic()
            pos = self._pass(inside, pos)
            if pos < 0:
                return -1
            if self.errors is not None and len(self.errors) > known:
                if step.kind != STRUCTURE:
                    return -1
                known = self.place_errors(known, f"{step.name}[{all_of_them - count - 1}]")
        if role == TOPICS:
            self._topic = self._nowhere
        return pos

    def _begin_topic(self) -> None:
        topic = self._topic = TopicDigest()
        found = self._found
        if found.parts is None:
            found.parts = [topic]
        else:
            found.parts.append(topic)

    def _number(self, role: i64, number: i64) -> None:
        found = self._found
        if role == INDEX:
            self._partition.index = number
        elif role == A_PARTITION:
            if found.partitions is None:
                found.partitions = [number]
            else:
                found.partitions.append(number)
        elif role == OFFSET:
            self._partition.offset = number
        elif role == HIGH_WATERMARK:
            self._partition.high_watermark = number
        elif role == THROTTLE:
            found.throttle_time_ms = number
        elif role == ACKS:
            found.acks = number
        elif role == SESSION:
            found.session_id = number
        elif role == REPLICA:
            found.replica_id = number
        elif role == RESOURCE_TYPE:
            self._resource = number

    def _topic_id(self, step: Step, raw: bytes) -> bool:
        """Note a topic's id; False for one whose records are to be opened."""
        if raw == _NO_ID:
            return True
        text = self._ids.get(raw)
        if text is None:
            text = uuid_text(raw)
            if len(self._ids) >= MAX_IDS:
                self._ids.clear()
            self._ids[raw] = text
        if step.role == OPENED_TOPIC:
            if self._is_internal(text):
                return False
            self._topic.name = text
            self._topic.is_id = True
        if self._found.topic_ids is None:
            self._found.topic_ids = [text]
        else:
            self._found.topic_ids.append(text)
        return True

    def _name(self, role: i64, name: str) -> bool:
        """Note a name; False for that of a topic whose records are to be opened."""
        found = self._found
        kind: i64 = role & (LISTED - 1)
        if role == A_RESOURCE and self._resource != TOPIC_RESOURCE:
            return True
        if kind == A_GROUP:
            if found.groups is None:
                found.groups = [name]
            else:
                found.groups.append(name)
        elif kind == A_TRANSACTION:
            if found.transactional_ids is None:
                found.transactional_ids = [name]
            else:
                found.transactional_ids.append(name)
        else:
            if kind == OPENED_TOPIC:
                if name.startswith("__"):
                    return False
                self._topic.name = name
            if found.topics is None:
                found.topics = [name]
            else:
                found.topics.append(name)
        return True

    def _record_set(self, pos: i64, end: i64) -> i64:
        """Batches of which nothing would have to be told; where the bytes behind them begin, or -1."""
        frame = self.frame
        found = self._found
        batch = self._batch
        start = pos
        while pos < end:
            self.left -= 1
            stop: i64 = batch.read(frame, pos, end)
            if stop == SHORT:
                found.is_cut = self._partition.is_cut = True
                return end
            if stop < 0 or self.left < 0 or batch.attributes & CODEC_MASK > _LAST_CODEC:
                return -1
            found.batches += 1
            found.records += batch.count
            self._partition.all_bytes += stop - pos
            if pos == start:
                self._partition.first_offset = batch.base_offset
                crc: i64 = int32(frame, pos + CRC_AT)
                self._partition.crc = crc & 0xFFFFFFFF
            if not self._add_batch(pos, stop):
                return -1
            pos = stop
        return end

    def _add_batch(self, pos: i64, stop: i64) -> bool:
        """Note a batch of the partition that is being read; False for one of another codec than those before it."""
        frame = self.frame
        batch = self._batch
        partition = self._partition
        base, delta = batch.base_offset, int32(frame, pos + LAST_DELTA_AT)
        usual = -USUAL_OFFSETS < base < USUAL_OFFSETS
        partition.end_offset = base + delta + 1 if usual else offset_behind(base, delta)
        if not batch.attributes & CONTROL:
            codec: i64 = batch.attributes & CODEC_MASK
            if not partition.batches:
                partition.codec = codec
            elif partition.codec != codec:
                return False
            partition.batches += 1
            partition.size_bytes += stop - pos
            partition.records += batch.count
        if frame[pos + PRODUCER_ID_AT] < 128:
            if not partition.is_idempotent and frame[pos + BASE_SEQUENCE_AT] < 128:
                partition.producer = frame[pos + PRODUCER_ID_AT : pos + RECORDS_COUNT_AT]
            partition.is_idempotent = True
        return True
