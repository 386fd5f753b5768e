"""Record sets as JSON text, straight from their bytes (``kwiresniff.codec.batch_reader``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from librt.strings import BytesWriter, read_i64_be

from kwiresniff.base.batch_layout import (
    BASE_SEQUENCE_AT,
    CODEC_MASK,
    LAST_DELTA_AT,
    LEADER_EPOCH_AT,
    LOG_OVERHEAD,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    TRANSACTIONAL,
)
from kwiresniff.base.connect_records import may_be_opened
from kwiresniff.base.json_text import write_number
from kwiresniff.codec.batch_reader import UNUSUAL, BatchReader
from kwiresniff.codec.body_reader import int16, int32
from kwiresniff.codec.compression import codec_name
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.records import decode_record_set
from kwiresniff.codec.text.json_records import PIECE_BYTES, RecordWriter, hand_over
from kwiresniff.model import Problem

if TYPE_CHECKING:
    from mypy_extensions import i64

COMPRESSION: Final = [f',"compression":"{codec_name(codec)}"'.encode() for codec in range(CODEC_MASK + 1)]


def take_back(out: BytesWriter, pieces: list[bytes], size: int, count: int) -> None:
    """Leaves what had been written when there were ``count`` pieces, and ``size`` bytes behind them."""
    if len(pieces) > count:
        begun = pieces[count]
        del pieces[count:]
        out.truncate(0)
        out.write(begun)
    out.truncate(size)


@final
class RecordSetWriter:
    """Writes record sets to ``out``; ``encode`` gives the JSON text of a value, for what is not plain ASCII."""

    def __init__(self, out: BytesWriter, encode: Callable[[Any], bytes]) -> None:
        self.out = out
        self.encode = encode
        self.batch = BatchReader()
        self.records = RecordWriter(out, encode)

    def write(self, frame: bytes, pos: i64, end: i64, budget: RecordBudget, pieces: list[bytes]) -> bool:
        """Writes batches as an array, long text to ``pieces``; False for a problem, and for records that may be
        Connect's.
        """
        out = self.out
        out.append(91)
        start: i64 = pos
        while pos < end:
            if pos > start:
                out.append(44)
                if len(out) > PIECE_BYTES:
                    hand_over(out, pieces)
            size, count = len(out), len(pieces)
            left = budget.state()
            stop: i64 = self._batch(frame, pos, end, budget, pieces)
            if stop < 0:
                # Cut short, a message set, control records: whatever it is, it is written as the decoder gives it.
                take_back(out, pieces, size, count)
                budget.restore(left)
                issues: list[Problem] = []
                batches = decode_record_set(frame, pos, end, "full", issues, budget)
                if issues or may_be_opened(batches):
                    return False
                out.write(self.encode(batches)[1:-1])
                break
            pos = stop
        out.append(93)
        return True

    def _batch(self, frame: bytes, pos: i64, end: i64, budget: RecordBudget, pieces: list[bytes]) -> i64:
        """A batch of magic 2 with nothing unusual about it, as ``decode_batch`` reads it; where it ends, or below 0."""
        out = self.out
        batch = self.batch
        stop: i64 = batch.open(frame, pos, end, budget)
        if stop < 0:
            return stop
        attributes: i64 = batch.attributes
        out.write(b'{"base_offset":')
        write_number(out, batch.base_offset)
        out.write(b',"batch_length":')
        write_number(out, stop - pos - LOG_OVERHEAD)
        out.write(b',"partition_leader_epoch":')
        write_number(out, int32(frame, pos + LEADER_EPOCH_AT))
        out.write(b',"magic":2,"crc":')
        write_number(out, batch.crc)
        out.write(b',"attributes":')
        write_number(out, attributes)
        out.write(b',"last_offset_delta":')
        write_number(out, int32(frame, pos + LAST_DELTA_AT))
        out.write(b',"base_timestamp":')
        write_number(out, batch.base_timestamp)
        out.write(b',"max_timestamp":')
        write_number(out, batch.max_timestamp)
        out.write(b',"producer_id":')
        write_number(out, read_i64_be(frame, pos + PRODUCER_ID_AT))
        out.write(b',"producer_epoch":')
        write_number(out, int16(frame, pos + PRODUCER_EPOCH_AT))
        out.write(b',"base_sequence":')
        write_number(out, int32(frame, pos + BASE_SEQUENCE_AT))
        out.write(b',"records_count":')
        write_number(out, batch.count)
        out.write(COMPRESSION[attributes & CODEC_MASK])
        out.write(b',"timestamp_type":"log_append_time"' if batch.append_time else b',"timestamp_type":"create_time"')
        out.write(b',"is_transactional":true' if attributes & TRANSACTIONAL else b',"is_transactional":false')
        out.write(b',"is_control":false,"size_bytes":')
        write_number(out, stop - pos)
        out.write(b',"uncompressed_size_bytes":')
        write_number(out, batch.last - batch.first)
        out.write(b',"crc_valid":true,"records":')
        if not self.records.write(batch, budget, pieces):
            return UNUSUAL
        out.append(125)
        return stop
