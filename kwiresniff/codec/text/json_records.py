"""The records of a batch, magic 2, as JSON text, straight from their bytes (``record_reader``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from librt.strings import BytesWriter

from kwiresniff.base.json_text import write_characters, write_number, write_text
from kwiresniff.codec.batch_reader import BatchReader
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.record_reader import VARINT_BYTES, RecordReader, is_sane

if TYPE_CHECKING:
    from mypy_extensions import i64


#: The length of a piece of text; longer ones get their memory from the system each time.
PIECE_BYTES: Final = 64 << 10
#: Bytes of a long value that become a piece: at most six characters each.
PART_BYTES: Final = PIECE_BYTES >> 2


def hand_over(out: BytesWriter, pieces: list[bytes]) -> None:
    """Moves the text written so far to ``pieces``."""
    pieces.append(out.getvalue())
    out.truncate(0)


@final
class RecordWriter(RecordReader):
    """Writes records to ``out``. ``encode`` gives the JSON text of anything that is not plain ASCII."""

    def __init__(self, out: BytesWriter, encode: Callable[[Any], bytes]) -> None:
        super().__init__()
        self.out = out
        self.encode = encode
        self.pieces: list[bytes] | None = None
        self.headers: i64 = 0  # how many more there may be

    def write(self, batch: BatchReader, budget: RecordBudget, pieces: list[bytes]) -> bool:
        """Writes the records of a batch as an array, long text to ``pieces``, headers within the ``budget``; False,
        half written, in case of doubt.
        """
        data, end, count = batch.data, batch.last, batch.count
        base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
        if not is_sane(data, end, base_offset, base_timestamp):
            return False
        out = self.out
        timestamp: i64 = batch.max_timestamp
        pos: i64 = batch.first
        separator = b'[{"offset":'
        self.pieces = pieces
        self.headers = budget.headers
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
        self.pieces = None  # they may be many
        budget.headers = self.headers
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
        if length > PIECE_BYTES:
            self._long_value(data, pos, end)
            return end
        size = len(out)
        if not write_text(out, data, pos, end):
            out.truncate(size)
            out.write(self.encode(data[pos:end]))
        return end

    def _long_value(self, data: bytes, start: i64, stop: i64) -> None:
        """Writes bytes in parts: their text as a whole would be held several times."""
        out, pieces = self.out, self.pieces
        assert pieces is not None
        hand_over(out, pieces)
        count = len(pieces)
        out.append(34)
        at: i64 = start
        while at < stop:
            end: i64 = at + PART_BYTES if at + PART_BYTES < stop else stop
            if not write_characters(out, data, at, end):
                del pieces[count:]
                out.truncate(0)
                out.write(self.encode(data[start:stop]))
                return
            hand_over(out, pieces)
            at = end
        out.append(34)

    def _headers(self, data: bytes, pos: i64, stop: i64) -> i64:
        """Write the headers and the end of their record; returns the position behind them, or -1."""
        out = self.out
        count: i64 = self.header_count(data, pos, stop)
        pos = self.pos
        if count < 0 or count > self.headers:
            return -1
        self.headers -= count
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
