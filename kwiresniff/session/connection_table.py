"""The connections of a capture: when each begins, and when it ends (FIN, RST, silence, or to make room for others).

Sources: RFC 9293 (sections 3.5 and 3.6: how connections begin and end; 3.5.3: reset), RFC 7413 (data in a SYN).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from kwiresniff.base.flows import canonical_flow, reverse
from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.model import ACK, DECRYPTED, FIN, RST, SYN, Segment
from kwiresniff.session.attempt import Attempt
from kwiresniff.session.connection import ConnectionAnalyzer
from kwiresniff.session.flow_table import Endpoint, FlowTable
from kwiresniff.session.handshake_buffer import HandshakeBuffer, can_follow, first_seq
from kwiresniff.session.problems import too_many_connections
from kwiresniff.session.services import ConnectionServices
from kwiresniff.stream.half_stream import SYN_TIMEOUT_NS, HalfStream

#: Connections followed at once; beyond it the longest idle ones are ended. A busy broker has some 10,000.
MAX_CONNECTIONS = 50_000
#: How long a closed or reset connection is followed: what was sent before is still underway.
LINGER_NS: Final = 1_000_000_000
#: Connections followed for that long at once; beyond it the first to be closed are ended.
MAX_LINGERING: Final = 4_096
#: A SYN that nobody answers is an attempt that failed after so long without another, where the end is not waited for.
SILENT_NS: Final = 5_000_000_000
#: Data that a SYN may carry (RFC 7413) and its answer acknowledges: one segment.
MAX_SYN_BYTES = 65_535
#: Ended connections are remembered so long, so that their late retransmissions do not look like new ones, and so many.
ENDED_NS = 20_000_000_000
MAX_ENDED = 4_096


class ConnectionTable(FlowTable):
    """Follows the connections of one analyzer."""

    STATE: ClassVar[tuple[str, ...]] = ("_ended", "_lingering", "_handshakes", "_services")
    __slots__ = STATE

    def __init__(self, services: ConnectionServices) -> None:
        super().__init__()
        self._services = services
        self._handshakes = HandshakeBuffer()
        self._ended: deque[tuple[int, ConnectionAnalyzer]] = deque()  # (since when, connection)
        self._lingering: deque[tuple[int, ConnectionAnalyzer]] = deque()  # (since when, connection) in that order

    def feed(
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
        """Take a segment that begins or ends a connection, is of none that is known, or carries decrypted bytes."""
        self._end_late(packet, ns)
        handshakes = self._handshakes
        one = self.find(flow)
        held: list[Segment] = []
        data = start < end or missing > 0
        if flags & DECRYPTED:
            if one is None and handshakes:
                one = self._begin(handshakes.pop(canonical_flow(flow)))
            if one is not None and one.connection.tls is not None:
                one.connection.decrypted(one.half, packet, ns, seq, buffer, start, end)
            return
        if one is None:
            if flags & SYN:
                if not data and self._is_attempt(packet, ns, flow, seq, flags):
                    return
            elif self._services.non_kafka.knows(flow, end - start):
                return
            one = self._pursue(flow)
        if flags & SYN:
            held = handshakes.pop(canonical_flow(flow)) if handshakes else []
            if held and not can_follow(held, flow, seq):
                self._begin(held)
                one, held = self.find(flow), []
            one = self._synchronize(flow, one, packet, ns, seq, ack, flags)
            seq = (seq + 1) & SEQ_MASK
        elif one is None:
            if data or (handshakes and canonical_flow(flow) in handshakes):
                self._hold_back((packet, ns, flow, seq, ack, flags, buffer, start, end, missing))
            return
        elif one.half.closed or (data and one.half.is_port_reuse(seq)):
            if data and self._is_of_another(one, seq):
                self._drop(one.connection)
                self._hold_back((packet, ns, flow, seq, ack, flags, buffer, start, end, missing))
            return
        elif one.half.next_seq < 0 and one.peer.syn_seq >= 0:
            if data or flags & FIN:  # the answer to the handshake, which shows where it begins, is still to come
                self._hold_back((packet, ns, flow, seq, ack, flags, buffer, start, end, missing))
                return
        elif flow in self.transient and not (one.half.fin or one.peer.fin):
            self._established(one, ns, seq, ack, flags)
            if handshakes and one.peer.next_seq >= 0:
                held = handshakes.pop(canonical_flow(flow))
        self._feed(one, packet, ns, seq, ack, flags, buffer, start, end, missing)
        for segment in held:
            self.feed(*segment)

    def _end_late(self, packet: int, ns: int) -> None:
        """Ends what has waited long enough: closed connections that late segments may still reach, and handshakes."""
        lingering = self._lingering
        while lingering and (ns - lingering[0][0] > LINGER_NS or len(lingering) > MAX_LINGERING):
            _, ended = lingering.popleft()
            if not ended.closed:
                self._end(ended)
        if self._handshakes:
            while late := self._handshakes.pop_late(packet, ns):
                self._begin(late)

    @staticmethod
    def _is_of_another(one: Endpoint, seq: int) -> bool:
        """Whether data after the end is no retransmission, but belongs to a new connection on the same ports."""
        refused = one.half.bytes + one.peer.bytes == 0  # so there is nothing that could be sent again
        return not one.half.closed or one.half.is_port_reuse(seq) or refused

    def _feed(
        self,
        one: Endpoint,
        packet: int,
        ns: int,
        seq: int,
        ack: int,
        flags: int,
        buffer: bytes,
        start: int,
        end: int,
        missing: int,
    ) -> None:
        """Give a segment to the connection that it belongs to."""
        half, peer, connection = one.half, one.peer, one.connection
        data = start < end or missing > 0
        half.packets += 1
        before_ns = half.last_ns
        half.last_ns = ns
        if data or flags & ACK:  # a RST without one does not take back what was acknowledged
            if flags & ACK:
                half.acknowledge(ack)
            else:
                half.ack = -1
        if half.closed:
            return
        if flags & ACK and peer.queue is not None:
            peer.acknowledged(connection, packet, ns, ack)
        if flags & FIN and half.fin and not data:
            half.retransmits += 1
            half.came_again(ns - before_ns, peer.has_acknowledged((seq + 1) & SEQ_MASK))
        elif data or (flags & (FIN | RST) and not half.fin and not half.out_of_window(seq)):
            # An end in its place is no data; one that comes early is queued like any, and may show a gap.
            if not half.reading and (data or (half.next_seq >= 0 and seq != half.next_seq)):
                connection.start()
            half.bytes += end - start
            half.feed_watched(connection, peer, before_ns, packet, ns, seq, buffer, start, end, missing)
        if flags & (FIN | RST) or half.fin or peer.fin:
            self._finish(one, packet, ns, flags)

    def expire(self, idle_ns: int) -> None:
        """End the connections that have been silent for ``idle_ns`` at the last segment."""
        before_ns = self._services.now_ns - idle_ns
        for connection in self.connections():
            if connection.last_ns() < before_ns:
                self._drop(connection)
        self._give_up_before(before_ns)
        while late := self._handshakes.pop_late(0, self._services.now_ns):
            self._begin(late)

    def end_attempts(self) -> None:
        """Ends attempts whose SYN was not answered for ``SILENT_NS`` at the last segment."""
        before_ns = self._services.now_ns - SILENT_NS
        for one in list(self.transient.values()):
            connection = one.connection
            broker, life = connection.broker, connection.life
            unanswered = life.syn_ns >= 0 and broker.syn_seq < 0 and broker.next_seq < 0
            if unanswered and not connection.closed and max(connection.client.last_ns, life.first_ns) < before_ns:
                self._drop(connection)
        self._give_up_before(before_ns)

    def close(self) -> None:
        """End every connection that is still open."""
        while held := self._handshakes.pop_late(sys.maxsize, 0):
            self._begin(held)
        for one in [*self.open.values(), *self.transient.values()]:
            one.connection.close()
        self.open.clear()
        self.transient.clear()
        for attempt in self.attempts.values():
            self._give_up(attempt)
        self.attempts.clear()

    def _open(self, flow: bytes, packet: int, ns: int, *, opening: bool) -> Endpoint:
        """A new connection of which ``flow`` is one direction; ``opening``: this is its SYN."""
        self._make_room(ns)
        services = self._services
        connection = ConnectionAnalyzer(services, flow, reverse(flow), packet, ns)
        return self.add(connection, opening=opening)

    def _is_attempt(self, packet: int, ns: int, flow: bytes, seq: int, flags: int) -> bool:
        """Whether a SYN without data is one that nothing else is known of, or the same again: then it is noted."""
        attempt = self.attempts.get(flow)
        if attempt is not None:
            if attempt.seq != seq or flags & (ACK | FIN | RST):
                return False
            attempt.seen_again(ns)
            return True
        if flags & (ACK | FIN | RST):
            return False
        peer_flow = reverse(flow)
        if peer_flow in self.attempts or min(flow, peer_flow) in self._handshakes:
            return False
        self._make_room(ns)
        self._services.non_kafka.forget(flow, peer_flow)
        self.attempts[flow] = Attempt(packet, ns, flow, seq)
        return True

    def _pursue(self, flow: bytes) -> Endpoint | None:
        """Makes a connection of the attempt that a segment on ``flow`` follows; None where there is none."""
        attempts = self.attempts
        if not attempts:
            return None
        peer_flow = reverse(flow)
        attempt = attempts.pop(flow, None) or attempts.pop(peer_flow, None)
        if attempt is None:
            return None
        answer = peer_flow if attempt.flow == flow else flow
        connection = ConnectionAnalyzer(self._services, attempt.flow, answer, attempt.packet, attempt.first_ns)
        connection.follow(attempt)
        self.add(connection, opening=True)
        return self.find(flow)

    def _give_up(self, attempt: Attempt) -> None:
        """Reports an attempt that was not answered."""
        if self._services.attempts:
            self._services.output.report(attempt.event())

    def _give_up_before(self, ns: int) -> None:
        """Gives up the attempts of which nothing was seen since ``ns``."""
        for attempt in list(self.attempts.values()):
            if attempt.last_ns < ns:
                del self.attempts[attempt.flow]
                self._give_up(attempt)

    def drop_held_back(self, which: Callable[[bytes], bool]) -> None:
        """Drops the data that is held back for a handshake, of connections where ``which`` returns true for any."""
        self._handshakes.drop(which)

    def _hold_back(self, segment: Segment) -> None:
        self._begin(self._handshakes.hold(canonical_flow(segment[2]), segment))

    def _begin(self, held: Sequence[Segment]) -> Endpoint | None:
        """Opens a connection without waiting for its handshake; returns its first segment's endpoint, or None."""
        if not held:
            return None
        flow = held[0][2]
        begun = self.find(flow) or self._open(flow, held[0][0], held[0][1], opening=False)
        for half in (begun.half, begun.peer):
            if half.next_seq < 0:
                half.next_seq = first_seq(held, half.flow)
        for segment in held:
            self.feed(*segment)
        return begun

    def _synchronize(
        self, flow: bytes, one: Endpoint | None, packet: int, ns: int, seq: int, ack: int, flags: int
    ) -> Endpoint:
        answers = bool(flags & ACK)
        if one is not None and one.half.syn_seq == seq:
            if not one.half.last_ns:
                return one  # its answer was captured before it
            after_ns, is_over = ns - one.half.last_ns, one.half.acked >= 0
            if answers:  # who was sent data knows that its answer has arrived
                is_over = one.peer.syn_seq >= 0 and one.half.has_acknowledged((one.peer.syn_seq + 2) & SEQ_MASK)
            one.half.retransmits += 1
            one.half.opened_again(after_ns, is_over, ns - one.connection.life.first_ns)
            if not answers and not is_over and after_ns >= SYN_TIMEOUT_NS:
                one.connection.life.syn_retransmits += 1
            return one
        if one is not None and (
            one.half.syn_seq >= 0
            or one.half.closed
            or one.half.next_seq >= 0
            or (answers and answers_another(one.peer, ack))
        ):
            self._drop(one.connection)
            one = None
        if one is None:
            one = self._open(flow, packet, ns, opening=not answers)
            self._services.non_kafka.forget(flow, one.peer.flow)
        connection, half = one.connection, one.half
        half.syn_seq = seq
        half.next_seq = (seq + 1) & SEQ_MASK
        if answers:
            self.move_to_open(half)
            client, life = one.peer, connection.life
            if life.syn_ns >= 0 and not life.syn_retransmits:
                sent_ns = client.last_ns if client.came_soon else life.syn_ns  # at the capture point nearest the broker
                life.path_ns = max(ns - sent_ns, 0)
            if not life.opened_by_syn:
                connection.on_syn(client, -1)
            if client.syn_seq < 0:
                client.syn_seq = (ack - 1) & SEQ_MASK
                client.next_seq = ack
        else:
            connection.on_syn(half, ns)
            # The client's next packet shows the round trip time, and the broker's where it begins to count.
            if flow in self.open:  # the answer was captured first
                self.move_to_transient(half)
                self.move_to_transient(one.peer)
        return one

    def _established(self, one: Endpoint, ns: int, seq: int, ack: int, flags: int) -> None:
        client, broker, life = one.half, one.peer, one.connection.life
        if broker.next_seq < 0 and seq != (client.syn_seq + 1) & SEQ_MASK:
            return  # a later segment that came first does not show where the broker begins to count
        self.move_to_open(client)
        self.move_to_open(broker)
        if flags & ACK and not flags & RST:
            if broker.syn_seq < 0 and broker.next_seq < 0:
                broker.syn_seq = (ack - 1) & SEQ_MASK
                broker.next_seq = ack
            elif life.syn_ns >= 0:
                life.handshake_rtt_ns = max(ns - life.syn_ns, 0)

    def _finish(self, one: Endpoint, packet: int, ns: int, flags: int) -> None:
        """A FIN, a RST, or any segment after one: the connection ends when everything before its end is there."""
        half, peer, connection = one.half, one.peer, one.connection
        if flags & (FIN | RST):
            if half is connection.broker and not peer.fin and half.queue is None:
                connection.broker_left(ns)
            half.fin = True
            if connection.life.parting is None:
                connection.life.parting = half.flow, ns, packet, bool(flags & RST)
            self.move_to_transient(half)
            self.move_to_transient(peer)
        if flags & RST:
            if half.bytes + peer.bytes or half.queue is not None:
                self._linger(connection, ns)
            else:
                self._end(connection)
        elif half.fin and peer.fin and not half.is_awaited() and not peer.is_awaited():
            is_copied = half.has_copies() or peer.has_copies()  # the second capture point has yet to see the last ones
            if flags & FIN or half.queue is not None or peer.queue is not None or is_copied:
                self._linger(connection, ns)
            else:
                self._end(connection)

    def _drop(self, connection: ConnectionAnalyzer) -> None:
        """Ends a connection that nothing can reach any more."""
        connection.close()
        self.remove(connection)

    def _linger(self, connection: ConnectionAnalyzer, ns: int) -> None:
        if not connection.life.lingering:
            connection.life.lingering = True
            self._lingering.append((ns, connection))

    def _end(self, connection: ConnectionAnalyzer) -> None:
        connection.close()
        ended, now_ns = self._ended, self._services.now_ns
        ended.append((now_ns, connection))
        while len(ended) > MAX_ENDED or now_ns - ended[0][0] > ENDED_NS:
            self.remove(ended.popleft()[1])

    def _make_room(self, ns: int) -> None:
        """Ends the tenth of the connections that has been idle longest, where there are too many."""
        if len(self) < MAX_CONNECTIONS:
            return
        evicted = 0
        for _ in range(max(len(self) // 10, 1)):
            flow = self.longest_idle()
            attempt = self.attempts.pop(flow, None)
            one = self.find(flow)
            if attempt is not None:
                evicted += 1
                self._give_up(attempt)
            elif one is not None:
                evicted += not one.connection.closed
                self._drop(one.connection)
        if evicted:
            self._services.output.report(too_many_connections(MAX_CONNECTIONS, evicted, ns))


def answers_another(client: HalfStream, ack: int) -> bool:
    """Whether a SYN with ACK answers another SYN than the one that opened this connection."""
    asked = client.syn_seq
    return asked >= 0 and (ack - 1 - asked) & SEQ_MASK > MAX_SYN_BYTES
