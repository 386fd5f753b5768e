"""Record batches for the compiled writers: where each ends, and the fields of its header once it is checked.

The batches of an ordinary record set, read by machine integers. Whatever is unusual (a message set, control records, a
wrong CRC, records that may be Kafka Connect's) is left to ``kwiresniff.codec.records`` and
``kwiresniff.codec.record_dissector``; if all were read by them, as dicts or nodes, JSON text and trees would take about
ten times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i64_be

from kwiresniff.base.batch_layout import (
    ATTRIBUTES_AT,
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
    RECORDS_COUNT_AT,
)
from kwiresniff.base.connect_records import KEY_BEGINS, VALUE_BEGINS, may_be_connects
from kwiresniff.codec.batch_libraries import crc32c
from kwiresniff.codec.body_reader import int16, int32
from kwiresniff.codec.compression import decompress_within
from kwiresniff.codec.record_limits import MAX_BATCH_BYTES, RecordBudget
from kwiresniff.codec.record_reader import VARLONG_BYTES, RecordReader

if TYPE_CHECKING:
    from mypy_extensions import i64

#: In the place of a position: a batch that somebody else has to read, and one at the end of a set that is cut short.
UNUSUAL: Final = -1
SHORT: Final = -2


def batch_stop(frame: bytes, pos: i64, end: i64) -> i64:
    """The end of the batch of magic 2 at ``pos``; UNUSUAL for another batch, SHORT for one cut off at ``end``."""
    if end - pos < LOG_OVERHEAD:
        return SHORT
    if end - pos <= MAGIC_AT or frame[pos + MAGIC_AT] != 2:
        return UNUSUAL
    length: i64 = int32(frame, pos + LENGTH_AT)
    if length < HEADER_BYTES - LOG_OVERHEAD or length > MAX_BATCH_BYTES:
        return UNUSUAL
    stop: i64 = pos + LOG_OVERHEAD + length
    if stop > end:
        return SHORT
    return stop


class BatchHeader:
    """The fields of the header read last: ``count`` is the number of records of the batch."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self.attributes: i64 = 0
        self.base_offset: i64 = 0

    def read(self, frame: bytes, pos: i64, end: i64) -> i64:
        """The batch at ``pos`` of a set that goes on to ``end``; returns what ``batch_stop`` does."""
        stop: i64 = batch_stop(frame, pos, end)
        if stop >= 0:
            self.count = int32(frame, pos + RECORDS_COUNT_AT)
            self.attributes = int16(frame, pos + ATTRIBUTES_AT)
            self.base_offset = read_i64_be(frame, pos)
        return stop


@final
class BatchReader(BatchHeader):
    """Reads batches; the ``count`` records of the last one lie in ``data[first:last]``, decompressed."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""
        self.first: i64 = 0
        self.last: i64 = 0
        self.crc: i64 = 0
        self.base_timestamp: i64 = 0
        self.max_timestamp: i64 = 0
        self.append_time = False
        self._crc32c: Callable[[bytes], int] | None = None
        self._records = RecordReader()

    def open(self, frame: bytes, pos: i64, end: i64, budget: RecordBudget) -> i64:
        """Checks and decompresses the batch at ``pos``; returns its end, UNUSUAL or SHORT. Raises DecodeError."""
        stop: i64 = self.read(frame, pos, end)
        if stop < 0:
            return stop
        attributes: i64 = self.attributes
        count: i64 = self.count
        if attributes & CONTROL or count < 0 or count > budget.records or budget.take_batch(pos) is not None:
            return UNUSUAL
        word: i64 = int32(frame, pos + CRC_AT)
        self.crc = word & 0xFFFFFFFF
        if self._crc32c is None:
            self._crc32c = crc32c()
        if self.crc != self._crc32c(frame[pos + ATTRIBUTES_AT : stop]):
            return UNUSUAL
        codec: i64 = attributes & CODEC_MASK
        self.data = frame
        self.first = pos + HEADER_BYTES
        self.last = stop
        if codec:
            self.data = decompress_within(budget, codec, frame[pos + HEADER_BYTES : stop])
            self.first = 0
            self.last = len(self.data)
        if self._may_be_connects():
            return UNUSUAL
        budget.records -= count
        self.base_timestamp = read_i64_be(frame, pos + BASE_TIMESTAMP_AT)
        self.max_timestamp = read_i64_be(frame, pos + MAX_TIMESTAMP_AT)
        self.append_time = attributes & LOG_APPEND_TIME != 0
        return stop

    def _may_be_connects(self) -> bool:
        """Whether a record may be one of Connect's, or cannot be read."""
        data, reader = self.data, self._records
        pos: i64 = self.first
        left: i64 = self.count
        while left > 0:
            left -= 1
            pos = reader.front(data, pos, self.last, VARLONG_BYTES)
            if pos < 0:
                return True
            key_bytes: i64 = reader.sized(data, pos, reader.stop)
            key: i64 = reader.pos
            if key < 0:
                return True
            key_end: i64 = key + key_bytes if key_bytes > 0 else key
            value_bytes: i64 = reader.sized(data, key_end, reader.stop)
            value: i64 = reader.pos
            if value < 0:
                return True
            # Most keys and values do not even begin so.
            if (key_bytes > 0 and KEY_BEGINS[data[key]]) or (value_bytes > 0 and data[value] == VALUE_BEGINS):
                value_end = value + value_bytes if value_bytes > 0 else value
                if may_be_connects(data[key:key_end], data[value:value_end]):
                    return True
            pos = reader.stop
        return False
