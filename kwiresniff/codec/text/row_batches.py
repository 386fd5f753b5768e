"""Record sets as the rows of a tree. Layouts and sources: ``kwiresniff.codec.batch``, ``kwiresniff.codec.record``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import google_crc32c
from librt.strings import BytesWriter, read_i64_be

from kwiresniff.base.batch_layout import (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    CODEC_MASK,
    CONTROL,
    CRC_AT,
    HEADER_BYTES,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    NO_TIMESTAMP,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    RECORDS_COUNT_AT,
    TRANSACTIONAL,
)
from kwiresniff.base.body_members import CUT_SHORT
from kwiresniff.codec.compression import decompress
from kwiresniff.codec.record_limits import MAX_BATCH_BYTES, Budget
from kwiresniff.codec.text.row_records import RecordRows, write_thousandths
from kwiresniff.codec.text.values import ValueWriter
from kwiresniff.codec.text.words import Words
from kwiresniff.jsontext import int16, int32, write_number

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Batches of a record set that are shown; the same number as in ``kwiresniff.render``.
BATCHES_SHOWN: Final = 8

#: What the walker makes of a batch: itself, its fields, its records.
_BATCH_NODES: Final = 17
#: Batches whose size and count are kept as text, and the largest such count.
_KEPT: Final = 4096
_MAX_KEPT_COUNT: Final = 0xFFFF


@final
class RecordSetRows(RecordRows):
    """Adds the rows of record sets, see ``RecordRows``."""

    def __init__(self, words: Words, values: ValueWriter, depths: BytesWriter) -> None:
        super().__init__(words, values, depths)
        self.batch_second: i64 = 0
        self.batch_second_text = words.instant(0)
        self.facts: dict[int, bytes] = {}
        self.batches = [words.key(f"batch[{index}]") for index in range(BATCHES_SHOWN)]
        self.base_offset = words.span("name", "base_offset ")
        self.create_time = words.span("name", "create_time ")
        self.append_time = words.span("name", "log_append_time ")
        self.none = words.span("value", "none")
        self.producer_id = words.span("name", "producer_id ")
        self.epoch = words.span("name", " epoch ")
        self.sequence = words.span("name", " sequence ")
        self.transactional = words.span("meaning", "transactional")

    def write(self, frame: bytes, start: i64, end: i64, size: i64, name: str, budget: Budget, depth: i64) -> bool:
        """The batches of ``frame[start:end]``, a field of ``size`` bytes; False for anything unusual in them."""
        if self._stop(frame, start, end) != end:
            head = self.words.span("name", f"{name} ") + self.words.span("value", self.words.size(size).decode())
            self.add_row(depth, head)
            depth += 1
        pos: i64 = start
        index: i64 = 0
        hidden: i64 = 0
        while pos < end:
            stop: i64 = self._batch(frame, pos, end, budget, index, depth)
            if stop < 0:
                return False
            if index >= BATCHES_SHOWN:
                hidden += stop - pos
            index += 1
            pos = stop
        if index > BATCHES_SHOWN:
            self.add_row(depth, self.words.hidden_batches(index - BATCHES_SHOWN, hidden))
        return True

    @staticmethod
    def _stop(frame: bytes, pos: i64, end: i64) -> i64:
        """Where a batch that begins at ``pos`` ends, no further than ``end``."""
        if end - pos < LOG_OVERHEAD:
            return end
        stop: i64 = pos + LOG_OVERHEAD + int32(frame, pos + LENGTH_AT)
        return stop if pos < stop < end else end

    def _batch(self, frame: bytes, pos: i64, end: i64, budget: Budget, index: i64, depth: i64) -> i64:
        """A batch of magic 2 with nothing unusual about it; returns where it ends, or -1."""
        self.nodes += _BATCH_NODES
        if budget.take_batch(pos) is not None:
            return -1
        if end - pos < LOG_OVERHEAD:
            return self._cut_short(pos, end, index, depth)
        if end - pos <= MAGIC_AT or frame[pos + MAGIC_AT] != 2:
            return -1
        length: i64 = int32(frame, pos + LENGTH_AT)
        stop: i64 = pos + LOG_OVERHEAD + length
        if length < HEADER_BYTES - LOG_OVERHEAD or length > MAX_BATCH_BYTES:
            return -1
        if stop > end:
            return self._cut_short(pos, end, index, depth)
        attributes: i64 = int16(frame, pos + ATTRIBUTES_AT)
        count: i64 = int32(frame, pos + RECORDS_COUNT_AT)
        if attributes & CONTROL or count < 0 or count > budget.records:
            return -1
        word: i64 = int32(frame, pos + CRC_AT)
        crc: i64 = word & 0xFFFFFFFF
        if crc != google_crc32c.value(frame[pos + ATTRIBUTES_AT : stop]):
            return -1
        codec: i64 = attributes & CODEC_MASK
        data = frame
        first: i64 = pos + HEADER_BYTES
        last: i64 = stop
        if codec:
            data = decompress(codec, frame[first:stop], budget.decompress_limit(stop - first))
            first = 0
            last = len(data)
            budget.decompressed_bytes -= last
        budget.records -= count
        if not self.check(
            data, first, last, count, read_i64_be(frame, pos), read_i64_be(frame, pos + BASE_TIMESTAMP_AT)
        ):
            return -1
        if index < BATCHES_SHOWN:
            compressed: i64 = stop - pos - HEADER_BYTES if codec else 0
            self._batch_row(frame, pos, stop, index, depth, compressed, last - first)
            append_time: i64 = read_i64_be(frame, pos + MAX_TIMESTAMP_AT)
            self.add_records(data, count, append_time, attributes & LOG_APPEND_TIME != 0, depth + 1)
        return stop

    def _cut_short(self, pos: i64, end: i64, index: i64, depth: i64) -> i64:
        if index < BATCHES_SHOWN:
            size: int = end - pos
            text = self.words.span("dim", f" {self.words.size(size).decode()}, {CUT_SHORT}")
            self.add_row(depth, self.batches[index] + text)
        return end

    def _batch_row(
        self, frame: bytes, pos: i64, stop: i64, index: i64, depth: i64, compressed: i64, uncompressed: i64
    ) -> None:
        out = self.out
        attributes: i64 = int16(frame, pos + ATTRIBUTES_AT)
        count: i64 = int32(frame, pos + RECORDS_COUNT_AT)
        out.write(self.batches[index])
        out.write(self.gap)
        out.write(self._facts(count, stop - pos, compressed, uncompressed, attributes & CODEC_MASK))
        out.write(self.gap)
        out.write(self.base_offset)
        out.write(self.ident)
        write_number(out, read_i64_be(frame, pos))
        out.write(self.ident_off)
        out.write(self.gap)
        out.write(self.append_time if attributes & LOG_APPEND_TIME else self.create_time)
        self._instant(read_i64_be(frame, pos + BASE_TIMESTAMP_AT))
        producer_id: i64 = read_i64_be(frame, pos + PRODUCER_ID_AT)
        if producer_id != -1:
            out.write(self.gap)
            self._number(self.producer_id, producer_id)
            self._number(self.epoch, int16(frame, pos + PRODUCER_EPOCH_AT))
            self._number(self.sequence, int32(frame, pos + BASE_SEQUENCE_AT))
        if attributes & TRANSACTIONAL:
            out.write(self.gap)
            out.write(self.transactional)
        self.add_row(depth, out.getvalue())
        out.truncate(0)

    def _facts(self, count: i64, size: i64, compressed: i64, uncompressed: i64, codec: i64) -> bytes:
        """How many records there are in how many bytes."""
        if codec or count > _MAX_KEPT_COUNT:
            return self.words.batch(count, size, compressed, uncompressed, codec)
        key: int = size * (_MAX_KEPT_COUNT + 1) + count
        text = self.facts.get(key)
        if text is None:
            if len(self.facts) >= _KEPT:
                self.facts.clear()
            text = self.facts[key] = self.words.batch(count, size, 0, uncompressed, 0)
        return text

    def _number(self, name: bytes, number: i64) -> None:
        out = self.out
        out.write(name)
        out.write(self.plain)
        write_number(out, number)
        out.write(self.plain_off)

    def _instant(self, milliseconds: i64) -> None:
        out = self.out
        if milliseconds == NO_TIMESTAMP:
            out.write(self.none)
            return
        second: i64 = milliseconds // 1000
        if second != self.batch_second:
            self.batch_second = second
            self.batch_second_text = self.words.instant(second)
        out.write(self.plain)
        out.write(self.batch_second_text)
        write_thousandths(out, milliseconds - second * 1000)
        out.append(90)
        out.write(self.plain_off)
