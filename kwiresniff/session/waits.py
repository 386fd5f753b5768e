"""Time that a broker spends waiting on purpose, which is not slowness.

Fetch holds its answer until ``min_bytes`` are there or ``max_wait_ms`` is over (KIP-74 and before), JoinGroup and
SyncGroup until the whole group has come (KIP-62, KIP-134), and a throttled client waits by quota (KIP-219).
"""

from __future__ import annotations

from typing import Final

from kwiresniff.model import Body, Exchange

FETCH: Final = 1
JOIN_GROUP: Final = 11
SYNC_GROUP: Final = 14
SHARE_FETCH: Final = 78

LONG_POLL = "long poll"
REBALANCE = "rebalance"
THROTTLED = "throttled"

#: Answers faster than this were not held back.
HELD_NS: Final = 10_000_000
#: A long poll may overrun ``max_wait_ms`` by the broker's timer and scheduling; beyond this it is slowness.
GRACE_NS: Final = 50_000_000


def held_fetch(latency_ns: int, max_wait_ms: int) -> bool:
    """Whether a fetch took as long as a long poll that was allowed to wait ``max_wait_ms`` would."""
    return HELD_NS <= latency_ns <= max_wait_ms * 1_000_000 + GRACE_NS


def waiting_reason(exchange: Exchange) -> str:
    """Why the answer was held back on purpose, or an empty string."""
    latency = exchange.latency_ns
    if latency is None:
        return ""
    api_key = exchange.api_key
    request: Body = (exchange.request.body if exchange.request else None) or {}
    response: Body = (exchange.response.body if exchange.response else None) or {}
    if latency >= HELD_NS:
        if api_key in (FETCH, SHARE_FETCH) and held_fetch(latency, request.get("max_wait_ms", 0)):
            return LONG_POLL
        if api_key in (JOIN_GROUP, SYNC_GROUP):
            return REBALANCE
    if response.get("throttle_time_ms", 0) > 0:
        return THROTTLED
    return ""
