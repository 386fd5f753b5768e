"""Records of a batch, magic 2, as the rows of a tree, straight from their bytes (``record_reader``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from kwiresniff.base.batch_layout import NO_TIMESTAMP
from kwiresniff.base.json_text import write_digit
from kwiresniff.base.tree_sizes import HEADERS_SHOWN, RECORDS_SHOWN
from kwiresniff.codec.record_limits import HEADER_NODES, RECORD_NODES, RecordBudget
from kwiresniff.codec.record_reader import VARINT_BYTES, RecordReader, is_sane
from kwiresniff.codec.text.batch_reader import BatchReader
from kwiresniff.codec.text.tree_marks import TreeMarks
from kwiresniff.codec.text.tree_text import ValueWriter
from kwiresniff.codec.text.tree_wording import Words

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Seconds whose texts are kept; many clients write at once, each of its own time.
KEPT_SECONDS: Final = 4096


class RecordRows(RecordReader):
    """Adds rows to ``rows``, their depths to ``depths``. ``nodes`` counts what the dissector makes."""

    def __init__(self, words: Words, values: ValueWriter, depths: BytesWriter) -> None:
        super().__init__()
        self.words = words
        self.values = values
        self.depths = depths
        self.rows: list[bytes] = []
        self.nodes: i64 = 0
        self.headers: i64 = 0  # how many more there may be
        self.out = BytesWriter()
        self.second: i64 = 0
        self.second_text = words.clock(0)
        self.seconds: dict[int, bytes] = {}
        # Of the records that were checked last the first ones: what they say and where the rest of them lies.
        self.offsets: list[int] = []
        self.times: list[int] = []
        self.places: list[int] = []
        self.stops: list[int] = []
        self.marks = TreeMarks(words)

    def add_row(self, depth: i64, text: bytes) -> None:
        """Adds a row of ``depth``."""
        level: int = depth
        self.depths.append(level)
        self.rows.append(text)

    def check(self, batch: BatchReader, budget: RecordBudget) -> bool:
        """Whether the records fill the batch and are sound; remembers where the first ones lie, and takes their headers
        from the ``budget``.
        """
        data, end, count = batch.data, batch.last, batch.count
        base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
        if not is_sane(data, end, base_offset, base_timestamp):
            return False
        self.offsets.clear()
        self.times.clear()
        self.places.clear()
        self.stops.clear()
        self.headers = budget.headers
        pos: i64 = batch.first
        index: i64 = 0
        while index < count:
            pos = self.front(data, pos, end)
            if pos < 0:
                return False
            stop: i64 = self.stop
            if index < RECORDS_SHOWN:
                self.offsets.append(base_offset + self.offset_delta)
                self.times.append(base_timestamp + self.timestamp_delta)
                self.places.append(pos)
                self.stops.append(stop)
            pos = self._skip(data, pos, stop)
            if pos >= 0:
                pos = self._skip(data, pos, stop)
            if pos < 0 or pos >= stop:
                return False
            if data[pos] == 0:
                pos += 1
            else:
                pos = self._skip_headers(data, pos, stop)
            if pos != stop:
                return False
            index += 1
        budget.headers = self.headers
        self.nodes += count * RECORD_NODES
        return pos == end

    def _skip(self, data: bytes, pos: i64, stop: i64) -> i64:
        """The position behind bytes led by their length, or -1."""
        length: i64 = self.varint(data, pos, stop, VARINT_BYTES)
        pos = self.pos
        if pos < 0 or length <= 0:
            return pos
        return pos + length if pos + length <= stop else -1

    def _skip_headers(self, data: bytes, pos: i64, stop: i64) -> i64:
        count: i64 = self.header_count(data, pos, stop)
        pos = self.pos
        if count < 0 or count > self.headers:
            return -1
        self.headers -= count
        self.nodes += count * HEADER_NODES
        while count:
            count -= 1
            if pos >= stop or data[pos] & 1:
                return -1  # cut short, or a key that is null
            pos = self._skip(data, pos, stop)
            if pos >= 0:
                pos = self._skip(data, pos, stop)
            if pos < 0:
                return -1
        return pos

    def add_records(self, batch: BatchReader, depth: i64) -> None:
        """Adds the rows of the records that ``check`` has passed."""
        width: i64 = 0
        for offset in self.offsets:
            width = max(width, len(str(offset)))
        out = self.out
        for index in range(len(self.offsets)):
            digits = str(self.offsets[index])
            out.write(self.marks.ident)
            left: i64 = width - len(digits)
            while left > 0:
                out.append(32)
                left -= 1
            out.write(digits.encode())
            out.write(self.marks.ident_off)
            self._clock(batch.max_timestamp if batch.append_time else self.times[index])
            out.write(self.marks.gap)
            self._record(batch.data, self.places[index], self.stops[index])
            self.add_row(depth, out.getvalue())
            out.truncate(0)
        if batch.count > RECORDS_SHOWN:
            self.add_row(depth, self.words.hidden_records(batch.count - RECORDS_SHOWN))

    def _clock(self, milliseconds: i64) -> None:
        out = self.out
        if milliseconds == NO_TIMESTAMP:
            out.write(self.marks.no_clock)
            return
        second: i64 = milliseconds // 1000
        if second != self.second:
            self.second = second
            self.second_text = self._clock_text(second)
        out.write(self.marks.dim)
        out.append(32)
        out.append(32)
        out.write(self.second_text)
        write_thousandths(out, milliseconds - second * 1000)
        out.write(self.marks.dim_off)

    def _clock_text(self, second: int) -> bytes:
        text = self.seconds.get(second)
        if text is None:
            if len(self.seconds) >= KEPT_SECONDS:
                self.seconds.clear()
            text = self.seconds[second] = self.words.clock(second)
        return text

    def _record(self, data: bytes, pos: i64, stop: i64) -> None:
        """Key, value and headers of a record that has been checked."""
        out = self.out
        length: i64 = self.varint(data, pos, stop, VARINT_BYTES)
        pos = self.pos
        has_key = length >= 0
        if has_key:
            out.write(self.marks.key)
            self.values.write(out, data, pos, pos + length, False, False)
            out.write(self.marks.key_off)
            pos += length
        else:
            out.write(self.marks.null)
        out.write(self.marks.arrow)
        length = self.varint(data, pos, stop, VARINT_BYTES)
        pos = self.pos
        if length >= 0:
            out.write(self.marks.plain)
            self.values.write(out, data, pos, pos + length, False, False)
            out.write(self.marks.plain_off)
            pos += length
        else:
            out.write(self.marks.tombstone if has_key else self.marks.null)
        if data[pos]:
            self._headers(data, pos, stop)

    def _headers(self, data: bytes, pos: i64, stop: i64) -> None:
        out = self.out
        count: i64 = self.varint(data, pos, stop, VARINT_BYTES)
        pos = self.pos
        if not count:
            return
        out.write(self.marks.gap)
        out.write(self.marks.headers)
        index: i64 = 0
        while index < count and index < HEADERS_SHOWN:
            out.write(self.marks.comma if index else self.marks.no_comma)
            index += 1
            length: i64 = self.varint(data, pos, stop, VARINT_BYTES)
            pos = self.pos
            out.write(self.marks.name)
            try:
                self.values.write(out, data, pos, pos + length, True, True)
            except UnicodeDecodeError:
                self.values.write(out, data, pos, pos + length, False, True)
            out.append(61)
            out.write(self.marks.name_off)
            pos += length
            length = self.varint(data, pos, stop, VARINT_BYTES)
            pos = self.pos
            if length < 0:
                out.write(self.marks.null)
                continue
            out.write(self.marks.plain)
            self.values.write(out, data, pos, pos + length, False, True)
            out.write(self.marks.plain_off)
            pos += length
        if count > HEADERS_SHOWN:
            out.write(self.words.hidden_parts(count - HEADERS_SHOWN))


def write_thousandths(out: BytesWriter, number: i64) -> None:
    """Write a number below 1000 with all its three digits."""
    hundreds: i64 = number // 100
    tens: i64 = number // 10 - hundreds * 10
    write_digit(out, hundreds)
    write_digit(out, tens)
    write_digit(out, number - hundreds * 100 - tens * 10)
