"""The records of a batch, magic 2, as JSON text, straight from their bytes (``record_reader``)."""

from __future__ import annotations

from collections.abc import Callable

from librt.strings import BytesWriter

from kwiresniff.base.json_text import write_number, write_text
from kwiresniff.base.light_typing import TYPE_CHECKING, Any, final
from kwiresniff.codec.record_reader import VARINT_BYTES, RecordReader, is_sane
from kwiresniff.codec.text.batch_reader import BatchReader

if TYPE_CHECKING:
    from mypy_extensions import i64


@final
class RecordWriter(RecordReader):
    """Writes records to ``out``. ``encode`` gives the JSON text of anything that is not plain ASCII."""

    def __init__(self, out: BytesWriter, encode: Callable[[Any], bytes]) -> None:
        super().__init__()
        self.out = out
        self.encode = encode

    def write(self, batch: BatchReader) -> bool:
        """Write the records of a batch as an array.

        False as soon as there is any doubt; then a part of them may have been written.
        """
        data, end, count = batch.data, batch.last, batch.count
        base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
        if not is_sane(data, end, base_offset, base_timestamp):
            return False
        out = self.out
        timestamp: i64 = batch.max_timestamp
        pos: i64 = batch.first
        separator = b'[{"offset":'
        left: i64 = count
        while left:
            left -= 1
            pos = self.front(data, pos, end)
            if pos < 0:
                return False
            stop: i64 = self.stop
            if not batch.append_time:
                timestamp = base_timestamp + self.timestamp_delta
            out.write(separator)
            separator = b',{"offset":'
            write_number(out, base_offset + self.offset_delta)
            out.write(b',"timestamp":')
            write_number(out, timestamp)
            out.write(b',"key":')
            pos = self._value(data, pos, stop)
            if pos < 0:
                return False
            out.write(b',"value":')
            pos = self._value(data, pos, stop)
            if pos < 0 or pos >= stop:
                return False
            if data[pos] == 0:
                pos += 1
                out.write(b',"headers":[]}')
            else:
                pos = self._headers(data, pos, stop)
            if pos != stop:
                return False
        if not count:
            out.append(91)
        out.append(93)
        return pos == end

    def _value(self, data: bytes, pos: i64, stop: i64) -> i64:
        """Write bytes led by their length, null for a negative one; returns the position behind them, or -1."""
        length: i64 = self.varint(data, pos, stop, VARINT_BYTES)
        pos = self.pos
        if pos < 0:
            return -1
        out = self.out
        if length < 0:
            out.write(b"null")
            return pos
        end: i64 = pos + length
        if end > stop:
            return -1
        size = len(out)
        if not write_text(out, data, pos, end):
            out.truncate(size)
            out.write(self.encode(data[pos:end]))
        return end

    def _headers(self, data: bytes, pos: i64, stop: i64) -> i64:
        """Write the headers and the end of their record; returns the position behind them, or -1."""
        out = self.out
        count: i64 = self.header_count(data, pos, stop)
        pos = self.pos
        if count < 0:
            return -1
        separator = b',"headers":[{"key":'
        left: i64 = count
        while left:
            left -= 1
            if pos >= stop or data[pos] & 1:
                return -1  # cut short, or a key that is null
            out.write(separator)
            separator = b',{"key":'
            pos = self._value(data, pos, stop)
            if pos < 0:
                return -1
            out.write(b',"value":')
            pos = self._value(data, pos, stop)
            if pos < 0:
                return -1
            out.append(125)
        out.write(b"]}" if count else b',"headers":[]}')
        return pos
