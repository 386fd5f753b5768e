"""How a broker serves one connection, and what of each wait that explains.

A broker reads the next request of a connection when the answer to the one before has gone; a throttled client's channel
it mutes for ``throttle_time_ms`` more (KIP-219). So the wait for an answer is, in this order: queued behind the answer
before and the muted channel, held back on purpose, and the broker's own time.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import API_VERSIONS, FETCH, JOIN_GROUP, SHARE_FETCH, SYNC_GROUP
from kwiresniff.base.fastint import COMPILED, i32
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import UNKNOWN_NS, Exchange, Message
from kwiresniff.schema.wire_types import FIXED
from kwiresniff.session.apis import UNSUPPORTED_VERSION, ApiFacts
from kwiresniff.session.delays import (
    HELD_NS,
    LATE_NS,
    LONG_POLL,
    OWN_NS,
    POLL_NS,
    REBALANCE,
    THROTTLED,
    holds_throttled,
    is_short,
    max_wait_ns,
    may_be_one_batch,
)

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Before any packet.
NEVER: Final = -(1 << 60)
#: The mute begins when the broker works out the response that tells of it, some time before that leaves: a response
#: that comes so much before its end, or a tenth of it where that is more and not too much, was sent when it ended. One
#: that comes earlier shows that there was none.
MUTE_JITTER_NS: Final = 5_000_000
MAX_MUTE_JITTER_NS: Final = 200_000_000
#: Where ``throttle_time_ms`` stands in an answer, if not so many bytes behind the beginning of the body.
NOWHERE: Final = -1
LAST: Final = -2
NOT_ASKED: Final = -3

_THROTTLE: Final = frozenset({"throttle_time_ms"})
_int32 = Struct(">i").unpack_from


class Channel:
    """What is known of one connection as the broker sees it.

    ``free_ns`` is when the answer before had gone, ``muted_until_ns`` when the mute it told of ends, ``served_ns`` the
    last byte of the request it answered (of the latest of them), ``lost_ns`` when an answer may have gone unseen,
    ``least_ns`` the least of the broker's own time that a Fetch has taken, UNKNOWN_NS before there was one.
    """

    STATE: ClassVar[tuple[str, ...]] = ("free_ns", "least_ns", "lost_ns", "muted_until_ns", "served_ns")
    __slots__ = STATE

    def __init__(self) -> None:
        self.free_ns: int = NEVER
        self.least_ns: int = UNKNOWN_NS
        self.lost_ns: int = NEVER
        self.muted_until_ns: int = NEVER
        self.served_ns: int = NEVER

    def answered(self, exchange: Exchange, request: Message, response: Message, facts: ApiFacts) -> None:
        """Split the wait for an answer, which leaves the channel as it is for the next."""
        sent_ns: int = request.last_ns
        waited_ns: int = response.first_ns - sent_ns
        exchange.queued = 0
        if self.free_ns > sent_ns or self.muted_until_ns > sent_ns or self.lost_ns > sent_ns:
            self._queue(exchange, sent_ns, response.first_ns)
            if exchange.queued > 0:
                waited_ns -= exchange.queued
        self.free_ns = response.last_ns
        if sent_ns > self.served_ns:
            self.served_ns = sent_ns
        exchange.held = 0
        if exchange.queued < 0:
            exchange.held = UNKNOWN_NS
        elif facts.may_hold:
            self._hold(exchange, request, response, facts, waited_ns)
        if facts.throttle_at != NOWHERE:
            throttle_ms: i64 = throttle_time_ms(facts, response)
            if throttle_ms > 0:
                self._throttle(exchange, response, waited_ns, throttle_ms * MILLISECOND_NS)

    def unpaired(self, response: Message) -> None:
        """Notes a response whose request is not in the capture."""
        self.free_ns = response.last_ns

    def _queue(self, exchange: Exchange, sent_ns: int, begun_ns: int) -> None:
        """How long a request waited before the broker read it: 0 for brokers that answer out of order, in parallel."""
        if self.lost_ns > sent_ns:
            exchange.queued = UNKNOWN_NS
            return
        if self.served_ns > sent_ns or begun_ns <= sent_ns:
            return
        read_ns: int = max(min(self.free_ns, begun_ns), sent_ns)
        early_ns: int = self.muted_until_ns - begun_ns
        if self.muted_until_ns > read_ns and early_ns < max(
            MUTE_JITTER_NS, min((self.muted_until_ns - self.free_ns) // 10, MAX_MUTE_JITTER_NS)
        ):
            exchange.muted_ns = min(self.muted_until_ns, begun_ns) - read_ns
            read_ns += exchange.muted_ns
            exchange.waiting = THROTTLED
        exchange.queued = read_ns - sent_ns

    def _hold(self, exchange: Exchange, request: Message, response: Message, facts: ApiFacts, waited_ns: int) -> None:
        """The part of the wait, once the request was read, in which the broker held the response back on purpose."""
        api_key: int = exchange.api_key
        if api_key == FETCH or api_key == SHARE_FETCH:  # noqa: SIM109 - two comparisons when compiled
            held_ns: int = self._polled(request, response, facts, waited_ns) if waited_ns >= POLL_NS else 0
            if held_ns > 0:
                exchange.held = held_ns
                exchange.waiting = LONG_POLL
            else:
                self._note(waited_ns)
        elif (api_key == JOIN_GROUP or api_key == SYNC_GROUP) and waited_ns >= HELD_NS:  # noqa: SIM109
            exchange.held = waited_ns
            exchange.waiting = REBALANCE

    def _polled(self, request: Message, response: Message, facts: ApiFacts, waited_ns: int) -> int:
        """How long a Fetch or ShareFetch was held back.

        A response with fewer than ``min_bytes`` that came after ``max_wait_ms`` was held until the broker's timer
        struck. Where that is less than ``LATE_NS`` ago, the broker's own time is no more than that of the quickest
        response on this connection, or ``OWN_NS``; else it is everything beyond ``max_wait_ms``. A response that came
        with data, but clearly later than the quickest one, was held until the data came, and took the broker as long as
        the quickest; unless it is too large to be one batch.
        """
        limit_ns = max_wait_ns(facts, request)
        over_ns = waited_ns - limit_ns
        if over_ns >= 0:
            if limit_ns <= 0:
                return 0
            if is_short(facts, request, response):
                own_ns: int = over_ns if over_ns >= LATE_NS else min(over_ns, max(self.least_ns, OWN_NS))
                self._note(own_ns)
                return waited_ns - own_ns
            if over_ns >= LATE_NS:
                return 0
        if waited_ns < (HELD_NS if self.least_ns < 0 else self.least_ns + POLL_NS):
            return 0
        return waited_ns - max(self.least_ns, 0) if may_be_one_batch(facts, request, response) else 0

    def _note(self, spent_ns: int) -> None:
        """Notes the broker's own time for a Fetch, where it is measured, not estimated."""
        if spent_ns >= 0 and (spent_ns < self.least_ns or self.least_ns < 0):
            self.least_ns = spent_ns

    def _throttle(self, exchange: Exchange, response: Message, waited_ns: int, throttle_ns: int) -> None:
        """Applies throttling: later requests wait or, with brokers from before KIP-219, this response waited."""
        rest_ns = waited_ns - exchange.held
        if exchange.held >= 0 and rest_ns >= throttle_ns and holds_throttled(exchange.api_key, exchange.api_version):
            exchange.held += throttle_ns
            exchange.waiting = exchange.waiting or THROTTLED
        else:
            self.muted_until_ns = response.first_ns + throttle_ns


def throttle_time_ms(facts: ApiFacts, response: Message) -> i64:
    """``throttle_time_ms`` of a response; 0 where its frame does not have it."""
    frame = response.frame
    if frame is None:
        return 0
    place: i64 = facts.throttle_at
    if place == NOT_ASKED:
        place = facts.throttle_at = throttle_place(facts)
    begin: i64 = response.body_offset
    size: i64 = len(frame)
    at: i64 = begin + place
    if place < 0:
        if place == NOWHERE or size < response.size_bytes:
            return 0
        at = size - 4
        if facts.response_is_flexible:
            if frame[size - 1]:  # tagged fields behind it
                return _told(facts, response, frame)
            at -= 1
        if at < begin:
            return 0
    if at + 4 > size:
        return 0
    return i32(frame, at) if COMPILED else int(_int32(frame, at)[0])


def throttle_place(facts: ApiFacts) -> i64:
    """Where in the bodies of responses ``throttle_time_ms`` is, in bytes."""
    if facts.read_as < 0:  # looking for the definitions of unknown APIs would be what a stream of them costs
        return NOWHERE
    try:
        message = schema.message(facts.api_key, facts.read_as, "response")
    except SchemaError:
        return NOWHERE
    facts.response_is_flexible = message.flexible
    regular = [field for field in message.fields if field.tag is None]
    names = [field.name for field in regular]
    if "throttle_time_ms" not in names:
        return NOWHERE
    index = names.index("throttle_time_ms")
    if index == len(names) - 1 and index > 0:
        return LAST
    sizes = [FIXED[field.type].size if field.type in FIXED and not field.array else 0 for field in regular[:index]]
    return sum(sizes) if all(sizes) else NOWHERE


def _told(facts: ApiFacts, response: Message, frame: bytes) -> int:
    """``throttle_time_ms`` of a response that has fields of variable length before it and behind it."""
    if facts.api_key == API_VERSIONS:
        return _told_by_api_versions(response, frame)
    try:
        found = codec.scanner(facts.api_key, facts.read_as, "response", _THROTTLE)(frame, response.body_offset)
    except (DecodeError, SchemaError):
        return 0
    return int(found[0][1]) if found else 0


def _told_by_api_versions(response: Message, frame: bytes) -> int:
    """An error code, then a short count of entries of seven bytes each; every connection begins with such an answer."""
    at = response.body_offset + 2
    if len(frame) <= at or frame[at] >= 0x80 or int.from_bytes(frame[at - 2 : at], "big") == UNSUPPORTED_VERSION:
        return 0
    entries = frame[at] - 1
    at += 1 + 7 * entries
    # Each entry ends with its tagged fields, of which there are none.
    return int(_int32(frame, at)[0]) if entries > 0 and at + 4 <= len(frame) and not frame[at - 1] else 0
