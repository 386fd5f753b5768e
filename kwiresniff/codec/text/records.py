"""The records of a batch, magic 2, as JSON text. Layout and sources: ``kwiresniff.codec.record``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from librt.strings import BytesWriter

from kwiresniff.jsontext import write_number, write_text

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Sums of a base and a delta within this cannot leave INT64.
_SANE: Final = 1 << 62
#: Seven-bit groups of a varint that are read here; more are for the careful reader.
_LENGTH_GROUPS: Final = 5
_DELTA_GROUPS: Final = 9


class RecordReader:
    """Reads the varints that records are made of. ``pos`` is behind what was read last, or -1."""

    def __init__(self) -> None:
        self.pos: i64 = 0

    def varint(self, data: bytes, pos: i64, end: i64, groups: i64) -> i64:
        """The zigzag number at ``pos``; ``pos`` is behind it, or -1 when it does not end in time."""
        if pos < end:
            byte: i64 = data[pos]
            if byte < 128:
                self.pos = pos + 1
                return (byte >> 1) ^ -(byte & 1)
            number: i64 = byte & 127
            shift: i64 = 7
            last: i64 = pos + groups
            if last > end:
                last = end
            pos += 1
            while pos < last:
                byte = data[pos]
                pos += 1
                number |= (byte & 127) << shift
                if byte < 128:
                    if shift == 28 and groups == _LENGTH_GROUPS and byte > 15:
                        break  # beyond 32 bits
                    self.pos = pos
                    return (number >> 1) ^ -(number & 1)
                shift += 7
        self.pos = -1
        return 0


@final
class RecordWriter(RecordReader):
    """Writes records to ``out``. ``encode`` gives the JSON text of anything that is not plain ASCII."""

    def __init__(self, out: BytesWriter, encode: Callable[[Any], bytes]) -> None:
        super().__init__()
        self.out = out
        self.encode = encode

    def write(
        self,
        data: bytes,
        start: i64,
        end: i64,
        count: i64,
        base_offset: i64,
        base_timestamp: i64,
        append_time: i64,
        log_append_time: bool,
    ) -> bool:
        """Write ``count`` records that fill ``data[start:end]``, as an array.

        With ``log_append_time`` all have ``append_time``. False as soon as there is any doubt; then a part of them
        may have been written.
        """
        if end > len(data) or not (-_SANE < base_offset < _SANE and -_SANE < base_timestamp < _SANE):
            return False
        out = self.out
        timestamp: i64 = append_time
        pos: i64 = start
        separator = b'[{"offset":'
        left: i64 = count
        while left:
            left -= 1
            length: i64 = self.varint(data, pos, end, _LENGTH_GROUPS)
            pos = self.pos
            stop: i64 = pos + length
            if pos < 0 or length < 0 or stop > end:
                return False
            delta: i64 = self.varint(data, pos + 1, stop, _DELTA_GROUPS)
            pos = self.pos
            if pos < 0:
                return False
            if not log_append_time:
                timestamp = base_timestamp + delta
            delta = self.varint(data, pos, stop, _LENGTH_GROUPS)
            pos = self.pos
            if pos < 0:
                return False
            out.write(separator)
            separator = b',{"offset":'
            write_number(out, base_offset + delta)
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
        length: i64 = self.varint(data, pos, stop, _LENGTH_GROUPS)
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
        count: i64 = self.varint(data, pos, stop, _LENGTH_GROUPS)
        pos = self.pos
        if pos < 0 or count < 0 or count > (stop - pos) // 2:
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
