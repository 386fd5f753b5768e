"""Responses that a broker holds back on purpose, which is not slowness.

Fetch holds its answer until ``min_bytes`` are there or ``max_wait_ms`` is over (protocol guide), ShareFetch alike
(KIP-932), JoinGroup and SyncGroup until the whole group has come (KIP-62, KIP-134). Brokers before KIP-219 also held
the answers of clients beyond their quota.
"""

from __future__ import annotations

from typing import Final

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import FETCH, SHARE_FETCH
from kwiresniff.base.time_units import MILLISECOND_NS, OVERRUN_NS
from kwiresniff.errors import SchemaError
from kwiresniff.model import UNKNOWN_NS, Exchange, Message
from kwiresniff.session.apis import ApiFacts, api_facts

LONG_POLL: Final = "long poll"
REBALANCE: Final = "rebalance"
THROTTLED: Final = "throttled"

#: Answers faster than this were not held back, as far as nothing else is known.
HELD_NS: Final = 10_000_000
#: A long poll takes so much longer than the quickest answer on its connection.
POLL_NS: Final = 2_000_000
#: The timer that ends a long poll ticks every millisecond (``SystemTimer``), and the threads that it wakes may have to
#: wait for a processor: an answer that comes less late than ``LATE_NS`` was held until then. For the rest a broker
#: takes ``OWN_NS``, measured in the request log that docs/latency.md is held to: 118 long polls that ended with their
#: timer took 0.62 ms in the median (quartiles 0.57 and 0.69 ms), and 0.05 ms on the wire.
LATE_NS: Final = 10_000_000
OWN_NS: Final = 700_000
#: The last release whose brokers hold the answers of throttled clients; later ones mute the channel instead.
LAST_HOLDING_RELEASE: Final = "1.1"

#: In the place of a number that a snap length cut off; no INT32 is as low.
_CUT_OFF: Final = -1 << 40

#: The largest batch that a broker takes unless it is configured otherwise (``message.max.bytes``), and some room.
BATCH_BYTES: Final = (1 << 20) + 4096


def max_wait_ns(facts: ApiFacts, request: Message) -> int:
    """``max_wait_ms`` of a Fetch or ShareFetch in nanoseconds; 0 when it cannot be read."""
    return max(read_max_wait_ns(facts, request), 0)


def read_max_wait_ns(facts: ApiFacts, request: Message) -> int:
    """``max_wait_ms`` of a Fetch or ShareFetch in nanoseconds; UNKNOWN_NS where its request ends before it."""
    frame = request.frame
    if frame is None:
        return UNKNOWN_NS
    wait_ms = facts.number("request", "max_wait_ms").read(frame, request.body_offset, _CUT_OFF)
    return UNKNOWN_NS if wait_ms == _CUT_OFF else MILLISECOND_NS * wait_ms


def under_way(exchange: Exchange, over_ns: int) -> bool:
    """Whether a Fetch or ShareFetch, when its connection ended at ``over_ns``, could still be held back."""
    request = exchange.request
    if request is None or exchange.api_key not in (FETCH, SHARE_FETCH):
        return False
    facts = api_facts(exchange.api_key, exchange.api_version)
    return over_ns - request.last_ns <= max_wait_ns(facts, request) + OVERRUN_NS


def min_bytes(facts: ApiFacts, request: Message) -> int:
    """``min_bytes`` of a Fetch or ShareFetch; 0 when it cannot be read."""
    frame = request.frame
    return facts.number("request", "min_bytes").read(frame, request.body_offset, 0) if frame is not None else 0


def is_short(facts: ApiFacts, request: Message, response: Message) -> bool:
    """Whether a response may hold fewer bytes of records than ``min_bytes``; one without records always does."""
    wanted = min_bytes(facts, request)
    if response.size_bytes < wanted:
        return True
    held = record_bytes(facts, response)
    return held is None or held < max(wanted, 1)


def may_be_one_batch(facts: ApiFacts, request: Message, response: Message) -> bool:
    """Whether a response may have become large enough by the arrival of a single batch."""
    return response.size_bytes <= BATCH_BYTES or response.size_bytes - BATCH_BYTES <= min_bytes(facts, request)


def record_bytes(facts: ApiFacts, response: Message) -> int | None:
    """Bytes of record sets in a response, stripped ones included; None where tagged fields obscure it."""
    frame = response.frame
    if frame is None or facts.read_as < 0:  # looking for the definitions of unknown APIs would cost much
        return None
    try:
        weigher = codec.record_weigher(facts.api_key, facts.read_as)
    except SchemaError:
        return None
    if not weigher.scan(frame, response.body_offset) or weigher.tagged:
        return None
    sizes: list[int] = [size for _, size in weigher.found]
    return sum(sizes) + response.size_bytes - len(frame)


def holds_throttled(api_key: int, version: int) -> bool:
    """Whether a broker that answers this version may be one that holds back the answers of throttled clients."""
    offered = schema.versions_in(LAST_HOLDING_RELEASE).get(api_key)
    return offered is not None and version <= offered[1]
