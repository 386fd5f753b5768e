"""What a broker holds back on purpose, which is not slowness.

Fetch holds its answer until ``min_bytes`` are there or ``max_wait_ms`` is over (KIP-74 and before), ShareFetch alike
(KIP-932), JoinGroup and SyncGroup until the whole group has come (KIP-62, KIP-134). Brokers before KIP-219 also held
the answers of clients beyond their quota.
"""

from __future__ import annotations

from typing import Final

from kwiresniff import codec, schema
from kwiresniff.codec.skim import Skimmer
from kwiresniff.compiled import i32
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Message
from kwiresniff.session.apis import MAX_FACTS, ApiFacts

FETCH: Final = 1
JOIN_GROUP: Final = 11
SYNC_GROUP: Final = 14
SHARE_FETCH: Final = 78

LONG_POLL: Final = "long poll"
REBALANCE: Final = "rebalance"
THROTTLED: Final = "throttled"

MILLISECOND_NS: Final = 1_000_000
#: Answers faster than this were not held back.
HELD_NS: Final = 10_000_000
#: The last release whose brokers hold the answers of throttled clients; later ones mute the channel instead.
LAST_HOLDING_RELEASE: Final = "1.1"

_WAIT_AND_BYTES: Final = frozenset({"max_wait_ms", "min_bytes"})
#: What tells the sizes of an answer's record sets, by (api_key << 16) + version.
_weighers: Final[dict[int, Skimmer | None]] = {}


def held_by_fetch(facts: ApiFacts, request: Message, response: Message, waited_ns: int) -> int:
    """How much of ``waited_ns`` a Fetch or ShareFetch was held back.

    When ``max_wait_ms`` was over before the answer came and that holds fewer than ``min_bytes``, the broker waited so
    long for more, and what is beyond it took the broker. An answer that came earlier, but not at once, came with the
    data it was held back for.
    """
    found = _wait_and_bytes(facts, request)
    if found is None:
        return 0
    limit_ns, min_bytes = found[0] * MILLISECOND_NS, found[1]
    if waited_ns >= limit_ns:
        return limit_ns if limit_ns > 0 and _is_short(facts, response, min_bytes) else 0
    return waited_ns if waited_ns >= HELD_NS else 0


def _wait_and_bytes(facts: ApiFacts, request: Message) -> tuple[int, int] | None:
    """``max_wait_ms`` and ``min_bytes`` of a request; None when they are not there."""
    frame, at = request.frame, request.body_offset
    if frame is None:
        return None
    if facts.api_key == FETCH:  # they lead the body from v15 on, before that replica_id does
        at += 0 if facts.read_as >= 15 else 4
        return (int(i32(frame, at)), int(i32(frame, at + 4))) if at + 8 <= len(frame) else None
    try:
        named = dict(codec.scanner(facts.api_key, facts.read_as, "request", _WAIT_AND_BYTES)(frame, at))
    except (DecodeError, SchemaError):
        return None
    return (named["max_wait_ms"], named["min_bytes"]) if len(named) == len(_WAIT_AND_BYTES) else None


def _is_short(facts: ApiFacts, response: Message, min_bytes: int) -> bool:
    """Whether an answer may hold fewer than ``min_bytes`` of records; one that holds none always does."""
    if response.size_bytes < min_bytes:
        return True
    held = record_bytes(facts, response)
    return held is None or held < max(min_bytes, 1)


def record_bytes(facts: ApiFacts, response: Message) -> int | None:
    """Bytes of record sets in an answer, those left out of its frame too; None where that is not certain."""
    key = (facts.api_key << 16) + facts.read_as
    if key not in _weighers:
        if len(_weighers) >= MAX_FACTS:
            _weighers.clear()
        _weighers[key] = codec.record_weigher(facts.api_key, facts.read_as)
    weigher, frame = _weighers[key], response.frame
    sizes = weigher.codes(frame, response.body_offset) if weigher is not None and frame is not None else None
    return None if sizes is None or frame is None else sum(sizes) + response.size_bytes - len(frame)


def holds_throttled(api_key: int, version: int) -> bool:
    """Whether a broker that answers this version may be one that holds back the answers of throttled clients."""
    offered = schema.versions_in(LAST_HOLDING_RELEASE).get(api_key)
    return offered is not None and version <= offered[1]
