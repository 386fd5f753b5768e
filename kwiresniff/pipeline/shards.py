"""Shards: the connections that each task of a large source follows.

The sink is written for mypyc: it refuses packets by the million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final
from zlib import crc32

from kwiresniff.model import Segment, SegmentSink

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Directions remembered with their shard; at 200 bytes each that is below 14 MB.
MAX_FLOWS: Final = 65_536


def shard_of(flow: bytes, shards: int) -> int:
    """The shard that follows a connection: the same for both directions, on every machine."""
    half = (len(flow) - 4) // 2
    one = flow[:half] + flow[2 * half : 2 * half + 2]
    other = flow[half : 2 * half] + flow[2 * half + 2 :]
    return crc32(min(one, other) + max(one, other)) % shards


def members(shard: int, shards: int) -> Callable[[bytes], bool]:
    """Tells of a connection whether it hashes to this one of several shards."""
    return lru_cache(MAX_FLOWS)(lambda flow: shard_of(flow, shards) == shard)


@final
class ConnectionNumbers:
    """The numbers of connections in tables, which keep those apart that were given in different tasks."""

    def __init__(self, shard: i64, shards: i64) -> None:
        self._shard: i64 = shard
        self._shards: i64 = shards

    def of(self, connection: i64) -> i64:
        """The number in tables of the connection that its task gave the number ``connection``."""
        return (connection - 1) * self._shards + self._shard + 1


@final
class ShardSink(SegmentSink):
    """Passes on the segments of a shard, whose connections ``has`` tells, to another sink."""

    def __init__(self, sink: SegmentSink, has: Callable[[bytes], bool]) -> None:
        self._sink = sink
        self._has = has

    def segment(
        self,
        packet: i64,
        ns: int,
        flow: bytes,
        seq: i64,
        ack: i64,
        flags: i64,
        buffer: bytes,
        start: i64,
        end: i64,
        missing: i64,
    ) -> bool:
        if not self._has(flow):
            return False
        return self._sink.segment(packet, ns, flow, seq, ack, flags, buffer, start, end, missing)


def only_shard(segments: Iterable[Segment], shard: int, shards: int) -> Iterable[Segment]:
    """The segments of the connections that belong to one shard."""
    if shards == 1:
        return segments
    has = members(shard, shards)
    return (segment for segment in segments if has(segment[2]))
