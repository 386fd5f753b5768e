"""Which connections there are: they begin and end by what segments say, by time, or to make room.

Sources: RFC 9293 (sections 3.5 and 3.6: how connections begin and end; 3.5.3: reset), RFC 7413 (data in a SYN).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kwiresniff.model import ACK, DECRYPTED, FIN, RST, SYN, Segment
from kwiresniff.session.flows import connection_of, reverse
from kwiresniff.session.link import Link
from kwiresniff.session.openings import Openings, first_seq, follow
from kwiresniff.session.strangers import Strangers
from kwiresniff.stream.budget import Holder
from kwiresniff.stream.half import SEQ_MASK, Half

if TYPE_CHECKING:
    from kwiresniff.session.analyzer import Analyzer

#: Connections followed at once; beyond it the longest idle ones are ended. A busy broker has some 10,000.
MAX_CONNECTIONS = 50_000
#: A connection that was reset or closed is followed so much longer: what the other side sent before it knew, or the
#: last acknowledgement, is still underway.
LINGER_NS = 1_000_000_000
#: Connections followed for that long at once; beyond it the first to be closed are ended.
MAX_LINGERING = 4_096
#: A SYN is sent again after a second (RFC 6298, section 2.1); what comes sooner is the same packet, captured twice.
SYN_TIMEOUT_NS = 100_000_000
#: Data that a SYN may carry (RFC 7413) and its answer acknowledges: one segment.
MAX_SYN_BYTES = 65_535
#: Ended connections are remembered so long, so that their late retransmissions do not look like new ones, and so many.
ENDED_NS = 20_000_000_000
MAX_ENDED = 4_096


class Tracker:
    """Follows the connections of one analyzer.

    ``halves`` are the directions that are simply open, by flow: a segment of one of them that neither begins nor ends
    anything need not come by here. ``now_ns`` is the time of the last segment; the analyzer sets it. ``strangers`` are
    the connections that are not Kafka.
    """

    __slots__ = ("_analyzer", "_edges", "_ended", "_lingering", "_nobody", "_openings", "halves", "now_ns", "strangers")

    def __init__(self, analyzer: Analyzer) -> None:
        self.halves: dict[bytes, Half] = {}
        self.now_ns = 0
        self.strangers = Strangers()
        self._analyzer = analyzer
        # Halves whose connection is opening or ending: all their segments come by here.
        self._edges: dict[bytes, Half] = {}
        self._openings = Openings()
        self._ended: deque[tuple[int, Link]] = deque()  # (since when, connection)
        self._lingering: deque[tuple[int, Link]] = deque()  # (since when, connection) in that order
        self._nobody = Link(analyzer, b"", b"", 0, 0)  # stands in for connections that are forgotten
        self._nobody.closed = True

    def take(
        self,
        packet: int,
        ns: int,
        flow: bytes,
        seq: int,
        ack: int,
        flags: int,
        buffer: bytes,
        start: int,
        end: int,
        missing: int,
    ) -> None:
        """Take a segment that begins, ends or repeats a connection, or of one that is not known, or decrypted bytes."""
        lingering = self._lingering
        while lingering and (ns - lingering[0][0] > LINGER_NS or len(lingering) > MAX_LINGERING):
            _, link = lingering.popleft()
            if not link.closed:
                self._end(link)
        openings, held = self._openings, []
        if openings:
            while late := openings.take_late(packet, ns):
                self._begin(late)
        half = self.halves.get(flow) or self._edges.get(flow)
        data = start < end or missing
        if flags & DECRYPTED:
            if half is None and openings:
                half = self._begin(openings.take(connection_of(flow)))
            if half is not None and (tls := link_of(half).tls) is not None:
                tls.decrypt(half, packet, ns, seq, buffer, start, end)
            return
        if flags & SYN:
            held = openings.take(connection_of(flow)) if openings else []
            if held and not follow(held, flow, seq):
                self._begin(held)
                half, held = self.halves.get(flow), []
            half = self._synchronize(flow, half, packet, ns, seq, ack, flags)
            seq = (seq + 1) & SEQ_MASK
        elif half is None:
            if self.strangers.knows(flow, end - start):
                return
            if data or (openings and connection_of(flow) in openings):
                self._hold_back((packet, ns, flow, seq, ack, flags, buffer, start, end, missing))
            return
        elif half.closed or (data and half.is_foreign(seq)):
            link = link_of(half)
            refused = half.bytes + half.peer.bytes == 0  # so there is nothing that could be sent again
            if not data or (half.closed and not half.is_foreign(seq) and not refused):
                return  # the last acknowledgements and retransmissions of a connection that has ended
            link.close()
            self._let_go(link)
            self._hold_back((packet, ns, flow, seq, ack, flags, buffer, start, end, missing))
            return
        elif half.next_seq < 0 and half.peer.syn_seq >= 0:
            if data or flags & FIN:  # the answer to the handshake, which tells where it begins, is still to come
                self._hold_back((packet, ns, flow, seq, ack, flags, buffer, start, end, missing))
                return
        elif flow in self._edges and not (half.fin or half.peer.fin):
            self._established(half, ns, seq, ack, flags)
            if openings and half.peer.next_seq >= 0:
                held = openings.take(connection_of(flow))
        half.packets += 1
        half.last_ns = ns
        half.ack = ack if flags & ACK else -1
        if half.closed:
            return
        if flags & ACK and half.peer.waiting.segments:
            half.peer.acknowledged(packet, ns, ack)
        if flags & FIN and half.fin and not data:
            half.retransmits += 1
        elif data or (flags & (FIN | RST) and not half.fin and not half.is_jump(seq)):
            half.bytes += end - start
            half.segment(packet, ns, seq, buffer, start, end, missing)
        if flags & (FIN | RST) or half.fin or half.peer.fin:
            self._finish(half, packet, ns, flags)
        for segment in held:
            self.take(*segment)

    def expire(self, idle_ns: int) -> None:
        """End the connections that have been silent for ``idle_ns`` at the last segment."""
        before_ns = self.now_ns - idle_ns
        for link in self._links():
            if max(link.client.last_ns, link.broker.last_ns) < before_ns:
                link.close()
                self._let_go(link)
        while late := self._openings.take_late(0, self.now_ns):
            self._begin(late)

    def end_attempts(self, idle_ns: int) -> None:
        """End the attempts at connections whose SYN nobody has answered for ``idle_ns`` at the last segment."""
        before_ns = self.now_ns - idle_ns
        for half in list(self._edges.values()):
            link = link_of(half)
            unanswered = link.syn_ns >= 0 and link.broker.syn_seq < 0 and link.broker.next_seq < 0
            if unanswered and not link.closed and max(link.client.last_ns, link.first_ns) < before_ns:
                link.close()
                self._let_go(link)

    def close(self) -> None:
        """End every connection that is still open."""
        while held := self._openings.take_late(sys.maxsize, 0):
            self._begin(held)
        for half in [*self.halves.values(), *self._edges.values()]:
            link_of(half).close()
        self.halves.clear()
        self._edges.clear()

    def ignore(self, link: Link, protocol: str) -> None:
        """A connection has shown that it is not Kafka: count it and look at it no more."""
        link.closed = True
        counts = self.strangers.count(link, protocol)
        if link.carrier is not None:
            return
        for half in (link.client, link.broker):
            half.end()
            self.strangers.remember(half.flow, counts)
        self._forget(link)

    def unrecognized(self, link: Link) -> None:
        """A connection ended before it showed what it was."""
        if link.client.bytes + link.broker.bytes:
            self.strangers.count(link, link.roles.guess_protocol())
        elif link.syn_ns >= 0 and link.broker.syn_seq < 0:
            self._analyzer.attempt_failed(link)

    def _open(self, flow: bytes, packet: int, ns: int) -> Half:
        """A new connection of which ``flow`` is one direction."""
        if len(self.halves) + len(self._edges) >= 2 * MAX_CONNECTIONS:
            self._end_idle(ns)
        link = Link(self._analyzer, flow, reverse(flow), self._analyzer.keep_request, ns)
        link.first_packet = packet
        for half in (link.client, link.broker):
            self.halves[half.flow] = half
            self._edges.pop(half.flow, None)
        return link.client

    def _hold_back(self, segment: Segment) -> None:
        self._begin(self._openings.hold(connection_of(segment[2]), segment))

    def _begin(self, held: Sequence[Segment]) -> Half | None:
        """Wait no longer for the handshake of a connection; returns the half of its first segment, if there is one."""
        if not held:
            return None
        flow = held[0][2]
        half = self.halves.get(flow) or self._edges.get(flow) or self._open(flow, held[0][0], held[0][1])
        for one in (half, half.peer):
            if one.next_seq < 0:
                one.next_seq = first_seq(held, one.flow)
        for segment in held:
            self.take(*segment)
        return half

    def _synchronize(
        self, flow: bytes, half: Half | None, packet: int, ns: int, seq: int, ack: int, flags: int
    ) -> Half:
        answers = bool(flags & ACK)
        if half is not None and half.syn_seq == seq:
            half.retransmits += 1
            if not answers and ns - half.last_ns >= SYN_TIMEOUT_NS:
                link_of(half).syn_retransmits += 1
            return half
        if half is not None and (
            half.syn_seq >= 0 or half.closed or half.next_seq >= 0 or (answers and answers_another(half, ack))
        ):
            link = link_of(half)
            link.close()
            self._let_go(link)
            half = None
        if half is None:
            self.strangers.forget(flow, reverse(flow))
            half = self._open(flow, packet, ns)
        link = link_of(half)
        half.syn_seq = seq
        half.next_seq = (seq + 1) & SEQ_MASK
        if answers:
            self._into(self.halves, self._edges, half)
            client = half.peer
            if not link.opened_by_syn:
                link.opened(client, -1)
            if client.syn_seq < 0:
                client.syn_seq = (ack - 1) & SEQ_MASK
                client.next_seq = ack
        else:
            link.opened(half, ns)
            # The client's next packet tells the round trip, and the broker's where it begins to count.
            self._into(self._edges, self.halves, half, half.peer)
        return half

    @staticmethod
    def _into(table: dict[bytes, Half], other: dict[bytes, Half], *halves: Half) -> None:
        for half in halves:
            if other.get(half.flow) is half:
                table[half.flow] = other.pop(half.flow)

    def _established(self, client: Half, ns: int, seq: int, ack: int, flags: int) -> None:
        link = link_of(client)
        broker = client.peer
        if broker.next_seq < 0 and seq != (client.syn_seq + 1) & SEQ_MASK:
            return  # a later segment that came first does not tell where the broker begins to count
        self._into(self.halves, self._edges, client, broker)
        if flags & ACK and not flags & RST:
            if broker.syn_seq < 0 and broker.next_seq < 0:
                broker.syn_seq = (ack - 1) & SEQ_MASK
                broker.next_seq = ack
            elif link.syn_ns >= 0:
                link.handshake_rtt_ns = max(ns - link.syn_ns, 0)

    def _finish(self, half: Half, packet: int, ns: int, flags: int) -> None:
        """A FIN, a RST, or any segment after one: the connection ends when everything before its end is there."""
        peer = half.peer
        link = link_of(half)
        if flags & (FIN | RST):
            if half is link.broker and not peer.fin and not half.waiting.segments and link.bare_tokens is not None:
                link.bare_tokens.broker_left(ns)
            half.fin = True
            if link.parting is None:
                link.parting = half.flow, ns, packet, bool(flags & RST)
            self._into(self._edges, self.halves, half, peer)
        if flags & RST:
            if half.bytes + peer.bytes or half.waiting.segments:
                self._linger(link, ns)
            else:
                self._end(link)
        elif half.fin and peer.fin and not half.is_awaited() and not peer.is_awaited():
            if flags & FIN or half.waiting.segments or peer.waiting.segments:
                self._linger(link, ns)
            else:
                self._end(link)

    def _linger(self, link: Link, ns: int) -> None:
        if not link.lingering:
            link.lingering = True
            self._lingering.append((ns, link))

    def _end(self, link: Link) -> None:
        link.close()
        ended, now_ns = self._ended, self.now_ns
        ended.append((now_ns, link))
        while len(ended) > MAX_ENDED or now_ns - ended[0][0] > ENDED_NS:
            self._let_go(ended.popleft()[1])

    def _let_go(self, link: Link) -> None:
        """Forget an ended connection, and set free what it held."""
        self._forget(link)
        link.take_apart(self._nobody)

    def _forget(self, link: Link) -> None:
        for half in (link.client, link.broker):
            for table in (self.halves, self._edges):
                if table.get(half.flow) is half:
                    del table[half.flow]

    def holders(self) -> Iterator[Holder]:
        """All who may hold bytes back: connections, their directions, and what is inside TLS."""
        for link in self._links():
            carried = link.tls.carried if link.tls is not None else None
            for one in (link, carried):
                if one is not None:
                    yield one.client
                    yield one.broker
                    yield one

    def _links(self) -> list[Link]:
        halves = [*self.halves.values(), *self._edges.values()]
        return list({id(half.owner): link_of(half) for half in halves}.values())

    def _end_idle(self, ns: int) -> None:
        """Make room: end the tenth of the connections that has been idle longest."""
        by_age = sorted(self._links(), key=lambda link: max(link.client.last_ns, link.broker.last_ns))
        idle = by_age[: max(len(by_age) // 10, 1)]
        given_up = 0
        for link in idle:
            given_up += not link.closed
            link.close()
            self._let_go(link)
        if given_up:
            self._analyzer.too_many_connections(MAX_CONNECTIONS, given_up, ns)


def link_of(half: Half) -> Link:
    """The connection that a half is one direction of."""
    link = half.owner
    assert isinstance(link, Link)
    return link


def answers_another(half: Half, ack: int) -> bool:
    """Whether a SYN with ACK answers another SYN than the one that opened this connection, which nobody answered."""
    asked = half.peer.syn_seq
    return asked >= 0 and (ack - 1 - asked) & SEQ_MASK > MAX_SYN_BYTES
