"""Record sets as a tree shows them: the first records of the first batches as dicts, all others checked and counted.

A fetch brings thousands of records, of which a tree shows ten a batch. What comes out is a part of what
``kwiresniff.codec.records`` gives. That decodes the whole set where a batch has anything but sound records of magic 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

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
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.record_reader import RecordDicts
from kwiresniff.codec.records import decode_record_set
from kwiresniff.errors import DecodeError
from kwiresniff.model import Problem, RecordsMode

if TYPE_CHECKING:
    from mypy_extensions import i64


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
    """The first ``BATCHES_SHOWN`` batches of ``frame[start:end]`` with ``RECORDS_SHOWN`` records each; one dict stands
    for the others, with their number (``folded_batches``) and bytes.
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
class _ShownRecords:
    """Reads one record set."""

    def __init__(self, frame: bytes, budget: RecordBudget) -> None:
        self.frame = frame
        self.budget = budget
        self.batch = BatchReader()
        self._records = RecordDicts()

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
        batch, records = self.batch, self._records
        pos: i64 = records.read(
            batch.data,
            batch.first,
            batch.last,
            batch.base_offset,
            batch.base_timestamp,
            batch.count,
            found,
            self.budget,
            shown,
            HEADERS_SHOWN,
        )
        if batch.append_time:
            for record in found:
                record["timestamp"] = batch.max_timestamp
        return records.count == batch.count and pos == batch.last
