"""Record sets as a tree shows them: the first records of the first batches as dicts, all others checked and counted.

A fetch brings thousands of records, of which a tree shows ten a batch. What comes out is a part of what
``kwiresniff.codec.records`` gives. That decodes the whole set where a batch has anything but sound records of magic 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from librt.strings import read_i64_be

from kwiresniff.base.batch_layout import (
    BASE_SEQUENCE_AT,
    CODEC_MASK,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
)
from kwiresniff.base.tree_sizes import BATCHES_SHOWN, HEADERS_SHOWN, RECORDS_SHOWN
from kwiresniff.codec.batch_reader import SHORT, BatchReader
from kwiresniff.codec.body_reader import int16, int32
from kwiresniff.codec.record import header_key
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.record_reader import RecordReader, is_sane
from kwiresniff.codec.records import decode_record_set
from kwiresniff.errors import DecodeError
from kwiresniff.model import Problem, RecordsMode

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Stands for a header that is not shown.
_FOLDED: Final[dict[str, Any]] = {}


def decode_shown(
    frame: bytes,
    start: i64,
    end: i64,
    mode: RecordsMode,
    issues: list[Problem],
    budget: RecordBudget,
    *,
    unaligned: bool = False,
) -> Any:
    """The batches of ``frame[start:end]``, see ``kwiresniff.codec.records.decode_record_set``.

    Of a batch there are the first ``RECORDS_SHOWN`` records; behind ``BATCHES_SHOWN`` batches one dict stands for all
    others, with their number (``folded_batches``) and their bytes.
    """
    before = budget.state()
    try:
        batches = None if unaligned else _ShownRecords(frame, budget).batches(start, end)
    except (IndexError, DecodeError):
        batches = None
    if batches is None:
        budget.restore(before)
        return decode_record_set(frame, start, end, "full", issues, budget, unaligned=unaligned)
    return batches


@final
class _ShownRecords(RecordReader):
    """Reads one record set."""

    def __init__(self, frame: bytes, budget: RecordBudget) -> None:
        super().__init__()
        self.frame = frame
        self.budget = budget
        self.batch = BatchReader()

    def batches(self, pos: i64, end: i64) -> list[dict[str, Any]] | None:
        """The batches from ``pos`` to ``end``; None where any is not sound."""
        found: list[dict[str, Any]] = []
        count: i64 = 0
        while pos < end:
            if count == BATCHES_SHOWN:
                found.append({"folded_batches": 0, "size_bytes": end - pos})
            stop: i64 = self.batch.open(self.frame, pos, end, self.budget)
            if stop == SHORT and self.budget.take_batch(pos) is None:
                stop = end
                if count < BATCHES_SHOWN:
                    found.append({"truncated": True, "size_bytes": end - pos})
            elif stop < 0:
                return None
            else:
                records: list[dict[str, Any]] = []
                if not self.records(records, RECORDS_SHOWN if count < BATCHES_SHOWN else 0):
                    return None
                if count < BATCHES_SHOWN:
                    found.append(self.header(pos, stop, records))
            count += 1
            pos = stop
        if count > BATCHES_SHOWN:
            found[-1]["folded_batches"] = count - BATCHES_SHOWN
        return found

    def header(self, pos: i64, stop: i64, records: list[dict[str, Any]]) -> dict[str, Any]:
        """The batch that was read last, ``frame[pos:stop]``, without what a tree does not show."""
        batch, frame = self.batch, self.frame
        return {
            "base_offset": batch.base_offset,
            "magic": 2,
            "attributes": batch.attributes,
            "base_timestamp": batch.base_timestamp,
            "producer_id": read_i64_be(frame, pos + PRODUCER_ID_AT),
            "producer_epoch": int16(frame, pos + PRODUCER_EPOCH_AT),
            "base_sequence": int32(frame, pos + BASE_SEQUENCE_AT),
            "records_count": batch.count,
            "is_control": False,
            "size_bytes": stop - pos,
            "uncompressed_size_bytes": batch.last - batch.first if batch.attributes & CODEC_MASK else None,
            "records": records,
        }

    def records(self, found: list[dict[str, Any]], shown: i64) -> bool:
        """Whether the records fill the batch and are sound; the first ``shown`` are added to ``found``."""
        batch = self.batch
        data, end, count = batch.data, batch.last, batch.count
        base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
        if not is_sane(data, end, base_offset, base_timestamp):
            return False
        pos: i64 = batch.first
        index: i64 = 0
        while index < count:
            pos = self.front(data, pos, end)
            if pos < 0:
                return False
            stop: i64 = self.stop
            offset: i64 = base_offset + self.offset_delta
            timestamp: i64 = batch.max_timestamp if batch.append_time else base_timestamp + self.timestamp_delta
            key_size: i64 = self.sized(data, pos, stop)
            key_at: i64 = self.pos
            if key_at < 0:
                return False
            value_size: i64 = self.sized(data, key_at + key_size if key_size > 0 else key_at, stop)
            value_at: i64 = self.pos
            if value_at < 0:
                return False
            pos = value_at + value_size if value_size > 0 else value_at
            if pos >= stop:
                return False
            headers: list[dict[str, Any]] | None = [] if index < shown else None
            if data[pos] == 0:
                pos += 1
            else:
                pos = self.headers(data, pos, stop, headers)
            if pos != stop:
                return False
            if headers is not None:
                key = data[key_at : key_at + key_size] if key_size >= 0 else None
                value = data[value_at : value_at + value_size] if value_size >= 0 else None
                found.append({"offset": offset, "timestamp": timestamp, "key": key, "value": value, "headers": headers})
            index += 1
        return pos == end

    def headers(self, data: bytes, pos: i64, stop: i64, found: list[dict[str, Any]] | None) -> i64:
        """Where the headers of a record end, or -1; the first ``HEADERS_SHOWN`` are added to ``found``."""
        count: i64 = self.header_count(data, pos, stop)
        pos = self.pos
        if count < 0 or count > self.budget.headers:
            return -1
        self.budget.headers -= count
        index: i64 = 0
        while index < count:
            key_size: i64 = self.sized(data, pos, stop)
            key_at: i64 = self.pos
            if key_at < 0 or key_size < 0:
                return -1
            value_size: i64 = self.sized(data, key_at + key_size, stop)
            value_at: i64 = self.pos
            if value_at < 0:
                return -1
            pos = value_at + value_size if value_size > 0 else value_at
            if found is not None and index < HEADERS_SHOWN:
                value = data[value_at:pos] if value_size >= 0 else None
                found.append({"key": header_key(data[key_at : key_at + key_size]), "value": value})
            index += 1
        if found is not None and count > HEADERS_SHOWN:
            found += [_FOLDED] * (count - HEADERS_SHOWN)
        return pos
