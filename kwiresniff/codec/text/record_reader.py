"""The fields of records for compiled writers of text, which would take several times as long by way of dicts.

Layout and sources: ``kwiresniff.codec.record``, whose reader takes over as soon as there is any doubt here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Sums of a base and a delta within this cannot leave INT64.
_SANE: Final = 1 << 62
#: Seven-bit groups of a varint that are read here; more are for the careful reader.
LENGTH_GROUPS: Final = 5
DELTA_GROUPS: Final = 9


class RecordReader:
    """Reads the parts of records. ``pos`` is behind the varint that was read last, or -1.

    Of the record whose front was read last, ``stop`` is its end, and the deltas are those of its timestamp and offset.
    """

    def __init__(self) -> None:
        self.pos: i64 = 0
        self.stop: i64 = 0
        self.timestamp_delta: i64 = 0
        self.offset_delta: i64 = 0

    def varint(self, data: bytes, pos: i64, end: i64, groups: i64) -> i64:
        """The zigzag number at ``pos``, of at most ``groups`` bytes; ``self.pos`` is behind it then, or -1 when there
        is none.
        """
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
                    if shift == 28 and groups == LENGTH_GROUPS and byte > 15:
                        break  # beyond 32 bits
                    self.pos = pos
                    return (number >> 1) ^ -(number & 1)
                shift += 7
        self.pos = -1
        return 0

    def front(self, data: bytes, pos: i64, end: i64) -> i64:
        """Read the front of the record at ``pos``, which ends before ``end``; returns where its key begins, or -1."""
        length: i64 = self.varint(data, pos, end, LENGTH_GROUPS)
        pos = self.pos
        stop: i64 = pos + length
        if pos < 0 or length < 0 or stop > end:
            return -1
        self.stop = stop
        self.timestamp_delta = self.varint(data, pos + 1, stop, DELTA_GROUPS)
        if self.pos < 0:
            return -1
        self.offset_delta = self.varint(data, self.pos, stop, LENGTH_GROUPS)
        return self.pos

    def header_count(self, data: bytes, pos: i64, stop: i64) -> i64:
        """The number of headers of a record; ``self.pos`` is behind it then. -1 for a number that cannot be."""
        count: i64 = self.varint(data, pos, stop, LENGTH_GROUPS)
        return -1 if self.pos < 0 or count < 0 or count > (stop - self.pos) // 2 else count


def is_sane(data: bytes, end: i64, base_offset: i64, base_timestamp: i64) -> bool:
    """Whether the records lie inside ``data[:end]``, and ``base_offset`` and ``base_timestamp`` plus any delta stay
    INT64.
    """
    return end <= len(data) and -_SANE < base_offset < _SANE and -_SANE < base_timestamp < _SANE
