"""Connections that are in the capture more than once, from other capture points: one view of each counts.

The view that counts is the one whose first exchange is complete first: the one nearest to the broker, because its
responses come by before those of the others. So nothing of it has to wait. A connection is another view of one if TCP's
sequence numbers say so (the initial ones of both directions; without handshake, those behind equal requests), or if
both are the legs of a proxy: the server's host of one is the client of the other, or loopback, and message after
message is equal and nested in time. Where the hosts do not meet, because the proxy has addresses of its own on either
side, or where the clocks of two capture points differ, more messages have to agree. Eight clients that send the same
are no views of one: what one of them sends does not lie within what another sends, over and over. Until that is clear
the events of the connection in question are held back.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.identity.views import (
    ENOUGH_EQUAL,
    MAX_SKEW_NS,
    MIN_RANDOM,
    NAT,
    PROXY,
    Candidate,
    Sighting,
    View,
    is_translated,
)
from kwiresniff.model import Connection, ConnectionAttempt, Event, Exchange, ForwardingSink, Message, Problem, Sink

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Exchanges that have agreed at the end of a connection which are enough then.
ENOUGH_AT_END: Final = 2
#: Memory of what is held back, of all connections together, and what an event of it takes beside its frames.
MAX_HELD_BYTES = 16 << 20
HELD_EVENT_BYTES: Final = 1_000
#: Connections of one host, or from one port, that a new one is compared with: the latest ones.
MAX_ALIKE: Final = 256
#: Of these the ones that may be the same, each of which is compared in every exchange, and for how many others a
#: connection is one of them.
MAX_CANDIDATES: Final = 64
#: Connections of which recent exchanges are remembered, the latest ones: those that begin while others are being
#: compared. Some 25 KB each at most.
MAX_WATCHED: Final = 4_096
#: Ended connections, and attempts, that are remembered to know another view of them by its sequence numbers: those of
#: some seconds of a busy broker. Some 500 bytes each.
MAX_ENDED: Final = 4_096
#: Pairs of addresses between which views are reported, each once. Some 300 bytes each.
MAX_REPORTED: Final = 1_000
#: Two views of one attempt begin within so many nanoseconds, by the clocks of two capture points, and two legs of a
#: proxy end.
AT_ONCE_NS: Final = 1_000_000_000
_LOOPBACK: Final = ("127.", "[::1]")


class Copies(ForwardingSink):
    """Passes on what is counted: the events of connections that are no other views of one that was passed on.

    With ``all_views`` everything is passed on, at once; other views are only marked as such (``Connection.copy_of``).
    Either way a problem tells of each pair of addresses between which there are two views.
    """

    def __init__(self, next: Sink, *, all_views: bool = False) -> None:
        super().__init__(next)
        self._all_views = all_views
        self._views: dict[int, View] = {}  # by the numbers of connections that have not ended
        self._holding: dict[int, View] = {}  # those of which events are held back, by number
        self._held_bytes: i64 = 0
        self._now_ns = 0  # the end of the latest exchange
        self._watched: dict[int, View] = {}  # by number, the latest last
        self._by_seqs: dict[tuple[int, ...], View] = {}
        self._by_bytes: dict[tuple[int, ...], View] = {}
        self._ended: deque[View] = deque()
        self._alike: dict[str, list[View]] = {}
        self._latest: deque[View] = deque(maxlen=MAX_ALIKE)
        self._attempts: dict[tuple[int, int, bool], ConnectionAttempt] = {}
        self._reported: set[tuple[str, str, str]] = set()
        #: By hosts and servers of both legs, where a proxy was found: how late the clock at the inner one is.
        self._proxies: dict[tuple[str, str, str, str], tuple[int, int]] = {}

    def on_exchange(self, exchange: Exchange) -> None:
        """Passes the exchange on, drops it, or holds it back."""
        last = exchange.response or exchange.request
        if last is not None and last.last_ns > self._now_ns:
            self._now_ns = last.last_ns
        view = self._views.get(exchange.connection.id)
        if view is None:
            view, sighting = self._begin(exchange)
            if not view.is_plain:
                self._compare(view, sighting)
        elif view.recent is not None:
            self._compare(view, Sighting(exchange))
        if view.is_plain:
            self.next.on_exchange(exchange)
        else:
            self._give(view, exchange)

    def on_problem(self, problem: Problem) -> None:
        """Passes a problem on, unless it is one of another view of a connection."""
        number = (problem.details or {}).get("connection")
        view = self._views.get(number) if isinstance(number, int) else None
        if view is None:
            self.next.on_problem(problem)
        else:
            self._give(view, problem)

    def on_attempt(self, attempt: ConnectionAttempt) -> None:
        """Passes an attempt on, unless it was passed on under other addresses."""
        key = attempt.seq, attempt.syns, attempt.refused
        same = self._attempts.get(key)
        if same is None or abs(same.first_ns - attempt.first_ns) > AT_ONCE_NS:
            self._attempts[key] = attempt
            if len(self._attempts) > MAX_ENDED:
                del self._attempts[next(iter(self._attempts))]
        elif not self._all_views and _is_same_attempt(same, attempt):
            return
        self.next.on_attempt(attempt)

    def on_connection(self, connection: Connection) -> None:
        """Passes an ended connection on, unless it is another view of one; what was held back of it is settled."""
        view = self._views.pop(connection.id, None)
        if view is None:  # of one without exchanges, perhaps encrypted
            view = View(connection, None)
            if not self._find_by_seqs(view):
                self._find_by_bytes(view)
        if view.candidates:
            for one in view.candidates:
                self._follow(view, one)
            best = max(view.candidates, key=_rank)
            least = 1 if best.is_strong() or best.is_soon(AT_ONCE_NS) else ENOUGH_EQUAL
            if (best.is_strong() and best.equal >= ENOUGH_AT_END) or (best.equal >= least and _is_all(view, best)):
                self._settle(view, best.view, best.via, best)
            else:
                self._refute(view)
        if view.origin is not None:
            self._report(view)
        self._give(view, connection)
        self._end(view)

    # -- finding views ------------------------------------------------------------------------------------------

    def _begin(self, exchange: Exchange) -> tuple[View, Sighting]:
        """The view of a connection, at its first exchange."""
        connection, first = exchange.connection, Sighting(exchange)
        view = self._views[connection.id] = View(connection, first)
        if not self._find_by_seqs(view):
            if connection.initial_seqs is None:
                self._find(view, self._alike.get(view.port), NAT, False)
            self._find(view, self._alike.get(f"server {view.client_host}"), PROXY, False)
            self._find(view, self._alike.get("server loopback"), PROXY, False)
            if view.broker_host.startswith(_LOOPBACK):
                self._find(view, list(self._latest), PROXY, True)
            else:
                self._find(view, self._alike.get(f"client {view.broker_host}"), PROXY, True)
            for outer in (False, True):
                self._find(view, self._alike.get(_content(view)), PROXY, outer, linked=False)
        for name in _names(view):
            alike = self._alike.get(name)
            if alike is None:
                alike = self._alike[name] = []
            alike.append(view)
            if len(alike) > MAX_ALIKE:
                del alike[0]
        self._latest.append(view)
        return view, first

    def _find_by_seqs(self, view: View) -> bool:
        """Whether TCP's sequence numbers say that a connection is another view of one that is known; else they are
        remembered.
        """
        connection, first = view.connection, view.first
        if connection.initial_seqs is not None:
            view.seqs = connection.initial_seqs
        elif first is not None and first.end_seq >= 0:
            view.seqs = first.end_seq, first.correlation_id, first.api_key, *first.request
        else:
            return False
        other = self._by_seqs.get(view.seqs)
        if other is None or not _may_be_translated(view, other):
            self._by_seqs[view.seqs] = view
            return False
        if max(connection.initial_seqs or view.seqs[:1]) >= MIN_RANDOM:
            view.seqs = ()
            self._settle(view, other, NAT)
            return True
        if first is not None:
            view.seqs = ()
            self._find(view, [other], NAT, False)
        return False

    def _find_by_bytes(self, view: View) -> None:
        """Finds the other leg of a proxy that passes on bytes it cannot read: as many each way, at the same time."""
        sent = tuple(view.connection.bytes)
        if not all(sent):
            return
        other = self._by_bytes.pop(sent, None)
        if other is not None and (_is_leg(view, other) or _is_leg(other, view)):
            self._settle(view, other, PROXY)
            return
        self._by_bytes[sent] = view
        if len(self._by_bytes) > MAX_ENDED:
            del self._by_bytes[next(iter(self._by_bytes))]

    def _find(self, view: View, others: list[View] | None, via: str, outer: bool, *, linked: bool = True) -> None:
        """Adds those of the ``others`` to the candidates that may be views of the same, as far as is known."""
        for other in others or ():
            if other is view or other.client_id != view.client_id:
                continue
            if via == PROXY and (other.is_leg or other.connection.broker == view.connection.broker):
                continue
            if any(one.view is other and one.outer == outer for one in view.candidates):
                continue
            candidate = Candidate(other, via, outer, self._now_ns, linked)
            self._follow(view, candidate)
            if not _fits(view, candidate):
                continue
            if len(view.candidates) == MAX_CANDIDATES or len(other.watchers) >= MAX_ALIKE:
                continue
            view.candidates.append(candidate)
            other.watchers.append(view)
            self._watch(view)
            self._watch(other)

    def _follow(self, view: View, candidate: Candidate) -> None:
        """Shows a candidate what was found between the same hosts before."""
        if candidate.via == PROXY and (before := self._proxies.get(_hosts(view, candidate))) is not None:
            candidate.follow(*before)

    # -- comparing views ----------------------------------------------------------------------------------------

    def _compare(self, view: View, sighting: Sighting) -> None:
        """Compares an exchange of a view with what other views have of it."""
        for candidate in list(view.candidates):
            if not candidate.holds(sighting, candidate.view.sighting(sighting)):
                self._drop(view, candidate)
        self._decide(view)
        if view.origin is not None:
            theirs = view.origin.sighting(sighting)
            if theirs is not None and theirs.says_the_same(sighting):
                self._sample(view, sighting, theirs)
        for watcher in list(view.watchers):
            own = watcher.sighting(sighting)
            if watcher.origin is view:
                if own is not None and own.says_the_same(sighting):
                    self._sample(watcher, own, sighting)
                continue
            for candidate in [one for one in watcher.candidates if one.view is view]:
                if candidate.lacks(sighting) or (own is not None and not candidate.holds(own, sighting)):
                    self._drop(watcher, candidate)
            self._decide(watcher)
        if view.recent is not None:
            view.remember(sighting)

    def _decide(self, view: View) -> None:
        """Settles which of its candidates a view is the same as, as soon as one agrees in enough exchanges, and more
        than any other.
        """
        if not view.candidates:
            if view.number in self._holding and view.origin is None:
                self._release(view)
            return
        best = max(view.candidates, key=_rank)
        if best.equal < best.enough():
            return
        if all(one.view is best.view or _rank(one) < _rank(best) for one in view.candidates):
            self._settle(view, best.view, best.via, best)

    def _drop(self, view: View, candidate: Candidate) -> None:
        """Removes a candidate that has turned out to be another stream."""
        view.candidates.remove(candidate)
        self._unwatch(candidate.view, view)
        if not view.candidates:
            view.rest()

    def _settle(self, view: View, origin: View, via: str, found: Candidate | None = None) -> None:
        """Takes a connection for another view of ``origin``; nothing of it counts, not what was held back either."""
        if found is not None and via == PROXY and len(self._proxies) < MAX_REPORTED:
            self._proxies[_hosts(view, found)] = found.least_ns, found.most_ns
        for candidate in view.candidates:
            if candidate.view is not origin:
                self._unwatch(candidate.view, view)
        view.candidates = []
        view.origin = origin
        connection = view.connection
        connection.copy_of, connection.via = origin.number, via
        if view not in origin.watchers:
            origin.watchers.append(view)
        self._watch(view)
        self._watch(origin)
        if via == PROXY:
            view.is_leg = origin.is_leg = True
            self._take_away(view)
            self._take_away(origin)
        self._forget_held(view)

    def _take_away(self, leg: View) -> None:
        """Removes a leg of a proxy, of which the other one is known, from what others may be views of."""
        for watcher in list(leg.watchers):
            for candidate in [one for one in watcher.candidates if one.view is leg and one.via == PROXY]:
                self._drop(watcher, candidate)
                if not watcher.candidates:
                    self._decide(watcher)

    def _refute(self, view: View) -> None:
        """Takes a connection for one of its own."""
        for candidate in view.candidates:
            self._unwatch(candidate.view, view)
        view.candidates = []
        view.rest()
        self._release(view)

    def _watch(self, view: View) -> None:
        """Remembers exchanges of a view from now on, and gives up the oldest view of too many."""
        view.watch()
        watched = self._watched
        watched[view.number] = view
        if len(watched) > MAX_WATCHED:
            watched = self._watched = {number: one for number, one in watched.items() if one.recent is not None}
        if len(watched) > MAX_WATCHED:
            self._give_up(watched.pop(next(iter(watched))))

    def _give_up(self, view: View) -> None:
        """Compares a view with no other any more: what is not settled by now counts."""
        for watcher in list(view.watchers):
            for candidate in [one for one in watcher.candidates if one.view is view]:
                self._drop(watcher, candidate)
            self._decide(watcher)
        view.watchers = []
        if view.candidates:
            self._refute(view)
        view.recent = None
        view.rest()

    @staticmethod
    def _unwatch(view: View, watcher: View) -> None:
        if watcher in view.watchers:
            view.watchers.remove(watcher)
        view.rest()

    def _sample(self, view: View, own: Sighting, theirs: Sighting) -> None:
        """Notes how far a view is from the one that counts, until that is known well enough."""
        if view.sample(own, theirs):
            self._report(view)
        elif view.origin is not None:
            self._unwatch(view.origin, view)
            view.recent = None

    # -- passing on ---------------------------------------------------------------------------------------------

    def _give(self, view: View, event: Event) -> None:
        """Passes an event of a view on, holds it back, or drops it."""
        if self._all_views or (view.origin is None and not view.candidates):
            self._pass_on(event)
        elif view.candidates:
            self._hold(view, event)

    def _pass_on(self, event: Event) -> None:
        if isinstance(event, Exchange):
            self.next.on_exchange(event)
        elif isinstance(event, Connection):
            self.next.on_connection(event)
        elif isinstance(event, Problem):
            self.next.on_problem(event)

    def _hold(self, view: View, event: Event) -> None:
        """Holds an event back; when too much is held, the connection that has waited longest is taken for one of its
        own.
        """
        size: i64 = HELD_EVENT_BYTES
        if isinstance(event, Exchange):
            size += _size(event.request) + _size(event.response)
        view.held.append(event)
        view.held_bytes += size
        self._holding[view.number] = view
        self._held_bytes += size
        while self._held_bytes > MAX_HELD_BYTES:
            self._refute(next(iter(self._holding.values())))

    def _release(self, view: View) -> None:
        """Passes on what was held back of a connection."""
        held = self._forget_held(view)
        for event in held:
            self._pass_on(event)

    def _forget_held(self, view: View) -> list[Event]:
        """What was held back of a connection, which is not any more."""
        self._holding.pop(view.number, None)
        self._held_bytes -= view.held_bytes
        held, view.held, view.held_bytes = view.held, [], 0
        return held

    def _report(self, view: View) -> None:
        """Reports that a connection is another view of one, once for each pair of addresses."""
        origin = view.origin
        assert origin is not None
        one, other = view.connection, origin.connection
        key = one.via, one.broker, other.broker
        if one.broker == other.broker:
            key = one.via, view.client_host, origin.client_host
        if key in self._reported or len(self._reported) >= MAX_REPORTED:
            return
        self._reported.add(key)
        between = "a proxy" if one.via == PROXY else "address translation"
        takes = "" if one.apart_ns is None else f" (which takes {_duration(one.apart_ns)} there and back)"
        text = (
            f"{one.client} to {one.broker} and {other.client} to {other.broker} are two views of one connection, with "
            f"{between} between them{takes}: analyses count the second one alone"
        )
        details = {
            "connection": one.id, "client": one.client, "broker": one.broker, "copy_of": other.id,
            "counted": {"client": other.client, "broker": other.broker}, "via": one.via, "apart_ns": one.apart_ns,
        }  # fmt: skip
        packet, ns = (
            (one.first_packet, one.first_ns) if view.first is None else (view.first.packet, view.first.asked_ns)
        )
        self.next.on_problem(Problem("other_view", text, packet=packet, timestamp_ns=ns, details=details))

    def _end(self, view: View) -> None:
        """Keeps what an ended connection is found by for a while, because its other views end later."""
        if view.origin is not None:
            self._unwatch(view.origin, view)
        view.rest()
        view.has_ended = True
        self._ended.append(view)
        if len(self._ended) > MAX_ENDED:
            self._forget(self._ended.popleft())

    def _forget(self, view: View) -> None:
        """Forgets what a connection is found by."""
        if self._by_seqs.get(view.seqs) is view:
            del self._by_seqs[view.seqs]
        for name in _names(view):
            alike = self._alike.get(name)
            if alike is not None and view in alike:
                alike.remove(view)
                if not alike:
                    del self._alike[name]


def _may_be_translated(view: View, other: View) -> bool:
    """Whether addresses and times of two connections with equal sequence numbers allow that they are one."""
    one, two = view.connection, other.connection
    is_near = -MAX_SKEW_NS <= one.first_ns - two.first_ns <= MAX_SKEW_NS
    return is_near and is_translated(one.client, two.client) and (one.client, one.broker) != (two.client, two.broker)


def _is_same_attempt(one: ConnectionAttempt, two: ConnectionAttempt) -> bool:
    """Whether two attempts with equal sequence numbers are one, before and after address translation."""
    is_other = (one.client, one.server) != (two.client, two.server)
    return is_other and two.seq >= MIN_RANDOM and is_translated(one.client, two.client)


def _fits(view: View, candidate: Candidate) -> bool:
    """Whether a connection that begins may be another view of one that is known: its first exchange is the same. If it
    is older than the capture, or if one of them began with a request without a response, which overtakes others at one
    view only, it is enough that both are about as far.
    """
    other = candidate.view
    one, two = view.connection, other.connection
    if candidate.via == NAT and not _may_be_translated(view, other):
        return False
    if not candidate.linked and (view.client_host == other.client_host) != (one.client == two.client):
        return False  # clients of one host that send the same, unless both are the same one
    first, begun = view.first, other.first
    theirs = None if first is None else other.sighting(first)
    if first is None or begun is None:
        return False
    if theirs is not None:
        return candidate.agrees(first, theirs)
    if not candidate.linked and not candidate.is_known:
        return False
    is_order_known = one.initial_seqs is not None and first.done_ns >= 0 and begun.done_ns >= 0
    return not is_order_known and not other.has_ended and view.is_near(other, candidate.via)


def _is_all(view: View, candidate: Candidate) -> bool:
    """Whether two connections of few exchanges, seen from their beginning, are the same: all exchanges are, as far as
    those of the candidate were remembered when the other one came."""
    outer, inner = view.connection, candidate.view.connection
    if not candidate.outer:
        outer, inner = inner, outer
    is_whole = outer.initial_seqs is not None and inner.initial_seqs is not None
    late_ns = 0 if candidate.is_nested() else candidate.most_ns
    is_nested = candidate.via == NAT or outer.first_ns <= inner.first_ns + late_ns
    return candidate.equal > 0 and candidate.waiting is None and is_whole and is_nested


def _is_leg(outer: View, inner: View) -> bool:
    """Whether a proxy may have made one connection to pass on the other, from their hosts and times."""
    one, two = outer.connection, inner.connection
    linked = outer.broker_host == inner.client_host or outer.broker_host.startswith(_LOOPBACK)
    nested = one.first_ns <= two.first_ns <= one.last_ns and abs(one.last_ns - two.last_ns) <= AT_ONCE_NS
    return linked and nested and one.broker != two.broker


def _names(view: View) -> tuple[str, str, str, str]:
    """What a connection is found by: the port and host of its client, the host of its server, and its first request."""
    server = "loopback" if view.broker_host.startswith(_LOOPBACK) else view.broker_host
    return view.port, f"client {view.client_host}", f"server {server}", _content(view)


def _hosts(view: View, candidate: Candidate) -> tuple[str, str, str, str]:
    """Between which hosts the outer and the inner leg of a proxy are."""
    outer, inner = (view, candidate.view) if candidate.outer else (candidate.view, view)
    return outer.client_host, outer.connection.broker, inner.client_host, inner.connection.broker


def _content(view: View) -> str:
    first = view.first
    return "" if first is None else f"request {first.correlation_id} {first.request}"


def _duration(ns: int) -> str:
    return f"{ns / 1_000:.3g} µs" if ns < MILLISECOND_NS else f"{ns / MILLISECOND_NS:.3g} ms"


def _rank(candidate: Candidate) -> tuple[bool, int]:
    """Orders the candidates of a view: those by one clock and by hosts that meet before others, then by equal
    exchanges."""
    return candidate.is_strong(), candidate.equal


def _size(message: Message | None) -> int:
    return 0 if message is None or message.frame is None else len(message.frame)
