"""Record sets as the rows of a tree, straight from their bytes (``kwiresniff.codec.text.batch_reader``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter, read_i64_be

from kwiresniff.base.batch_layout import (
    BASE_SEQUENCE_AT,
    CODEC_MASK,
    HEADER_BYTES,
    LENGTH_AT,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    TRANSACTIONAL,
)
from kwiresniff.base.body_members import CUT_SHORT
from kwiresniff.base.json_text import write_number
from kwiresniff.base.tree_sizes import BATCHES_SHOWN
from kwiresniff.codec.batch_header import header_fields
from kwiresniff.codec.record_limits import BATCH_NODES, COMPRESSED_NODES, RecordBudget
from kwiresniff.codec.text.batch_reader import SHORT, UNUSUAL, BatchReader
from kwiresniff.codec.text.body_reader import int16, int32
from kwiresniff.codec.text.tree_records import KEPT_SECONDS, RecordRows, write_thousandths
from kwiresniff.codec.text.tree_text import ValueWriter
from kwiresniff.codec.text.tree_wording import Words
from kwiresniff.errors import DecodeError

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Batches whose size and count are kept as text, and the largest such count.
_KEPT: Final = 4096
_MAX_KEPT_COUNT: Final = 0xFFFF


@final
class RecordSetRows(RecordRows):
    """Adds the rows of record sets, see ``RecordRows``."""

    def __init__(self, words: Words, values: ValueWriter, depths: BytesWriter) -> None:
        super().__init__(words, values, depths)
        self.batch = BatchReader()
        self.budget: RecordBudget | None = None  # of the message that is being read
        self.batch_second: i64 = 0
        self.batch_second_text = words.instant(0)
        self.batch_seconds: dict[int, bytes] = {}
        self.facts: dict[int, bytes] = {}
        self.batches = [words.key(f"batch[{index}]") for index in range(BATCHES_SHOWN)]

    def write(self, frame: bytes, start: i64, end: i64, size: i64, name: str, depth: i64) -> bool:
        """The batches of ``frame[start:end]``, a field of ``size`` bytes; False for anything unusual in them."""
        if self.budget is None:
            self.budget = RecordBudget(len(frame))
        budget = self.budget
        if not fills(frame, start, end):
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

    def drawn(
        self, frame: bytes, start: i64, end: i64, size: i64, name: str, budget: RecordBudget
    ) -> list[bytes] | None:
        """The rows of one record set alone, their depths first, see ``write``; None for one with anything unusual. How
        many nodes it would have is in ``nodes`` then.
        """
        self.rows = [b""]
        self.depths.truncate(0)
        self.nodes = 0
        self.budget = budget
        try:
            is_usual = self.write(frame, start, end, size, name, 0)
        except (IndexError, UnicodeDecodeError, DecodeError):
            is_usual = False
        self.budget = None
        if not is_usual:
            self.out.truncate(0)
            return None
        self.rows[0] = self.depths.getvalue()
        return self.rows

    def _batch(self, frame: bytes, pos: i64, end: i64, budget: RecordBudget, index: i64, depth: i64) -> i64:
        """A batch of magic 2 with nothing unusual about it; returns where it ends, or -1."""
        batch = self.batch
        stop: i64 = batch.open(frame, pos, end, budget)
        if stop == SHORT:
            return UNUSUAL if budget.take_batch(pos) is not None else self._cut_short(frame, pos, end, index, depth)
        if stop < 0 or not self.check(batch, budget):
            return UNUSUAL
        self.nodes += BATCH_NODES + (COMPRESSED_NODES if batch.attributes & CODEC_MASK else 0)
        if index < BATCHES_SHOWN:
            self._batch_row(frame, pos, stop, index, depth)
            self.add_records(batch, depth + 1)
        return stop

    def _cut_short(self, frame: bytes, pos: i64, end: i64, index: i64, depth: i64) -> i64:
        self.nodes += 1 + len(header_fields(frame, pos, end))
        if index < BATCHES_SHOWN:
            size: int = end - pos
            text = self.words.span("dim", f" {self.words.size(size).decode()}, {CUT_SHORT}")
            self.add_row(depth, self.batches[index] + text)
        return end

    def _batch_row(self, frame: bytes, pos: i64, stop: i64, index: i64, depth: i64) -> None:
        out = self.out
        batch = self.batch
        codec: i64 = batch.attributes & CODEC_MASK
        compressed: i64 = stop - pos - HEADER_BYTES if codec else 0
        out.write(self.batches[index])
        out.write(self.marks.gap)
        out.write(self._facts(batch.count, stop - pos, compressed, batch.last - batch.first, codec))
        out.write(self.marks.gap)
        out.write(self.marks.base_offset)
        out.write(self.marks.ident)
        write_number(out, batch.base_offset)
        out.write(self.marks.ident_off)
        out.write(self.marks.gap)
        out.write(self.marks.append_time if batch.append_time else self.marks.create_time)
        self._instant(batch.base_timestamp)
        producer_id: i64 = read_i64_be(frame, pos + PRODUCER_ID_AT)
        if producer_id != -1:
            out.write(self.marks.gap)
            self._number(self.marks.producer_id, producer_id)
            self._number(self.marks.epoch, int16(frame, pos + PRODUCER_EPOCH_AT))
            self._number(self.marks.sequence, int32(frame, pos + BASE_SEQUENCE_AT))
        if batch.attributes & TRANSACTIONAL:
            out.write(self.marks.gap)
            out.write(self.marks.transactional)
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
        out.write(self.marks.plain)
        write_number(out, number)
        out.write(self.marks.plain_off)

    def _instant(self, milliseconds: i64) -> None:
        out = self.out
        if milliseconds == NO_TIMESTAMP:
            out.write(self.marks.no_time)
            return
        second: i64 = milliseconds // 1000
        if second != self.batch_second:
            self.batch_second = second
            self.batch_second_text = self._instant_text(second)
        out.write(self.marks.plain)
        out.write(self.batch_second_text)
        write_thousandths(out, milliseconds - second * 1000)
        out.append(90)
        out.write(self.marks.plain_off)

    def _instant_text(self, second: int) -> bytes:
        text = self.batch_seconds.get(second)
        if text is None:
            if len(self.batch_seconds) >= KEPT_SECONDS:
                self.batch_seconds.clear()
            text = self.batch_seconds[second] = self.words.instant(second)
        return text


def fills(frame: bytes, pos: i64, end: i64) -> bool:
    """Whether what begins at ``pos`` is all that there is before ``end``: a batch, or less."""
    if end - pos < LOG_OVERHEAD:
        return True
    stop: i64 = pos + LOG_OVERHEAD + int32(frame, pos + LENGTH_AT)
    return stop <= pos or stop >= end
