"""Views of connections: what of their exchanges is remembered to find the same stream seen elsewhere.

Before and after address translation (NAT) a stream has the same TCP sequence numbers in both directions. A proxy makes
a new connection of its own, with the same messages: each exchange on the leg to the broker lies in time within the same
one on the leg from the client, by one clock, or by two that are all the time about as far apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.base.flows import host_of
from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.model import Connection, Event, Exchange, Message

if TYPE_CHECKING:
    from mypy_extensions import i64

#: What is between two views.
NAT: Final = "nat"
PROXY: Final = "proxy"

#: Exchanges remembered of a connection that may have another view, some 400 bytes each: what is in flight.
MAX_RECENT: Final = 64
#: Bytes whose checksum is compared, kept at every depth: Produce's hold the first batch's header.
COMPARED_REQUEST_BYTES: Final = 512
COMPARED_RESPONSE_BYTES: Final = 64
#: Exchanges that must agree on both legs of a proxy; two equal clients agree in one or two by chance.
ENOUGH_EQUAL: Final = 3
#: The same where only the messages and their times say so: neither do the hosts of both legs meet in the proxy, nor are
#: the times of both by one clock.
ENOUGH_APART: Final = 10
#: How much the clocks of two capture points drift while a proxy between them is watched.
MAX_DRIFT_NS: Final = 100_000_000
#: Correlation ids, and bytes of requests, that two views of one stream may be apart when one of them begins.
NEAR_IDS: Final = 1_000
NEAR_BYTES: Final = 1 << 20
#: Initial sequence numbers all below this (one in 4,096, RFC 6528) were made or rewritten, maybe all alike.
MIN_RANDOM: Final = 1 << 20
#: Clocks of hosts without any care differ by seconds.
MAX_SKEW_NS: Final = 60_000_000_000
#: Exchanges without a counterpart before a view is another stream: what is in flight between both.
MAX_UNMATCHED: Final = 64
#: Exchanges of which it is remembered how much longer they took at one view than at the other.
MAX_SAMPLES: Final = 16


def _content(message: Message | None, compared: int) -> tuple[int, int]:
    """The size of a message and a checksum of its first bytes, by which it is compared."""
    if message is None:
        return -1, 0
    return message.size_bytes, 0 if message.frame is None else crc32(message.frame[:compared])


class Sighting:
    """An exchange as one view has it. Times are nanoseconds, -1 without request or response."""

    __slots__ = ("api_key", "api_version", "asked_ns", "client_id", "correlation_id", "done_ns", "end_seq",
                 "latency_ns", "packet", "request", "response")  # fmt: skip

    def __init__(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        self.correlation_id: i64 = exchange.correlation_id
        self.api_key: i64 = exchange.api_key
        self.api_version: i64 = exchange.api_version
        self.client_id = exchange.client_id
        self.end_seq: i64 = -1 if request is None else request.end_seq
        self.request = _content(request, COMPARED_REQUEST_BYTES)
        self.response = _content(response, COMPARED_RESPONSE_BYTES)
        self.packet: i64 = -1 if request is None else request.first_packet
        self.asked_ns = -1 if request is None else request.first_ns
        self.done_ns = -1 if response is None else response.last_ns
        self.latency_ns = exchange.latency_ns

    def says_the_same(self, other: Sighting) -> bool:
        """Whether both have equal messages."""
        return (
            self.correlation_id == other.correlation_id
            and self.api_key == other.api_key
            and self.api_version == other.api_version
            and self.client_id == other.client_id
            and self.request == other.request
            and (self.response == other.response or self.done_ns < 0 or other.done_ns < 0)
        )

    def is_random_and_near(self, other: Sighting) -> bool:
        """Whether equal sequence numbers say that both are the same, by clocks that may differ."""
        apart_ns = self.asked_ns - other.asked_ns
        return self.end_seq >= MIN_RANDOM and -MAX_SKEW_NS <= apart_ns <= MAX_SKEW_NS

    def lies_within(self, outer: Sighting) -> bool:
        """Whether it began and ended in time between beginning and end of the other one."""
        return self.asked_ns >= outer.asked_ns and (self.done_ns <= outer.done_ns or outer.done_ns < 0)


class Candidate:
    """A ``view`` that may be the same stream as another, which is the ``outer`` one (the leg from the client) or the
    inner one, if there is a proxy between them.

    ``equal`` counts the exchanges that agreed, ``unmatched`` those that the candidate does not have (yet); ``waiting``
    is one of these that was asked after ``since_ns``, when both were remembered. The clock at the inner leg is late by
    ``least_ns`` to ``most_ns``. ``linked`` says that the hosts of both legs meet, ``is_known`` that a proxy is
    between them.
    """

    __slots__ = (
        "equal", "is_known", "least_ns", "linked", "most_ns", "outer", "since_ns", "unmatched", "via", "view",
        "waiting",
    )  # fmt: skip

    def __init__(self, view: View, via: str, outer: bool, since_ns: int, linked: bool) -> None:
        self.view = view
        self.linked = linked
        self.is_known = False
        self.least_ns, self.most_ns = -MAX_SKEW_NS, MAX_SKEW_NS
        self.since_ns = since_ns
        self.waiting: Sighting | None = None
        self.via = via
        self.outer = outer
        self.equal: i64 = 0
        self.unmatched: i64 = 0

    def follow(self, least_ns: int, most_ns: int) -> None:
        """Takes for evidence that there was a proxy between the same hosts, if the clock is about as late as then."""
        if not self.is_known:
            self.least_ns = max(self.least_ns, least_ns - MAX_DRIFT_NS)
            self.most_ns = min(self.most_ns, most_ns + MAX_DRIFT_NS)
            self.is_known = self.least_ns <= self.most_ns

    def agrees(self, own: Sighting, theirs: Sighting) -> bool:
        """Whether a sighting of the view in question and one of the candidate can be the same exchange."""
        if not own.says_the_same(theirs):
            return False
        if self.via == NAT:
            is_nested = own.lies_within(theirs) or theirs.lies_within(own)
            return own.end_seq == theirs.end_seq and (is_nested or own.is_random_and_near(theirs))
        inner, outer = (theirs, own) if self.outer else (own, theirs)
        self.least_ns = max(self.least_ns, outer.asked_ns - inner.asked_ns)
        if inner.done_ns >= 0 and outer.done_ns >= 0:
            self.most_ns = min(self.most_ns, outer.done_ns - inner.done_ns)
        return self.least_ns <= self.most_ns and (self.linked or self.is_known or self.is_nested())

    def is_nested(self) -> bool:
        """Whether all exchanges of the inner leg lie in time within those of the outer one, by one clock."""
        return self.least_ns <= 0 <= self.most_ns

    def is_soon(self, within_ns: int) -> bool:
        """Whether hosts meet, and the clock at the inner leg need not be late, or fast, by more."""
        return self.linked and self.least_ns <= within_ns and self.most_ns >= -within_ns

    def is_strong(self) -> bool:
        """Whether more than messages speaks for it: sequence numbers, or hosts that meet and times by one clock."""
        return self.via == NAT or self.is_known or (self.linked and self.is_nested())

    def enough(self) -> i64:
        """The number of exchanges that have to agree."""
        if self.via == PROXY:
            return ENOUGH_EQUAL if self.is_strong() else ENOUGH_APART
        first = self.view.first
        return 1 if first is not None and first.end_seq >= MIN_RANDOM else ENOUGH_EQUAL

    def lacks(self, theirs: Sighting) -> bool:
        """Whether it has gone on without an exchange of the view in question, when it has ``theirs``."""
        waiting = self.waiting
        return waiting is not None and 0 <= waiting.done_ns < theirs.asked_ns

    def holds(self, own: Sighting, theirs: Sighting | None) -> bool:
        """Whether it still may be the same stream, after another exchange of the view in question, or of its own."""
        if theirs is None or own.asked_ns < 0 or theirs.asked_ns < 0:
            self.unmatched += 1
            ahead_ns = 0 if not self.equal else self.most_ns if self.outer else -self.least_ns
            if self.waiting is None and own.asked_ns >= self.since_ns + max(ahead_ns, 0):
                self.waiting = own
            return self.unmatched <= MAX_UNMATCHED
        if not self.agrees(own, theirs):
            return False
        self.waiting = None
        self.equal += ENOUGH_EQUAL if own.api_key == PRODUCE else 1
        return True


class View:
    """What is known of a connection: its ``first`` exchange and, once there may be another view, the ``recent`` ones by
    correlation id.

    It counts unless it has an ``origin``, the view that counts in its place, or ``candidates``, as long as these are
    being compared: then its events are ``held``. ``watchers`` are the views that are compared with it. ``is_plain``
    says that none of this is so, ``is_leg`` that the other leg of its proxy is known.
    """

    __slots__ = (
        "broker_host", "candidates", "client_host", "client_id", "connection", "first", "has_ended", "held",
        "held_bytes", "is_leg", "is_plain", "number", "origin", "port", "recent", "samples", "seqs", "watchers",
    )  # fmt: skip

    def __init__(self, connection: Connection, first: Sighting | None) -> None:
        self.connection = connection
        self.number = connection.id
        self.client_id = None if first is None else first.client_id
        self.client_host, _, self.port = connection.client.rpartition(":")
        self.broker_host = host_of(connection.broker)
        self.first = first
        self.seqs: tuple[int, ...] = ()
        self.recent: dict[int, Sighting] | None = None
        self.origin: View | None = None
        self.candidates: list[Candidate] = []
        self.watchers: list[View] = []
        self.held: list[Event] = []
        self.held_bytes: i64 = 0
        self.is_leg = False
        self.has_ended = False
        self.samples: list[int] = []
        self.is_plain = True

    def watch(self) -> None:
        """Remembers its exchanges from now on."""
        self.is_plain = False
        if self.recent is None:
            self.recent = {}

    def rest(self) -> None:
        """Remembers no more exchanges, if there is nothing left to compare them with."""
        if self.origin is None and not self.candidates and not self.watchers:
            self.is_plain = True
            self.recent = None

    def remember(self, sighting: Sighting) -> None:
        """Adds a sighting to the recent ones, in the place of the oldest of too many."""
        recent = self.recent
        assert recent is not None
        recent.pop(sighting.correlation_id, None)
        recent[sighting.correlation_id] = sighting
        if len(recent) > MAX_RECENT:
            del recent[next(iter(recent))]

    def sighting(self, other: Sighting) -> Sighting | None:
        """The exchange with the correlation id of that one, as far as it is remembered."""
        found = self.recent.get(other.correlation_id) if self.recent is not None else None
        if found is None and self.first is not None and self.first.correlation_id == other.correlation_id:
            return self.first
        return found

    def is_near(self, other: View, via: str) -> bool:
        """Whether both are about as far in what may be one stream."""
        one, two = self.connection, other.connection
        ahead = one.correlation_id - two.correlation_id
        if ahead > NEAR_IDS or -ahead > NEAR_IDS:
            return False
        apart = (one.end_seq - two.end_seq) & SEQ_MASK
        return via != NAT or min(apart, SEQ_MASK - apart) <= NEAR_BYTES

    def sample(self, own: Sighting, theirs: Sighting) -> bool:
        """Adds a difference in waiting between two sightings of an exchange; False when there are enough."""
        if own.latency_ns is not None and theirs.latency_ns is not None:
            self.samples.append(abs(own.latency_ns - theirs.latency_ns))
            self.connection.apart_ns = sorted(self.samples)[len(self.samples) // 2]
        return len(self.samples) < MAX_SAMPLES


def is_translated(one: str, two: str) -> bool:
    """Whether two clients (``ip:port``) may be one behind address translation."""
    return one == two or host_of(one) != host_of(two)
