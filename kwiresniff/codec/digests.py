"""Digests straight from bytes, by a plan: ``-o summary`` and ``doctor`` take 1.8 times as long from dicts.

For whoever looks at a few values of most messages and at all of a few (``kwiresniff.digest``); ``clients`` takes 4.6
times as long. A body that has a digest reads as its definition says, and has nothing in it that somebody would have to
tell but error codes, which are given beside it, and bytes behind it. Whatever else is unusual has none, and is decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i64_be

from kwiresniff.base.batch_layout import (
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    CODEC_MASK,
    CODEC_NAMES,
    CONTROL,
    CRC_AT,
    LAST_DELTA_AT,
    LOG_APPEND_TIME,
    MAX_TIMESTAMP_AT,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
)
from kwiresniff.base.entities import TOPIC_RESOURCE
from kwiresniff.codec.batch_reader import SHORT, BatchHeader
from kwiresniff.codec.body_reader import int32
from kwiresniff.codec.body_walker import LISTED, NO_ID, BodyWalker
from kwiresniff.codec.digest_roles import (
    A_GROUP,
    A_PARTITION,
    A_RESOURCE,
    A_TRANSACTION,
    ACKS,
    HIGH_WATERMARK,
    INDEX,
    OFFSET,
    OPENED_TOPIC,
    PARTITIONS,
    REPLICA,
    RESOURCE_TYPE,
    SESSION,
    THROTTLE,
    TOPICS,
    digest_plan,
)
from kwiresniff.codec.plan import Step
from kwiresniff.codec.primitives import uuid_text
from kwiresniff.digest import Digest, PartitionDigest, TopicDigest, offset_behind
from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Topic ids whose text is remembered; a text takes a hundred bytes.
MAX_IDS: Final = 10_000

#: No offset of a record comes near this; added to one below it, the 32 bits of a delta stay within 64.
USUAL_OFFSETS: Final = 1 << 62
_LAST_CODEC: Final = len(CODEC_NAMES) - 1


@final
class DigestReader(BodyWalker):
    """Reads digests; ``is_internal`` says of a topic id that its records are opened elsewhere."""

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
        """The plan for the digest of a message; None for one without."""
        key = (api_key, version, direction)
        if key not in self._plans:
            steps: list[Step] | None = None
            with suppress(SchemaError):
                steps = digest_plan(api_key, version, direction)
            self._plans[key] = steps
        return self._plans[key]

    def digest(
        self, steps: list[Step], frame: bytes, offset: i64, errors: list[tuple[str, int]] | None = None
    ) -> Digest | None:
        """The digest, with its end in ``pos``; None for an unusual body. Error codes go to ``errors`` if given."""
        self.begin(frame, errors)
        self.failed = self.garbled = False
        self._found = Digest()
        self._topic = self._nowhere
        self._partition = PartitionDigest()  # of records that stand in none, as those of a ShareFetch
        end: i64 = self.walk(steps, offset)
        self.pos = end
        if end < 0 or end > len(frame) or self.garbled or (self.failed and errors is None):
            return None
        return self._found

    def takes_tag(self) -> bool:
        return False  # the values of those that are not there would be missing

    def begin_element(self, role: i64) -> None:
        if role == PARTITIONS:
            self._partition = PartitionDigest()
            self._topic.partitions.append(self._partition)
        elif role == TOPICS:
            topic = self._topic = TopicDigest()
            found = self._found
            if found.parts is None:
                found.parts = [topic]
            else:
                found.parts.append(topic)

    def end_elements(self, role: i64) -> None:
        if role == TOPICS:
            self._topic = self._nowhere

    def take_number(self, step: Step, number: i64) -> None:
        found = self._found
        role: i64 = step.role
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

    def take_id(self, step: Step, raw: bytes) -> bool:
        """Takes a topic's id; False for one whose records are to be opened."""
        if raw == NO_ID:
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

    def take_text(self, step: Step, raw: bytes) -> bool:
        """Takes a name, mostly the previous one again; False for a topic whose records are opened."""
        if raw != self._last_raw:
            self._last_name = raw.decode()
            self._last_raw = raw
        name = self._last_name
        found = self._found
        role: i64 = step.role
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

    def take_records(self, step: Step, pos: i64, end: i64) -> i64:
        """Takes batches without anything to report."""
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
        """Notes a batch of the partition that is being read; False for one of another codec than those before it."""
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
            stamp_at: i64 = MAX_TIMESTAMP_AT if batch.attributes & LOG_APPEND_TIME else BASE_TIMESTAMP_AT
            ms: i64 = read_i64_be(frame, pos + stamp_at)
            if ms >= 0 and (partition.oldest_ms < 0 or ms < partition.oldest_ms):
                partition.oldest_ms = ms
            partition.size_bytes += stop - pos
            partition.records += batch.count
        if frame[pos + PRODUCER_ID_AT] < 128:
            if not partition.is_idempotent and frame[pos + BASE_SEQUENCE_AT] < 128:
                partition.producer = frame[pos + PRODUCER_ID_AT : pos + RECORDS_COUNT_AT]
            partition.is_idempotent = True
        return True
