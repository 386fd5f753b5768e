"""Shards: the connections that each task of a large source follows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from zlib import crc32

from kwiresniff.model import Segment

#: Directions remembered with their shard; at 200 bytes each that is below 14 MB.
MAX_FLOWS: Final = 65_536


def shard_of(flow: bytes, shards: int) -> int:
    """The shard that follows a connection: the same for both directions, on every machine."""
    half = (len(flow) - 4) // 2
    one = flow[:half] + flow[2 * half : 2 * half + 2]
    other = flow[half : 2 * half] + flow[2 * half + 2 :]
    return crc32(min(one, other) + max(one, other)) % shards


def only_shard(segments: Iterable[Segment], shard: int, shards: int) -> Iterable[Segment]:
    """The segments of the connections that belong to one shard."""
    if shards == 1:
        return segments
    shard_by_flow = lru_cache(MAX_FLOWS)(lambda flow: shard_of(flow, shards))
    return (segment for segment in segments if shard_by_flow(segment[2]) == shard)
