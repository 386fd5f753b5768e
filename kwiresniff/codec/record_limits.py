"""Limits on what reading one message may cost: records, batches, decompressed bytes, nodes of a tree."""

from __future__ import annotations

from kwiresniff.base.light_typing import Final
from kwiresniff.errors import DecodeError
from kwiresniff.model import Problem

#: Nodes kept for one message: the metadata of ten thousand partitions. A node costs about 300 bytes, so a dissection
#: takes some 60 MB at the worst.
MAX_NODES = 200_000

#: Nodes of a batch without its records: itself, the fields of its header, and the one that holds the records; of its
#: size before compression, where it is compressed; of a record, its length and its headers among them; and of a header
#: with its key and its value.
BATCH_NODES: Final = 15
COMPRESSED_NODES: Final = 1
RECORD_NODES: Final = 8
HEADER_NODES: Final = 3

#: Records decoded from one message. A consumer takes 50 MiB at a time by default (fetch.max.bytes): half a million
#: records of 100 bytes, four times that when they compress well; two million of the smallest are 1 GB of Python.
MAX_RECORDS = 2_000_000

#: Batches and outer messages of one message. Producers that do not wait send batches of one record, 350,000 of which
#: fill the 50 MiB of a fetch; a million of them are 1 GB of Python.
MAX_BATCHES = 1_000_000

#: Decompressed bytes of one batch. A broker takes requests of at most 100 MiB by default
#: (socket.request.max.bytes), so no default set-up lets a producer even hold a larger batch uncompressed.
MAX_DECOMPRESSED_BYTES = 100 * 1024 * 1024

#: Decompressed bytes of one message: four times what a consumer takes at a time by default.
MAX_MESSAGE_DECOMPRESSED_BYTES = 2 * MAX_DECOMPRESSED_BYTES

#: Bytes that each compressed byte may become: the most that gzip makes of one (RFC 1951, 258 bytes of two bits).
#: Only zstd packs more densely, and no producer's data but that of a few bytes repeated for ever.
MAX_EXPANSION = 1_032

#: Bytes that any batch may become, however few it is compressed to: four times the largest request of a producer by
#: default (max.request.size, before compression).
ALWAYS_DECOMPRESSED_BYTES = 4 * 1024 * 1024

#: Compressed message sets inside compressed message sets. Kafka's clients never nest one in another; two levels
#: more than that cost nothing.
MAX_NESTING = 3

#: No batch is larger than its log segment, 1 GiB by default (log.segment.bytes): a larger size is noise, not a
#: batch that was cut short.
MAX_BATCH_BYTES: Final = 1 << 30


class RecordBudget:
    """What may still be decoded of one record set, or of all those of one message: batches, records, decompressed
    bytes.
    """

    __slots__ = ("batches", "decompressed_bytes", "records")

    def __init__(self) -> None:
        self.batches = MAX_BATCHES
        self.records = MAX_RECORDS
        self.decompressed_bytes = MAX_MESSAGE_DECOMPRESSED_BYTES

    def decompress_limit(self, compressed_bytes: int) -> int:
        """The most bytes that the next batch of ``compressed_bytes`` may decompress to."""
        dense = max(ALWAYS_DECOMPRESSED_BYTES, MAX_EXPANSION * compressed_bytes)
        return min(dense, MAX_DECOMPRESSED_BYTES, self.decompressed_bytes)

    def take_batch(self, offset: int) -> Problem | None:
        """A problem when there are more batches than may still be decoded."""
        if not self.batches:
            return Problem("too_many_batches", f"more than {MAX_BATCHES:,} batches in one message", offset)
        self.batches -= 1
        return None

    def take_records(self, count: int) -> None:
        """Raises DecodeError when there are more than may still be decoded."""
        if count > self.records:
            raise too_many_records()
        self.records -= count


def too_many_records() -> DecodeError:
    """More records in one message than may be decoded."""
    return DecodeError(f"more than {MAX_RECORDS:,} records in one message", code="too_many_records")


def problem(error: DecodeError, offset: int) -> Problem:
    """The error as a problem of the frame, at its own offset or else the given one."""
    return Problem(error.code, str(error), error.offset if error.offset is not None else offset)
