"""What chosen exchanges need beside themselves to be read the same: how their connections began, the answers that named
their topics, the fetches that filled their fetch sessions, and the exchanges that tell the parts of their waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeAlias

from kwiresniff.base.api_keys import API_VERSIONS, FETCH, SASL_AUTHENTICATE, SASL_HANDSHAKE, SHARE_FETCH
from kwiresniff.base.entities import TOPIC_ID
from kwiresniff.base.fastint import i32
from kwiresniff.base.field_values import field_text
from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.model import Connection, Exchange, FetchedTopics, SessionMembers, Sink
from kwiresniff.packets.selection import Extent, Selection
from kwiresniff.session.delays import HELD_NS
from kwiresniff.session.fetch_sessions import (
    INITIAL_EPOCH,
    SESSIONS_SINCE,
    given_session,
    session_place,
)
from kwiresniff.session.topic_ids import names_topics

#: Topic ids whose naming answers are remembered, as many as the analyzer remembers names; some 200 bytes each.
MAX_NAMED = 100_000
#: Fetch sessions that are remembered, and fetches of each that changed it.
MAX_SESSIONS = 10_000
MAX_CHANGES = 100
#: Answers remembered, on a connection and in all, to take those before a chosen one; some 350 bytes each.
MAX_ANSWERED = 64
MAX_ALL_ANSWERED = 200_000
#: Exchanges this soon between two chosen ones are taken, too: half of ``stream.out_of_order.GRACE_NS``.
BRIDGED_NS = 100_000_000
#: Bytes of a connection's beginning that are taken, or all before an answer that names topics.
MAX_OPENING_BYTES = 1 << 20

_OPENING = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE})

#: A fetch session: broker and id, or broker, group and member.
_Key: TypeAlias = tuple[str, int] | tuple[str, str, str]


class _Connection:
    """A connection: its opening ends at ``requests_end`` and ``responses_end``, ``taken`` is selected, ``chosen_ns``
    the end of the last chosen exchange. ``answered`` are the last exchanges with their last bytes' times, the newest
    included if ``is_last``; ``quickest`` is what tells the time of the broker's quickest Fetch.
    """

    __slots__ = (
        "answered", "chosen_ns", "is_last", "least_ns", "over", "quickest", "requests_end", "responses_end", "taken",
    )  # fmt: skip

    def __init__(self) -> None:
        self.requests_end = self.responses_end = -1
        self.over = False
        self.taken = (-1, -1)
        self.answered: deque[tuple[Extent, int]] = deque(maxlen=MAX_ANSWERED)
        self.chosen_ns = 0
        self.is_last = False
        self.quickest: list[Extent] = []
        self.least_ns: int | None = None

    def before(self, exchange: Exchange) -> list[Extent]:
        """The exchanges that are needed before the last one, which is this: those that were answered while it waited
        and the one before, which tell how long it was queued; all since the last chosen one where that was just now.
        """
        found: list[Extent] = []
        first = exchange.request or exchange.response
        if first is None:
            return found
        since_ns = first.last_ns
        if first.first_ns - self.chosen_ns <= BRIDGED_NS:
            since_ns = min(since_ns, self.chosen_ns)
        for extent, answered_ns in islice(reversed(self.answered), int(self.is_last), None):
            found.append(extent)
            if answered_ns <= since_ns:
                break
        return found

    def see(self, exchange: Exchange, extent: Extent) -> None:
        """Takes in an exchange."""
        last = exchange.response or exchange.request
        self.is_last = exchange.response is not None or exchange.outcome == "no_response_expected"
        if self.is_last and last is not None:
            self.answered.append((extent, last.last_ns))
        if not self.over:
            self._open(exchange.api_key, extent)
        if exchange.api_key in (FETCH, SHARE_FETCH):
            self._compare(exchange, extent)

    def _compare(self, exchange: Exchange, extent: Extent) -> None:
        """Takes in a Fetch, which may be the quickest so far (``Channel``). What it took the broker may have been told
        by the quickest before it, which is needed then, too.
        """
        broker_ns = exchange.broker_ns
        if broker_ns is None or (exchange.held and not broker_ns):  # not measured
            return
        if self.least_ns is None or broker_ns < self.least_ns:
            if not exchange.held and broker_ns < HELD_NS:
                self.quickest = []
            self.least_ns = broker_ns
            self.quickest = [*self.quickest[-MAX_ANSWERED:], extent, *self.before(exchange)]

    def _open(self, api_key: int, extent: Extent) -> None:
        """Moves the end of the opening behind an exchange that belongs to it, else to where the exchange begins."""
        side = 1 if api_key in _OPENING else 0
        self.over = side == 0
        if extent.request is not None:
            self.requests_end = extent.request[side] & SEQ_MASK
        if extent.response is not None:
            self.responses_end = extent.response[side] & SEQ_MASK


class _Session:
    """A fetch session and the fetches that changed it, of which the selection has the first ``taken``."""

    __slots__ = ("changes", "fetched", "names", "taken")

    def __init__(self) -> None:
        self.changes: list[Extent] = []
        self.fetched: FetchedTopics | None = None
        self.names: SessionMembers | None = None
        self.taken = 0


class Context(Sink):
    """Sees every exchange before ``add`` is called for chosen ones; needs digests and fetch sessions."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._connections: dict[int, _Connection] = {}
        self._answered = 0  # on all connections
        self._named: dict[str, Extent | None] = {}  # None once taken
        self._sessions: dict[_Key, _Session] = {}

    def on_exchange(self, exchange: Exchange) -> None:
        extent = Extent(exchange)
        connection = self._connections.get(exchange.connection.id)
        if connection is None:
            connection = self._connections[exchange.connection.id] = _Connection()
        self._answered -= len(connection.answered)
        connection.see(exchange, extent)
        self._answered += len(connection.answered)
        if self._answered > MAX_ALL_ANSWERED:
            self._forget_answered()
        self._learn_names(exchange, extent)
        if exchange.api_key in (FETCH, SHARE_FETCH):
            self._follow_session(exchange, extent)

    def on_connection(self, connection: Connection) -> None:
        known = self._connections.pop(connection.id, None)
        if known is not None:
            self._answered -= len(known.answered)

    def _forget_answered(self) -> None:
        for connection in self._connections.values():
            connection.answered.clear()
        self._answered = 0

    def add(self, exchange: Exchange) -> None:
        """Adds to the selection what an exchange needs that was chosen, the one that was seen last."""
        selection, connection = self._selection, exchange.connection
        known = self._connections.get(connection.id)
        if known is not None:
            self._add_opening(connection, known)
            for extent in (*known.before(exchange), *(known.quickest if exchange.held > 0 else ())):
                selection.take(extent)
            last = exchange.response or exchange.request
            known.chosen_ns = last.last_ns if last is not None else 0
        ids = set(_topic_ids(exchange))
        key = _session_key(exchange)
        session = self._sessions.get(key) if key is not None else None
        if session is not None:
            for change in session.changes[session.taken :]:
                selection.take(change)
            session.taken = len(session.changes)
            if exchange.fetched is not None:  # what an earlier fetch of the session was about is there already
                names = exchange.fetched.names
                ids.update(name for name, is_added in names.since(session.names) if is_added)
                session.names = names
        for topic_id in ids:
            naming = self._named.get(topic_id)
            if naming is not None:
                self._add_naming(naming)
                self._named[topic_id] = None

    def _add_opening(self, connection: Connection, known: _Connection) -> None:
        """Adds the bytes from the handshake on to where the first ordinary exchange begins."""
        ends = known.requests_end, known.responses_end
        if known.taken == ends:
            return
        known.taken = ends
        self._selection.take_opening(connection, *_beginning(connection, *ends))

    def _add_naming(self, extent: Extent) -> None:
        """Adds an exchange that names topics, with all before it on its connection: a reader that waits for something
        missing would know the names late."""
        connection = extent.connection
        known = self._connections.get(connection.id)
        if known is not None:
            self._add_opening(connection, known)
        self._selection.take(extent)
        if extent.request is not None and extent.response is not None:
            places = _beginning(connection, extent.request[1], extent.response[1])
            self._selection.take_opening(connection, *places)

    def _learn_names(self, exchange: Exchange, extent: Extent) -> None:
        for message, direction in ((exchange.request, "request"), (exchange.response, "response")):
            if message is not None and names_topics(exchange.api_key, direction):
                for topic_id in _ids_in(message.body):
                    if topic_id not in self._named and len(self._named) < MAX_NAMED:
                        self._named[topic_id] = extent

    def _follow_session(self, exchange: Exchange, extent: Extent) -> None:
        key = _session_key(exchange)
        if key is None:
            return
        session = self._sessions.get(key)
        if exchange.fetched is None:  # it begins
            self._sessions.pop(key, None)
            session = None
        if session is None:
            if len(self._sessions) >= MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            session = self._sessions[key] = _Session()
        if (exchange.fetched is None or exchange.fetched is not session.fetched) and len(session.changes) < MAX_CHANGES:
            session.changes.append(extent)
        session.fetched = exchange.fetched


def _beginning(
    connection: Connection, requests_end: int, responses_end: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The bytes of either side from the handshake on, none where that is not known or they are too many."""
    places = []
    for first, end in ((connection.client_iss, requests_end), (connection.broker_iss, responses_end)):
        size = (end - first - 1) & SEQ_MASK
        places.append((first + 1, end) if first >= 0 and end >= 0 and size <= MAX_OPENING_BYTES else (0, 0))
    return places[0], places[1]


def _session_key(exchange: Exchange) -> _Key | None:
    """The session that a fetch begins or goes on with; None for none."""
    request, broker = exchange.request, exchange.connection.broker
    if request is None or request.frame is None:
        return None
    if exchange.api_key == FETCH and exchange.api_version >= SESSIONS_SINCE:
        at = session_place(exchange.api_version, request)
        if at + 9 > len(request.frame):
            return None
        session_id, epoch = i32(request.frame, at), i32(request.frame, at + 4)
        if epoch == INITIAL_EPOCH:
            session_id = given_session(exchange)
        return (broker, session_id) if session_id else None
    if exchange.api_key == SHARE_FETCH and request.body is not None:
        return broker, field_text(request.body.get("group_id")), field_text(request.body.get("member_id"))
    return None


def _topic_ids(exchange: Exchange) -> Iterator[str]:
    for message in (exchange.request, exchange.response):
        if message is None:
            continue
        if message.digest is not None:
            yield from message.digest.topic_ids or ()
        else:
            yield from _ids_in(message.body)


def _ids_in(value: Any) -> Iterator[str]:
    """Every topic id in a body."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name == TOPIC_ID and isinstance(member, str):
                yield member
            elif isinstance(member, dict | list):
                yield from _ids_in(member)
    elif isinstance(value, list):
        for member in value:
            if isinstance(member, dict | list):
                yield from _ids_in(member)
