"""Limits on what reading one message may cost: records, batches, decompressed bytes, nodes of a tree."""

from __future__ import annotations

from typing import ClassVar, Final

from kwiresniff.errors import DecodeError
from kwiresniff.model import Problem

#: Nodes kept for one message, at some 300 bytes each: the metadata of ten thousand partitions, 60 MB.
MAX_NODES = 200_000

#: Nodes of a batch without its records: itself, the fields of its header, and the one that holds the records; of its
#: size before compression, where it is compressed; of a record, its length and its headers among them; and of a header
#: with its key and its value.
BATCH_NODES: Final = 15
COMPRESSED_NODES: Final = 1
RECORD_NODES: Final = 8
HEADER_NODES: Final = 3

#: Records of one message: four times what a fetch of 50 MiB has of 100 bytes each. Two million are 1 GB of Python.
MAX_RECORDS = 2_000_000

#: The bytes of the shortest record, decompressed: what is not compressed has no more records than fit.
LEAST_RECORD_BYTES: Final = 7

#: Records for each byte of the message, in a message of few bytes. The offsets of a batch's records differ, so no codec
#: makes little of them: of 10,000 equal records with the same timestamp each takes 0.9 bytes with zstd, 1.8 with gzip,
#: 4.2 with lz4 and snappy; where timestamps differ, three times as many.
RECORDS_A_BYTE = 2

#: Records of a message in which they take less than ``LEAST_RECORD_BYTES`` each: a quarter of a GB of Python.
MAX_DENSE_RECORDS = 500_000

#: Headers for each record of a message, whichever has them: compressed, they may take no bytes to speak of.
HEADERS_A_RECORD = 2

#: Batches of one message: a fetch of 50 MiB may have 350,000 of one record. A million are 1 GB of Python.
MAX_BATCHES = 1_000_000

#: Decompressed bytes of one batch: the default of socket.request.max.bytes, so a producer's largest batch.
MAX_DECOMPRESSED_BYTES = 100 * 1024 * 1024

#: Decompressed bytes of one message: four times what a consumer takes at a time by default.
MAX_MESSAGE_DECOMPRESSED_BYTES = 2 * MAX_DECOMPRESSED_BYTES

#: Decompressed bytes for each byte of a large message: what gzip and zstd make of a log whose lines differ.
ORDINARY_EXPANSION = 8

#: Decompressed bytes for each byte of a small message; of repetitive logs gzip -9 makes a 40th, zstd -19 a 60th.
MAX_EXPANSION = 100

#: Decompressed bytes of a densely packed message; as Parquet, of which six characters each, 1.5 GB.
MAX_DENSE_BYTES = 64 * 1024 * 1024

#: Decompressed bytes that any message may have: four batches of a Java producer (batch.size).
ALWAYS_DECOMPRESSED_BYTES = 64 * 1024

#: What follows in the problem of a message of which more could be read.
_HOW_TO_READ_MORE: Final = "; --max-decompressed reads more"

#: Compressed message sets inside each other; Kafka's clients never nest them.
MAX_NESTING = 3

#: The largest batch: a log segment's default size, 1 GiB (log.segment.bytes); larger sizes are noise.
MAX_BATCH_BYTES: Final = 1 << 30

#: The largest size that can be asked for: with it all counts are still 64-bit numbers.
_MOST_ASKED_BYTES: Final = 1 << 50


class _Always:
    """The size that ``decompress_always`` has set."""

    size_bytes: ClassVar[int | None] = None


def decompress_always(size_bytes: int | None) -> None:
    """Sets, for this process, the decompressed bytes that any message may have; None for the default. All readers of a
    message must agree, so it is no argument.
    """
    _Always.size_bytes = None if size_bytes is None else min(size_bytes, _MOST_ASKED_BYTES)


class RecordBudget:
    """What may still be decoded of a message (batches, records, headers, decompressed bytes); it follows from
    ``size_bytes`` alone, so that all readers stop at the same place.
    """

    __slots__ = ("batches", "decompressed_bytes", "headers", "most_bytes", "most_headers", "most_records", "records")

    def __init__(self, size_bytes: int) -> None:
        asked = _Always.size_bytes
        # Of two numbers each: of three, max and min would be calls of Python's where this is compiled.
        most = ALWAYS_DECOMPRESSED_BYTES if asked is None else asked
        most = max(most, min(MAX_EXPANSION * size_bytes, MAX_DENSE_BYTES))
        most = max(most, min(ORDINARY_EXPANSION * size_bytes, MAX_MESSAGE_DECOMPRESSED_BYTES))
        records = min(RECORDS_A_BYTE * size_bytes, MAX_DENSE_RECORDS)
        records = max(records, size_bytes // LEAST_RECORD_BYTES)
        records = max(min(records, MAX_RECORDS), (asked or 0) // LEAST_RECORD_BYTES)
        self.batches = MAX_BATCHES
        self.records = self.most_records = records
        self.headers = self.most_headers = HEADERS_A_RECORD * records
        self.decompressed_bytes = self.most_bytes = most

    def state(self) -> tuple[int, int, int, int]:
        """The rest of the budget, for ``restore``."""
        return self.batches, self.records, self.headers, self.decompressed_bytes

    def restore(self, state: tuple[int, int, int, int]) -> None:
        """Gives back what has been taken since ``state``."""
        self.batches, self.records, self.headers, self.decompressed_bytes = state

    def decompress_limit(self) -> int:
        """The most bytes that the next batch may decompress to. Raises DecodeError when there are none left."""
        if self.decompressed_bytes <= 0:
            raise self.too_many_bytes()
        return min(self.decompressed_bytes, max(MAX_DECOMPRESSED_BYTES, _Always.size_bytes or 0))

    def too_many_bytes(self) -> DecodeError:
        """More decompressed bytes in the message than it may have."""
        what = f"more than {self.most_bytes:,} decompressed bytes in one message{_HOW_TO_READ_MORE}"
        return DecodeError(what, code="decompressed_too_large")

    def take_batch(self, offset: int) -> Problem | None:
        """A problem when there are more batches than may still be decoded."""
        if not self.batches:
            return Problem("too_many_batches", f"more than {MAX_BATCHES:,} batches in one message", offset)
        self.batches -= 1
        return None

    def take_records(self, count: int) -> None:
        """Raises DecodeError when there are more than may still be decoded."""
        if count > self.records:
            raise self.too_many_records()
        self.records -= count

    def take_headers(self, count: int) -> None:
        """Raises DecodeError when a record has more headers than may still be decoded."""
        if count > self.headers:
            raise _too_many_records(f"{self.most_headers:,} headers of records")
        self.headers -= count

    def too_many_records(self) -> DecodeError:
        """More records in the message than may be decoded."""
        return _too_many_records(f"{self.most_records:,} records")


def _too_many_records(what: str) -> DecodeError:
    return DecodeError(f"more than {what} in one message{_HOW_TO_READ_MORE}", code="too_many_records")


def problem(error: DecodeError, offset: int) -> Problem:
    """The error as a problem of the frame, at its own offset or else the given one."""
    return Problem(error.code, str(error), error.offset if error.offset is not None else offset)
