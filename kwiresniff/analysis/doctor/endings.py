"""Connections that end with requests unanswered: who closed, after which request, and why, as far as the wire tells.

A broker closes without a word on a request of a version that it does not take, on one that is larger than
``socket.request.max.bytes``, and on anything but SASL where a listener wants that first (KIP-152). A TLS listener
answers plaintext with an alert of seven bytes (RFC 8446, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from kwiresniff.analysis.doctor.bodies import request_body
from kwiresniff.analysis.doctor.cluster import AT_ADVERTISED, BEFORE_AUTHENTICATION, LEAST_PRODUCE, Cluster, is_removed
from kwiresniff.analysis.doctor.evidence import client_text, is_cut
from kwiresniff.base.api_keys import API_VERSIONS, FETCH, JOIN_GROUP, PRODUCE, SASL_AUTHENTICATE, SHARE_FETCH
from kwiresniff.base.time_units import MILLISECOND_NS, OVERRUN_NS
from kwiresniff.errors import SchemaError
from kwiresniff.model import Connection, Exchange, Problem
from kwiresniff.schema import find_release, releases, versions_in

#: Connections that have not ended and have unanswered requests; those of one end with it, so there are few.
MAX_OPEN = 2_000
#: Unanswered requests of a connection that are kept apart; the others are counted.
MAX_REQUESTS = 20
#: The largest segment of data with ordinary interfaces, whose MTU is 1,500 bytes.
FULL_SEGMENT_BYTES = 1_460
#: A TLS alert: a record header of five bytes, level and description.
ALERT_BYTES = 7
#: A broker that closes because of a request does so at once; later it has another reason.
AT_ONCE_NS = 5_000_000_000
#: A version that it does not take, it refuses as soon as it reads it.
REFUSED_NS = 250_000_000
#: How long a Fetch or JoinGroup may wait that is cut off before it says so: as long as clients wait for any response
#: (``request.timeout.ms``), and their ``max.poll.interval.ms``.
CUT_POLL_MS = 30_000
CUT_JOIN_MS = 300_000


#: Why a connection ended with requests unanswered.
Reason: TypeAlias = Literal[
    "TLS wanted", "version refused", "SASL wanted", "not authenticated", "closed by broker", "closed by client",
    "response arriving", "capture ended",
]  # fmt: skip


class Unanswered(NamedTuple):
    """A request without an answer. ``patience_ns`` is how long the broker may leave it waiting on purpose."""

    api_key: int
    api: str
    version: int
    packet: int
    first_ns: int
    last_ns: int
    size_bytes: int
    patience_ns: int


@dataclass(slots=True, eq=False)
class Ending:
    """A connection and the requests that it left unanswered, the first ``MAX_REQUESTS`` of ``count``; where a response
    was arriving, ``begun_ns`` is when it had begun and ``present_bytes`` how much had come."""

    connection: Connection
    requests: list[Unanswered] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    reason: Reason = "capture ended"
    waited_ns: int = 0
    begun_ns: int = 0
    present_bytes: int = 0

    @property
    def first(self) -> Unanswered:
        """The oldest of them."""
        return self.requests[0]


class Endings:
    """Collects unanswered requests by connection until it ends."""

    def __init__(self) -> None:
        self._open: dict[int, Ending] = {}
        self._gaps: set[int] = set()
        self._sent: set[int] = set()  # connections on which a broker sent what never arrived
        self._begun: dict[int, tuple[int, int]] = {}  # when a response had begun, and how much of it came

    def mark_gap(self, problem: Problem) -> bool:
        """Excludes a connection of which bytes from the broker are missing: they may have been responses. Returns
        whether it is one."""
        details = problem.details or {}
        if problem.code == "incomplete_response" and len(self._begun) < MAX_OPEN:
            self._begun[details.get("connection", 0)] = problem.timestamp_ns or 0, details.get("present_bytes", 0)
        if details.get("direction") != "response" or not details.get("missing_bytes"):
            return False
        arrived = not details.get("unacknowledged")  # else the client has not got them either
        found = self._gaps if arrived else self._sent
        if len(found) < MAX_OPEN:
            found.add(details.get("connection", 0))
        return arrived

    def add(self, exchange: Exchange) -> None:
        """Adds a request without a response."""
        request, connection = exchange.request, exchange.connection
        if request is None:
            return
        ending = self._open.get(connection.id)
        if ending is None:
            if len(self._open) >= MAX_OPEN:
                self._open.pop(next(iter(self._open)))
            ending = self._open[connection.id] = Ending(connection)
        ending.counts[exchange.api] = ending.counts.get(exchange.api, 0) + 1
        if len(ending.requests) < MAX_REQUESTS:
            ending.requests.append(
                Unanswered(
                    exchange.api_key,
                    exchange.api,
                    exchange.api_version,
                    request.first_packet,
                    request.first_ns,
                    request.last_ns,
                    request.size_bytes,
                    patience_of(exchange),
                )
            )

    def end(self, connection: Connection, cluster: Cluster, end_ns: int) -> Ending | None:
        """Ends a connection; returns what there is to say of its unanswered requests, or None."""
        ending = self._open.pop(connection.id, None)
        gap, sent = connection.id in self._gaps, connection.id in self._sent
        self._gaps.discard(connection.id)
        self._sent.discard(connection.id)
        begun_ns, present = self._begun.pop(connection.id, (0, 0))
        # What could not be read of the broker's bytes may have been the responses.
        if ending is None or not ending.requests or gap or connection.skipped_bytes[1] or is_one_way(connection):
            return None
        ending.connection = connection
        over_ns = connection.closed_ns or end_ns
        ending.waited_ns = max(over_ns - ending.first.last_ns, 0)
        ending.reason = _reason(ending, cluster)
        if ending.reason in ("closed by client", "capture ended") and is_arriving(
            connection, begun_ns, over_ns, present
        ):
            ending.reason, ending.begun_ns, ending.present_bytes = "response arriving", begun_ns, present
        # A broker that had answered did not close the connection instead.
        return None if sent and ending.reason == "closed by broker" else ending


def is_arriving(connection: Connection, begun_ns: int, over_ns: int, present_bytes: int) -> bool:
    """Whether a response that had begun was still coming when its connection was over: from its begin on the broker
    sent at half the rate of before or more, and more than a full segment."""
    before_bytes = connection.bytes[1] - present_bytes
    before_ns, since_ns = begun_ns - connection.first_ns, max(over_ns - begun_ns, 1)
    return present_bytes > FULL_SEGMENT_BYTES and 2 * present_bytes * max(before_ns, 1) >= before_bytes * since_ns


def is_one_way(connection: Connection) -> bool:
    """Whether the capture has nothing of a broker that did send something: without its SYN-ACK the client would have
    sent no request, and without its acknowledgements most of its packets again and again."""
    if connection.packets[1] or not connection.packets[0]:
        return False
    established = connection.handshake_seen and connection.bytes[0] > 0
    return established or connection.retransmits[0] * 10 < connection.packets[0]


def client_in(ending: Ending) -> str:
    """The client of a connection that has ended."""
    return client_text(ending.connection.client_id, ending.connection.client)


def is_waiting(ending: Ending, request: Unanswered) -> bool:
    """Whether a broker that does its work would not have answered yet: a long poll, a rebalance under way."""
    over_ns = ending.first.last_ns + ending.waited_ns
    return over_ns - request.last_ns <= request.patience_ns


def patience_of(exchange: Exchange) -> int:
    """How long a broker may leave a request waiting on purpose: a long poll, a rebalance."""
    body = request_body(exchange)
    if not body:
        return 0
    if exchange.api_key in (FETCH, SHARE_FETCH):
        waits = body.get("max_wait_ms", CUT_POLL_MS)
    elif exchange.api_key == JOIN_GROUP:
        given = max(body.get("rebalance_timeout_ms", 0), body.get("session_timeout_ms", 0))
        waits = max(given, CUT_JOIN_MS) if is_cut(exchange, "request") else given
    else:
        return 0
    return int(waits) * MILLISECOND_NS + OVERRUN_NS if isinstance(waits, int) else 0


def _reason(ending: Ending, cluster: Cluster) -> Reason:
    connection, first = ending.connection, ending.first
    if connection.closed_by == "":
        return "capture ended"
    answered = set(connection.exchanges) - {"unanswered", "no_response_expected"}
    if connection.bytes[1] == ALERT_BYTES and not answered:
        return "TLS wanted"
    if (connection.sasl or {}).get("outcome") == "failed" or first.api_key == SASL_AUTHENTICATE:
        return "not authenticated"
    if connection.closed_by == "client":
        return "closed by client"
    if ending.waited_ns <= AT_ONCE_NS:
        offer = cluster.offer(connection.broker)
        if first.api_key != API_VERSIONS and refused_by(offer, first.api_key, first.version):
            return "version refused"
        # One that asks a leader or a coordinator was told of it before, by a broker that answered it without SASL.
        fresh = connection.handshake_seen and connection.sasl is None and first.api_key not in AT_ADVERTISED
        few = sum(connection.exchanges.get(one, 0) for one in answered) <= 1
        authenticated = connection.broker in cluster.unauthenticated
        if fresh and few and not authenticated and first.api_key not in BEFORE_AUTHENTICATION:
            return "SASL wanted"
        unknown = not offer and connection.broker not in cluster.old and ending.waited_ns <= REFUSED_NS
        # One that is older than the capture may have been answered the like before.
        if unknown and connection.handshake_seen and is_removed(first.api_key, first.version):
            return "version refused"
    return "closed by broker"


def refused_by(offer: dict[int, tuple[int, int]], api_key: int, version: int) -> bool:
    """Whether a broker that offers these versions does not take this one."""
    if not offer:
        return False
    if api_key not in offer:
        return True
    low, high = offer[api_key]
    least = LEAST_PRODUCE if api_key == PRODUCE and offer.get(FETCH, (0, 0))[0] >= 4 else low
    return not max(low, least) <= version <= high


def release_of(offer: dict[int, tuple[int, int]]) -> str:
    """The newest release of Kafka that offers these versions, or an empty text when none fits."""
    best, most = "", 0
    for release in releases():
        try:
            versions = versions_in(find_release(release))
        except SchemaError:
            continue
        same = sum(offer.get(key) == span for key, span in versions.items())
        if same >= most and same * 2 > len(offer):
            best, most = release, same
    return best
