"""What a set of records may cost, and the names of what can be wrong with it."""

from __future__ import annotations

from kwiresniff.codec.compression import MAX_DECOMPRESSED_BYTES
from kwiresniff.errors import DecodeError
from kwiresniff.model import Problem

#: Records decoded from one record set. A consumer takes 1 MiB of a partition at a time by default
#: (max.partition.fetch.bytes), at most 150,000 of the smallest records; a million of them is some 400 MB of Python.
MAX_RECORDS = 1_000_000

#: Decompressed bytes of one record set: several batches as large as one may get, and no more.
MAX_SET_DECOMPRESSED_BYTES = 2 * MAX_DECOMPRESSED_BYTES

#: Compressed message sets inside compressed message sets. Kafka's clients never nest one in another; two levels
#: more than that cost nothing.
MAX_NESTING = 3

#: No batch is larger than its log segment, 1 GiB by default (log.segment.bytes): a larger size is noise, not a
#: batch that was cut short.
MAX_BATCH_BYTES = 1 << 30


class Budget:
    """What is left of the limits while one record set, or all those of one message, are decoded."""

    __slots__ = ("decompressed_bytes", "records")

    def __init__(self) -> None:
        self.records = MAX_RECORDS
        self.decompressed_bytes = MAX_SET_DECOMPRESSED_BYTES

    def decompress_limit(self) -> int:
        """Bytes that the next batch may decompress to."""
        return min(MAX_DECOMPRESSED_BYTES, self.decompressed_bytes)

    def take_records(self, count: int) -> None:
        """Raises DecodeError when there are more than may still be decoded."""
        if count > self.records:
            raise too_many_records()
        self.records -= count


def too_many_records() -> DecodeError:
    return DecodeError(f"more than {MAX_RECORDS:,} records in one record set", code="too_many_records")


def problem(error: DecodeError, offset: int) -> Problem:
    """The error as a problem of the frame, at its own offset or else the given one."""
    return Problem(error.code, str(error), error.offset if error.offset is not None else offset)
