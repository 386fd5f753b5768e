"""Shards: the connections that each task of a large source follows.

The sink is written for mypyc: it refuses packets by the million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, final
from zlib import crc32

from kwiresniff.model import Segment, SegmentSink

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Directions remembered with their shard; at 100 bytes each it stays below 10 MB.
MAX_FLOWS: Final = 65_536


def shard_of(flow: bytes, shards: int) -> int:
    """The shard that follows a connection: the same for both directions, on every machine."""
    half = (len(flow) - 4) // 2
    one = flow[:half] + flow[2 * half : 2 * half + 2]
    other = flow[half : 2 * half] + flow[2 * half + 2 :]
    return crc32(min(one, other) + max(one, other)) % shards


class Shard:
    """The connections that hash to one shard of several."""

    def __init__(self, shard: int, shards: int) -> None:
        self._shard = shard
        self._shards = shards
        self._known: dict[bytes, bool] = {}

    def has(self, flow: bytes) -> bool:
        """Whether a connection is among them."""
        found = self._known.get(flow)
        if found is None:
            if len(self._known) >= MAX_FLOWS:
                self._known.clear()
            found = self._known[flow] = shard_of(flow, self._shards) == self._shard
        return found


@final
class ShardSink(SegmentSink):
    """Passes on the segments of a shard to another sink."""

    def __init__(self, sink: SegmentSink, shard: Shard) -> None:
        self._sink = sink
        self._shard = shard

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
        if not self._shard.has(flow):
            return False
        return self._sink.segment(packet, ns, flow, seq, ack, flags, buffer, start, end, missing)


def only_shard(segments: Iterable[Segment], shard: int, shards: int) -> Iterable[Segment]:
    """The segments of the connections that belong to one shard."""
    if shards == 1:
        return segments
    has: Callable[[bytes], bool] = Shard(shard, shards).has
    return (segment for segment in segments if has(segment[2]))
