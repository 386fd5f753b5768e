"""The parts of records, magic 2: text is written from them at once, which takes several times as long from dicts.

Nodes are made from them, too, and the dicts of records that ``kwiresniff.codec.record`` is not sure of.

A record is a VARINT length of what follows, INT8 attributes, a VARLONG timestamp delta, a VARINT offset delta, key
and value each led by their VARINT length (negative for null), and a VARINT count of headers. All varints are
zigzag. Source: KIP-98, protocol guide ("Record").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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


class RecordReader:
    """Reads the parts of records. ``pos`` is behind the varint that was read last, or -1.

    Of the record whose front was read last, ``length`` is what it says of itself, ``attributes_at`` and ``offset_at``
    are where these fields begin, -1 where they cannot be found, ``stop`` is its end, and the deltas are those of its
    timestamp and offset.
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
        """Read the front of the record at ``pos``, which ends before ``end``; returns where its key begins, or -1.

        The delta of its timestamp takes at most ``most`` bytes.
        """
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
        """The length of the bytes at ``pos``, negative for null; ``self.pos`` is where they begin then, or -1 when they
        are not there before ``stop``.
        """
        length: i64 = self.varint(data, pos, stop, VARINT_BYTES)
        if self.pos >= 0 and length > stop - self.pos:
            self.pos = -1
        return length

    def header_count(self, data: bytes, pos: i64, stop: i64) -> i64:
        """The number of headers of a record; ``self.pos`` is behind it then. -1 for a number that cannot be."""
        count: i64 = self.varint(data, pos, stop, VARINT_BYTES)
        return -1 if self.pos < 0 or count < 0 or count > (stop - self.pos) // 2 else count


def is_sane(data: bytes, end: i64, base_offset: i64, base_timestamp: i64) -> bool:
    """Whether the records lie inside ``data[:end]``, and ``base_offset`` and ``base_timestamp`` plus any delta stay
    INT64.
    """
    return end <= len(data) and -_SANE < base_offset < _SANE and -_SANE < base_timestamp < _SANE
