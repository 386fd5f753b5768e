"""The parts of each wait for a response: queued on the connection, held back by the broker on purpose, and the rest.

A broker reads the next request of a connection when the answer to the one before has gone; a throttled client's channel
it mutes for ``throttle_time_ms`` more (KIP-219). So the wait for an answer is, in this order: queued behind the answer
before and the muted channel, held back on purpose, and the broker's own time. What packets take from the capture point
to the broker and back, as the handshake shows it, is part of none of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.base.api_keys import FETCH, JOIN_GROUP, SHARE_FETCH, SYNC_GROUP
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import UNKNOWN_NS, Exchange, Message
from kwiresniff.session.apis import ApiFacts
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
    may_be_one_batch,
    read_max_wait_ns,
)
from kwiresniff.session.throttle_time import throttle_time_ms

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Before any packet.
NEVER: Final = -(1 << 60)
#: The mute begins when the broker works out the response that announces it, some time before that leaves: a response
#: that comes so much before its end, or a tenth of it where that is more and not too much, was sent when it ended. One
#: that comes earlier shows that there was none.
MUTE_JITTER_NS: Final = 5_000_000
MAX_MUTE_JITTER_NS: Final = 200_000_000


class Channel:
    """The state of one connection as the broker serves it, by the times of its messages (nanoseconds since 1970).

    ``free_ns`` is when the answer before had gone, ``muted_until_ns`` when the mute it announced ends, ``served_ns``
    the last byte of the request it answered (of the latest of them), ``lost_ns`` when an answer may have gone unseen,
    ``least_ns`` the least of the broker's own time that a Fetch has taken, UNKNOWN_NS before there was one. ``path_ns``
    is what packets take to the broker and back: with times of the capture point, the broker has a request so long after
    it was sent. No answer comes sooner, and one that does shows that the path is shorter than its handshake was.
    """

    STATE: ClassVar[tuple[str, ...]] = ("free_ns", "least_ns", "lost_ns", "muted_until_ns", "path_ns", "served_ns")
    __slots__ = STATE

    def __init__(self) -> None:
        self.free_ns: int = NEVER
        self.least_ns: int = UNKNOWN_NS
        self.lost_ns: int = NEVER
        self.muted_until_ns: int = NEVER
        self.path_ns: int = 0
        self.served_ns: int = NEVER

    def answered(self, exchange: Exchange, request: Message, response: Message, facts: ApiFacts) -> None:
        """Splits the wait for a response into its parts, which it sets in ``exchange``."""
        sent_ns: int = request.last_ns
        waited_ns: int = response.first_ns - sent_ns
        if waited_ns >= 0:  # else no part is known: by its times the capture has them the other way round
            exchange.queued = exchange.held = 0
            if self.path_ns > 0:
                if waited_ns < self.path_ns:
                    self.path_ns = waited_ns
                exchange.path = self.path_ns
                sent_ns += self.path_ns
                waited_ns -= self.path_ns
            if self.free_ns > sent_ns or self.muted_until_ns > sent_ns or self.lost_ns > sent_ns:
                self._queue(exchange, sent_ns, response.first_ns)
                if exchange.queued >= 0:
                    waited_ns -= exchange.queued
                else:
                    exchange.held = UNKNOWN_NS
        self.free_ns = response.last_ns
        if sent_ns > self.served_ns:
            self.served_ns = sent_ns
        if facts.may_hold and exchange.held >= 0:
            self._hold(exchange, request, response, facts, waited_ns)
        throttle_ms: i64 = throttle_time_ms(facts, response)
        if throttle_ms > 0:
            self._throttle(exchange, response, waited_ns, throttle_ms * MILLISECOND_NS)

    def unpaired(self, response: Message) -> None:
        """Notes a response whose request is not in the capture."""
        self.free_ns = response.last_ns

    def _queue(self, exchange: Exchange, sent_ns: int, begun_ns: int) -> None:
        """The time a request waited before the broker read it: 0 for brokers that answer out of order."""
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
            elif held_ns < 0:
                exchange.held = UNKNOWN_NS
            else:
                self._note(waited_ns)
        elif (api_key == JOIN_GROUP or api_key == SYNC_GROUP) and waited_ns >= HELD_NS:  # noqa: SIM109
            exchange.held = waited_ns
            exchange.waiting = REBALANCE

    def _polled(self, request: Message, response: Message, facts: ApiFacts, waited_ns: int) -> int:
        """How long a Fetch was held back; UNKNOWN_NS where it was cut off.

        With fewer than ``min_bytes`` after ``max_wait_ms`` the timer struck: within ``LATE_NS`` the broker took no more
        than its quickest response, or ``OWN_NS``, else all beyond. One with data that came later than the quickest was
        held until then, unless it is more than one batch.
        """
        limit_ns = read_max_wait_ns(facts, request)
        if limit_ns < 0:
            return UNKNOWN_NS
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
