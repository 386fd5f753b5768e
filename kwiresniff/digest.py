"""What analyses and summaries ask of every message, in place of its decoded body.

``kwiresniff.codec.text.digest_bodies`` takes it from the bytes of bodies that have nothing unusual in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from mypy_extensions import i64


#: The largest offset there is; what would be behind it does not fit into 64 bits.
LAST_OFFSET: Final = (1 << 63) - 1


def offset_behind(base: int, delta: int) -> int:
    """The offset behind a batch whose last record is ``delta`` behind its ``base``, at most ``LAST_OFFSET``."""
    return max(min(base + delta + 1, LAST_OFFSET), -LAST_OFFSET - 1)


@mypyc_attr(free_list_len=1)
class PartitionDigest:
    """A partition in a Produce or Fetch.

    ``offset`` is the ``fetch_offset`` of a request, the ``base_offset`` of an answer to Produce; it and
    ``high_watermark`` are -1 where there is none. Of the whole batches of format 2 ``first_offset`` and ``end_offset``
    are those of the first and behind the last; ``batches``, ``records`` and ``size_bytes`` leave the marks of
    transactions out, ``codec`` is the number of the others' codec, or ``codecs`` the names of their codecs;
    ``is_idempotent`` says that one has a producer's id, and ``producer`` are id, epoch and base sequence of the first
    of those, as they stand in its header (14 bytes; empty without); ``crc`` is the checksum of the first batch of
    format 2, -1 where there is none. ``is_cut`` says that there is one more that is not
    whole. ``all_bytes`` are those of all whole batches, the marks included.
    """

    __slots__ = (
        "all_bytes", "batches", "codec", "codecs", "crc", "end_offset", "first_offset", "high_watermark", "index",
        "is_cut", "is_idempotent", "offset", "producer", "records", "size_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.index: i64 = -1
        self.offset: i64 = -1
        self.high_watermark: i64 = -1
        self.batches: i64 = 0
        self.records: i64 = 0
        self.size_bytes: i64 = 0
        self.all_bytes: i64 = 0
        self.first_offset: i64 = -1
        self.end_offset: i64 = -1
        self.codec: i64 = 0
        self.codecs: list[str] | None = None
        self.crc: i64 = -1
        self.is_idempotent = False
        self.producer = b""
        self.is_cut = False


@mypyc_attr(free_list_len=1)
class TopicDigest:
    """A topic in a Produce or Fetch, by its name or its id, either of which may be empty."""

    __slots__ = ("is_id", "name", "partitions")

    def __init__(self) -> None:
        self.name = ""
        self.is_id = False
        self.partitions: list[PartitionDigest] = []


@mypyc_attr(free_list_len=1)
class Digest:
    """What is asked of a message whose body reads without any problem, but for bytes behind it.

    ``topics`` are those that it names, ``topic_ids`` those that it names by their ids, ``groups`` and
    ``transactional_ids`` alike, in the order in which they stand there; None for none. ``acks``, ``replica_id``,
    ``session_id`` and ``throttle_time_ms`` are the fields of those names. ``records`` are those of ``batches`` whole
    record batches; ``is_cut`` says that there is one more that is not whole. ``parts`` are the topics of a Produce or
    Fetch with their partitions, ``partitions`` the numbers of those that stand anywhere else.
    """

    __slots__ = (
        "acks", "batches", "groups", "is_cut", "partitions", "parts", "records", "replica_id", "session_id",
        "throttle_time_ms", "topic_ids", "topics", "transactional_ids",
    )  # fmt: skip

    def __init__(self) -> None:
        self.topics: list[str] | None = None
        self.topic_ids: list[str] | None = None
        self.groups: list[str] | None = None
        self.transactional_ids: list[str] | None = None
        self.partitions: list[int] | None = None
        self.acks: i64 = -1
        self.replica_id: i64 = -1
        self.session_id: i64 = 0
        self.throttle_time_ms: i64 = 0
        self.batches: i64 = 0
        self.records: i64 = 0
        self.is_cut = False
        self.parts: list[TopicDigest] | None = None
