"""The parts of records, magic 2, of which dicts, JSON text and nodes are made.

A record is a VARINT length of what follows, INT8 attributes, a VARLONG timestamp delta, a VARINT offset delta, key
and value each led by their VARINT length (negative for null), and a VARINT count of headers. All varints are
zigzag. Source: KIP-98, protocol guide ("Record").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from kwiresniff.codec.record_limits import RecordBudget

if TYPE_CHECKING:
    from mypy_extensions import i64

#: A record is at least its length, attributes, two deltas, two lengths and the header count.
MIN_RECORD_BYTES: Final = 7
#: The longest VARINT and VARLONG.
VARINT_BYTES: Final = 5
VARLONG_BYTES: Final = 10
#: The longest VARLONG whose sum with a sane base is an INT64, and such a base.
SUMMED_BYTES: Final = 9
_SANE: Final = 1 << 62
#: More records, or headers, than there are.
_ALL: Final = 1 << 40
#: Stands for a header that is not shown.
_FOLDED: Final[dict[str, Any]] = {}


class RecordReader:
    """Reads records. ``pos`` is behind the last varint, or -1. Of the front read last: ``length``, the offsets
    ``attributes_at`` and ``offset_at`` (-1 if not found), the end ``stop``, and the deltas.
    """

    def __init__(self) -> None:
        self.pos: i64 = 0
        self.length: i64 = 0
        self.attributes_at: i64 = 0
        self.offset_at: i64 = 0
        self.stop: i64 = 0
        self.timestamp_delta: i64 = 0
        self.offset_delta: i64 = 0

    def varint(self, data: bytes, pos: i64, end: i64, most: i64) -> i64:
        """The zigzag number at ``pos``, of at most ``most`` bytes before ``end``; ``self.pos`` is behind it then, or -1
        when there is none. Of a VARINT 32 bits count, of a VARLONG 64.
        """
        if pos < end:
            byte: i64 = data[pos]
            if byte < 128:
                self.pos = pos + 1
                return (byte >> 1) ^ -(byte & 1)
            number: i64 = byte & 127
            shift: i64 = 7
            last: i64 = pos + most
            if last > end:
                last = end
            pos += 1
            while pos < last:
                byte = data[pos]
                pos += 1
                if shift == 63:
                    if byte > 127:
                        break
                    self.pos = pos
                    return ((number >> 1) | (byte & 1) << 62) ^ -(number & 1)
                number |= (byte & 127) << shift
                if byte < 128:
                    if most == VARINT_BYTES:
                        number &= 0xFFFFFFFF
                    self.pos = pos
                    return (number >> 1) ^ -(number & 1)
                shift += 7
        self.pos = -1
        return 0

    def front(self, data: bytes, pos: i64, end: i64, most: i64 = SUMMED_BYTES) -> i64:
        """Reads the front of a record, with a timestamp delta of ``most`` bytes; returns its key's offset, or -1."""
        length: i64 = self.varint(data, pos, end, VARINT_BYTES)
        pos = self.pos
        self.length = length
        self.attributes_at = pos
        self.offset_at = -1
        stop: i64 = pos + length
        if pos < 0 or length < MIN_RECORD_BYTES - 1 or stop > end:
            return -1
        self.stop = stop
        self.timestamp_delta = self.varint(data, pos + 1, stop, most)
        if self.pos < 0:
            return -1
        self.offset_at = self.pos
        self.offset_delta = self.varint(data, self.pos, stop, VARINT_BYTES)
        return self.pos

    def sized(self, data: bytes, pos: i64, stop: i64) -> i64:
        """A length, negative for null; ``self.pos`` is where the bytes begin, or -1 when ``stop`` comes first."""
        length: i64 = self.varint(data, pos, stop, VARINT_BYTES)
        if self.pos >= 0 and length > stop - self.pos:
            self.pos = -1
        return length

    def header_count(self, data: bytes, pos: i64, stop: i64) -> i64:
        """The number of headers of a record; ``self.pos`` is behind it then. -1 for a number that cannot be."""
        count: i64 = self.varint(data, pos, stop, VARINT_BYTES)
        return -1 if self.pos < 0 or count < 0 or count > (stop - self.pos) // 2 else count


@final
class RecordDicts(RecordReader):
    """Makes dicts of records (offset, timestamp, key, value, headers); ``count`` is the number read."""

    def __init__(self) -> None:
        super().__init__()
        self.count: i64 = 0
        self._headers: i64 = 0  # of the record that is being read

    def read(
        self,
        data: bytes,
        pos: i64,
        end: i64,
        base_offset: i64,
        base_timestamp: i64,
        count: i64,
        found: list[dict[str, Any]],
        budget: RecordBudget,
        shown: i64 = _ALL,
        headers_shown: i64 = _ALL,
    ) -> i64:
        """Reads up to ``count`` sound records within the ``budget``; returns where the last one ends, for
        ``record_fields`` to go on. ``found`` gets the first ``shown`` records with ``headers_shown`` headers, an empty
        dict for each other header.
        """
        self.count = 0
        if not is_sane(data, end, base_offset, base_timestamp):
            return pos
        while self.count < count:
            begin = pos
            pos = self.front(data, pos, end)
            if pos < 0:
                return begin
            stop: i64 = self.stop
            offset: i64 = base_offset + self.offset_delta
            timestamp: i64 = base_timestamp + self.timestamp_delta
            key_size: i64 = self.sized(data, pos, stop)
            key_at: i64 = self.pos
            if key_at < 0:
                return begin
            value_size: i64 = self.sized(data, key_at + key_size if key_size > 0 else key_at, stop)
            value_at: i64 = self.pos
            if value_at < 0:
                return begin
            pos = value_at + value_size if value_size > 0 else value_at
            if pos >= stop:
                return begin
            headers: list[dict[str, Any]] | None = [] if self.count < shown else None
            if data[pos] == 0:
                pos += 1
                self._headers = 0
            else:
                pos = self._read_headers(data, pos, stop, headers, headers_shown)
            if pos != stop or self._headers > budget.headers:
                return begin
            budget.headers -= self._headers
            if headers is not None:
                key = data[key_at : key_at + key_size] if key_size >= 0 else None
                value = data[value_at : value_at + value_size] if value_size >= 0 else None
                found.append({"offset": offset, "timestamp": timestamp, "key": key, "value": value, "headers": headers})
            self.count += 1
        return pos

    def _read_headers(self, data: bytes, pos: i64, stop: i64, found: list[dict[str, Any]] | None, shown: i64) -> i64:
        """The end of a record's headers, or -1; the first ``shown`` are added to ``found``."""
        count: i64 = self.header_count(data, pos, stop)
        pos = self.pos
        if count < 0:
            return -1
        self._headers = count
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
            if found is not None and index < shown:
                value = data[value_at:pos] if value_size >= 0 else None
                found.append({"key": header_key(data[key_at : key_at + key_size]), "value": value})
            index += 1
        if found is not None and count > shown:
            found += [_FOLDED] * (count - shown)
        return pos


def header_key(raw: bytes) -> str | bytes:
    """A header key as text, or its bytes when they are not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def is_sane(data: bytes, end: i64, base_offset: i64, base_timestamp: i64) -> bool:
    """Whether ``data[:end]`` exists, and both bases plus any delta stay INT64."""
    return end <= len(data) and -_SANE < base_offset < _SANE and -_SANE < base_timestamp < _SANE
