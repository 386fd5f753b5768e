"""The one loop: segments in, exchanges, connections and problems out.

Everything that reads Kafka traffic goes through :class:`Analyzer`, whether the segments come from a file, a network
interface or a partition of a cluster job.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from kwiresniff import codec
from kwiresniff.compiled import COMPILED, i32
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import (
    ACK,
    DECRYPTED,
    FIN,
    RST,
    SYN,
    Body,
    Connection,
    Direction,
    Event,
    Exchange,
    ExchangeSink,
    RecordsMode,
    Segment,
    SegmentSink,
)
from kwiresniff.session import losses
from kwiresniff.session.apis import known_versions, read_version
from kwiresniff.session.flows import connection_of, endpoints, reverse
from kwiresniff.session.link import Link
from kwiresniff.session.openings import Openings, first_seq, follow
from kwiresniff.session.roles import UNSETTLED
from kwiresniff.session.scan import Scanner
from kwiresniff.session.strangers import Strangers
from kwiresniff.session.topics import MAX_TOPIC_NAMES, Topics
from kwiresniff.stream.budget import Budget, Holder
from kwiresniff.stream.footing import MAX_CLIENT_ID_BYTES
from kwiresniff.stream.half import LOST_GAP, MAX_KEPT_BYTES, REQUESTS, RESPONSES, SEQ_MASK, Half, Sifter, frame_length

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kwiresniff.session.decode import BodyDecoder

Depth: TypeAlias = Literal["headers", "errors", "bodies", "records"]

#: Connections followed at once; beyond it the longest idle ones are ended. A busy broker has some 10,000.
MAX_CONNECTIONS = 50_000
#: A connection that was reset or closed is followed so much longer: what the other side sent before it knew, or the
#: last acknowledgement, is still underway.
LINGER_NS = 1_000_000_000
#: Connections followed for that long at once; beyond it the first to be closed are ended.
MAX_LINGERING = 4_096
#: Data that a SYN may carry (RFC 7413) and its answer acknowledges: one segment.
MAX_SYN_BYTES = 65_535
#: Ended connections are remembered so long, so that their late retransmissions do not look like new ones, and so many.
ENDED_NS = 20_000_000_000
MAX_ENDED = 4_096
#: Different client ids remembered by name.
MAX_NAMES = 10_000
#: What is kept of a request when its body is not wanted: the header and the front of small bodies, enough for the
#: client's name and SASL mechanism and ``acks``.
FRONT_BYTES = 1024
#: Flags of the segments that the short path is not for.
UNUSUAL: Final = FIN | SYN | RST | DECRYPTED
#: What is kept of a response when its body is not wanted: the correlation id and a leading error code.
RESPONSE_FRONT_BYTES = 64


class Analyzer(SegmentSink):
    """Follows every connection of one stream of segments.

    ``depth`` says how far frames are read: ``headers`` (who asked what, when answered), ``errors`` (and which error
    codes came back), ``bodies`` (everything but records), ``records`` (everything). ``topics`` has the names of the
    topics collected at depths that do not decode bodies. ``want`` is asked about each complete exchange before its
    bodies are decoded; False drops it, True or None keeps it. ``ports`` are known to be brokers': what goes there is
    Kafka on weaker evidence, and what comes from there is no client. ``encode`` gives the JSON text of a value; with it
    bodies may come as text (``Message.text``), as far as nothing in them needs telling elsewhere, and deliberate waits
    are not told. ``connections`` counts those recognised so far, ``bare_token_bytes`` what SASL tokens without a header
    took, lengths included: the only bytes of Kafka connections that belong to no event.
    """

    def __init__(
        self,
        depth: Depth = "records",
        *,
        topics: bool = False,
        want: Callable[[Exchange], bool | None] | None = None,
        show_secrets: bool = False,
        ports: Iterable[int] = (),
        encode: Callable[[Any], bytes] | None = None,
    ) -> None:
        self.depth: Depth = depth
        self.topics = Topics()
        self.versions = known_versions()
        self.client_ids: dict[bytes, str] = {}
        self.broker_ports = frozenset(port.to_bytes(2, "big") for port in ports)
        self._want = want
        decoded = depth in ("bodies", "records")
        self._keep_request = MAX_KEPT_BYTES if decoded or topics else FRONT_BYTES
        self._keep_response = RESPONSE_FRONT_BYTES if depth == "headers" and not topics else MAX_KEPT_BYTES
        records: RecordsMode = "full" if depth == "records" else "headers"
        self._decoder: BodyDecoder | None = None
        if decoded:
            from kwiresniff.session.decode import BodyDecoder  # brings all that can be inside bodies

            self._decoder = BodyDecoder(records, self.topics, show_secrets=show_secrets, encode=encode)
        scanned = topics or depth != "headers"
        self._scanner = Scanner(self.topics, errors=depth != "headers", topics=topics) if scanned else None
        self.sifts = scanned and not decoded  # large responses are kept without their record sets
        self._halves: dict[bytes, Half] = {}
        # Halves whose connection is opening or ending: all their segments are unusual.
        self._edges: dict[bytes, Half] = {}
        self._openings = Openings()
        self.budget = Budget(self.given_up)
        self._ended: deque[tuple[int, Link]] = deque()  # (since when, connection)
        self._lingering: deque[tuple[int, Link]] = deque()  # (since when, connection) in that order
        self._strangers = Strangers()
        self.connections = 0  # met so far; each is numbered
        self.bare_token_bytes = 0
        self._now_ns = 0  # of the last segment
        self._sink: ExchangeSink | None = None
        self._out: list[Event] = []
        self._nobody = Link(self, b"", b"", 0, 0)  # stands in for connections that are forgotten
        self._nobody.closed = True

    # -- the loop -----------------------------------------------------------------------------------------------

    def analyze(self, segments: Iterable[Segment]) -> Iterator[Event]:
        """Yield events in the order in which they are complete; at the end of ``segments`` everything is closed."""
        return chain(self.follow(segments), self.finish())

    def finish(self) -> Iterator[Event]:
        """End everything that is open, and yield what that gives."""
        self.close()
        yield from self.events()

    def follow(self, segments: Iterable[Segment]) -> Iterator[Event]:
        """Yield events in the order in which they are complete; what is open at the end of ``segments`` stays so."""
        take = self.segment
        for packet, ns, flow, seq, ack, flags, buffer, start, end, missing in segments:
            if take(packet, ns, flow, seq, ack, flags, buffer, start, end, missing):
                yield from self.events()
        yield from self.events()

    def draw(self, feed: Callable[[SegmentSink], bool]) -> Iterator[Event]:
        """The same for a source that gives its segments itself, which costs less: see ``Captures.feed``."""
        while feed(self):
            if self._out:
                yield from self.events()
        yield from self.events()

    def events(self) -> list[Event]:
        """What has come of the segments so far and was not taken yet."""
        out, self._out = self._out, []
        return out

    def segment(
        self,
        packet: i64,
        ns: int,
        flow: bytes,
        seq: i64,
        ack: i64,
        flags: i64,
        buffer: bytes,
        start: i64,
        end: i64,
        missing: i64,
    ) -> bool:
        """Take a segment; True when there are events."""
        self._now_ns = ns
        half = self._halves.get(flow)
        if half is None or flags & UNUSUAL or half.closed:
            self._unusual(packet, ns, flow, seq, ack, flags, buffer, start, end, missing)
            return len(self._out) > 0
        half.packets += 1
        half.last_ns = ns
        half.ack = ack
        if half.peer.waiting:
            half.peer.acknowledged(packet, ns, ack)
        length = end - start
        if not length and not missing:
            return False
        half.bytes += length
        if seq == half.next_seq and not missing and not half.waiting:
            half.next_seq = (seq + length) & SEQ_MASK
            need = half.need
            if length < need:
                if half.room > 0:
                    half.parts.append(buffer[start:end])
                    half.room -= length
                elif half.sifter is not None:
                    if half.passing >= length:
                        half.passing -= length
                    else:
                        half.sift(buffer, start, end)
                elif half.wanted:
                    half.grant()
                    half.parts.append(buffer[start:end])
                    half.room -= length
                    half.need = need - length
                    self.budget.relieve()
                    return len(self._out) > 0
                half.need = need - length
                return False
            size = length - 4
            if (
                half.at_edge
                and 0 < size <= half.keep
                and (i32(buffer, start) if COMPILED else frame_length(buffer, start)[0]) == size
            ):
                start += 4
                if half.usual == REQUESTS:
                    half.owner.request(half, packet, ns, packet, ns, size, buffer[start:end], 0)
                elif half.usual == RESPONSES:
                    half.owner.response(half, packet, ns, packet, ns, size, buffer[start:end], 0)
                else:
                    half.frame(half, packet, ns, packet, ns, size, buffer[start:end], 0)
            else:
                half.deliver(packet, ns, buffer, start, end)
                self.budget.relieve()
        elif half.is_jump(seq):
            self._unusual(packet, ns, flow, seq, ack, flags, buffer, start, end, missing)
        else:
            half.segment(packet, ns, seq, buffer, start, end, missing)
        return len(self._out) > 0

    def count(self, sink: ExchangeSink) -> None:
        """From now on exchanges go to ``sink``, all of them, and are not among the events."""
        self._want = None
        self._sink = sink

    def expire(self, idle_ns: int) -> Iterator[Event]:
        """End the connections that have been silent for ``idle_ns`` at the last segment, and yield what that gives."""
        before_ns = self._now_ns - idle_ns
        for link in self._links():
            if max(link.client.last_ns, link.broker.last_ns) < before_ns:
                link.close()
                self._let_go(link)
        while late := self._openings.take_late(0, self._now_ns):
            self._begin(late)
        yield from self.events()

    def close(self) -> None:
        """End every connection that is still open, and say what was there besides Kafka."""
        while held := self._openings.take_late(sys.maxsize, 0):
            self._begin(held)
        for half in [*self._halves.values(), *self._edges.values()]:
            self._link(half).close()
        self._halves.clear()
        self._edges.clear()
        if self.topics.forgotten:
            self._out.append(losses.too_many_topic_names(MAX_TOPIC_NAMES, self.topics.forgotten))
            self.topics.forgotten = 0
        self._out.extend(self._strangers.problems())

    # -- connections --------------------------------------------------------------------------------------------

    @staticmethod
    def _link(half: Half) -> Link:
        link = half.owner
        assert isinstance(link, Link)
        return link

    def _open(self, flow: bytes, ns: int) -> Half:
        """A new connection of which ``flow`` is one direction."""
        if len(self._halves) + len(self._edges) >= 2 * MAX_CONNECTIONS:
            self._end_idle(ns)
        link = Link(self, flow, reverse(flow), self._keep_request, ns)
        for half in (link.client, link.broker):
            self._halves[half.flow] = half
            self._edges.pop(half.flow, None)
        return link.client

    def _unusual(
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
        """A segment that opens, ends or repeats a connection, or whose connection is not known, or decrypted bytes."""
        lingering = self._lingering
        while lingering and (ns - lingering[0][0] > LINGER_NS or len(lingering) > MAX_LINGERING):
            _, link = lingering.popleft()
            if not link.closed:
                self._end(link)
        openings, held = self._openings, []
        if openings:
            while late := openings.take_late(packet, ns):
                self._begin(late)
        half = self._halves.get(flow) or self._edges.get(flow)
        data = start < end or missing
        if flags & DECRYPTED:
            if half is None and openings:
                half = self._begin(openings.take(connection_of(flow)))
            if half is not None and (tls := self._link(half).tls) is not None:
                tls.decrypt(half, packet, ns, seq, buffer, start, end)
            return
        if flags & SYN:
            held = openings.take(connection_of(flow)) if openings else []
            if held and not follow(held, flow, seq):
                self._begin(held)
                half, held = self._halves.get(flow), []
            half = self._synchronize(flow, half, ns, seq, ack, flags)
            seq = (seq + 1) & SEQ_MASK
        elif half is None:
            if self._strangers.knows(flow, end - start):
                return
            if data or (openings and connection_of(flow) in openings):
                self._hold_back((packet, ns, flow, seq, ack, flags, buffer, start, end, missing))
            return
        elif half.closed or (data and half.is_foreign(seq)):
            link = self._link(half)
            refused = half.bytes + half.peer.bytes == 0  # so there is nothing that could be sent again
            if not data or (half.closed and not half.is_foreign(seq) and not refused):
                return  # the last acknowledgements and retransmissions of a connection that has ended
            link.close()
            self._forget(link)
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
        if flags & ACK and half.peer.waiting:
            half.peer.acknowledged(packet, ns, ack)
        if flags & FIN and half.fin and not data:
            half.retransmits += 1
        elif data or (flags & (FIN | RST) and not half.fin and not half.is_jump(seq)):
            half.bytes += end - start
            half.segment(packet, ns, seq, buffer, start, end, missing)
        if flags & (FIN | RST) or half.fin or half.peer.fin:
            self._finish(half, ns, flags)
        for segment in held:
            self._unusual(*segment)

    def _hold_back(self, segment: Segment) -> None:
        self._begin(self._openings.hold(connection_of(segment[2]), segment))

    def _begin(self, held: Sequence[Segment]) -> Half | None:
        """Wait no longer for the handshake of a connection; returns the half of its first segment, if there is one."""
        if not held:
            return None
        flow = held[0][2]
        half = self._halves.get(flow) or self._edges.get(flow) or self._open(flow, held[0][1])
        for one in (half, half.peer):
            if one.next_seq < 0:
                one.next_seq = first_seq(held, one.flow)
        for segment in held:
            self._unusual(*segment)
        return half

    def _synchronize(self, flow: bytes, half: Half | None, ns: int, seq: int, ack: int, flags: int) -> Half:
        if half is not None and half.syn_seq == seq:
            half.retransmits += 1
            return half
        answered = bool(flags & ACK)
        if half is None or half.syn_seq >= 0 or half.closed or half.next_seq >= 0 or answers_another(half, ack, flags):
            if half is not None:
                self._link(half).close()
            self._strangers.forget(flow, reverse(flow))
            half = self._open(flow, ns)
        link = self._link(half)
        half.syn_seq = seq
        half.next_seq = (seq + 1) & SEQ_MASK
        if answered:
            self._into(self._halves, self._edges, half)
            client = half.peer
            if not link.opened_by_syn:
                link.opened(client, -1)
            if client.syn_seq < 0:
                client.syn_seq = (ack - 1) & SEQ_MASK
                client.next_seq = ack
        else:
            link.opened(half, ns)
            # The client's next packet tells the round trip, and the broker's where it begins to count.
            self._into(self._edges, self._halves, half, half.peer)
        return half

    @staticmethod
    def _into(table: dict[bytes, Half], other: dict[bytes, Half], *halves: Half) -> None:
        for half in halves:
            if other.get(half.flow) is half:
                table[half.flow] = other.pop(half.flow)

    def _established(self, client: Half, ns: int, seq: int, ack: int, flags: int) -> None:
        link = self._link(client)
        broker = client.peer
        if broker.next_seq < 0 and seq != (client.syn_seq + 1) & SEQ_MASK:
            return  # a later segment that came first does not tell where the broker begins to count
        self._into(self._halves, self._edges, client, broker)
        if flags & ACK and not flags & RST:
            if broker.syn_seq < 0 and broker.next_seq < 0:
                broker.syn_seq = (ack - 1) & SEQ_MASK
                broker.next_seq = ack
            elif link.syn_ns >= 0:
                link.handshake_rtt_ns = max(ns - link.syn_ns, 0)

    def _finish(self, half: Half, ns: int, flags: int) -> None:
        """A FIN, a RST, or any segment after one: the connection ends when everything before its end is there."""
        peer = half.peer
        link = self._link(half)
        if flags & (FIN | RST):
            if half is link.broker and not peer.fin and not half.waiting and link.sasl is not None:
                link.sasl.broker_left(ns)
            half.fin = True
            self._into(self._edges, self._halves, half, peer)
        if flags & RST:
            if half.bytes + peer.bytes or half.waiting:
                self._linger(link, ns)
            else:
                self._end(link)
        elif half.fin and peer.fin and not half.is_awaited() and not peer.is_awaited():
            if flags & FIN or half.waiting or peer.waiting:
                self._linger(link, ns)
            else:
                self._end(link)

    def _linger(self, link: Link, ns: int) -> None:
        if not link.lingering:
            link.lingering = True
            self._lingering.append((ns, link))

    def _end(self, link: Link) -> None:
        link.close()
        ended, now_ns = self._ended, self._now_ns
        ended.append((now_ns, link))
        while len(ended) > MAX_ENDED or now_ns - ended[0][0] > ENDED_NS:
            self._let_go(ended.popleft()[1])

    def _let_go(self, link: Link) -> None:
        """Forget an ended connection, and set free what it held."""
        self._forget(link)
        link.take_apart(self._nobody)

    def _forget(self, link: Link) -> None:
        for half in (link.client, link.broker):
            for table in (self._halves, self._edges):
                if table.get(half.flow) is half:
                    del table[half.flow]

    def _links(self) -> list[Link]:
        halves = [*self._halves.values(), *self._edges.values()]
        return list({id(half.owner): self._link(half) for half in halves}.values())

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
            self._out.append(losses.too_many_connections(MAX_CONNECTIONS, given_up, ns))

    def new_connection(self, link: Link) -> Connection:
        """A connection has shown that it is Kafka, or TLS."""
        self.keep_as_wanted(link)
        if link.carrier is not None:
            link.carrier.connection.protocol = "kafka"
            return link.carrier.connection
        self.connections += 1
        client, broker = endpoints(link.client.flow)
        connection = Connection(self.connections, client, broker)
        connection.first_ns = link.first_ns
        return connection

    def keep_as_wanted(self, link: Link) -> None:
        """Keep as much of each frame as the depth asks for."""
        link.client.keep = self._keep_request
        link.broker.keep = self._keep_response
        link.broker.sifts = self.sifts

    def connection_ended(self, link: Link) -> None:
        """Sum up a connection and report it; what TLS carries is part of the connection that carries it."""
        if link.carrier is not None:
            return
        connection = link.connection
        client, broker = link.client, link.broker
        connection.last_ns = max(connection.first_ns, client.last_ns, broker.last_ns)
        connection.bytes = [client.bytes, broker.bytes]
        connection.packets = [client.packets, broker.packets]
        connection.retransmits = [client.retransmits, broker.retransmits]
        connection.handshake_seen = link.opened_by_syn
        connection.handshake_rtt_ns = link.handshake_rtt_ns
        self._out.append(connection)

    def ignore(self, link: Link, protocol: str) -> None:
        """A connection has shown that it is not Kafka: count it and look at it no more."""
        link.closed = True
        counts = self._strangers.count(link, protocol)
        if link.carrier is not None:
            return
        for half in (link.client, link.broker):
            half.closed = True
            half.run.clear()
            self._strangers.remember(half.flow, counts)
        self._forget(link)

    def unrecognized(self, link: Link) -> None:
        """A connection ended before it showed what it was."""
        if link.client.bytes + link.broker.bytes:
            self._strangers.count(link, link.roles.guess_protocol())

    def given_up(self, holder: Holder, size: int) -> None:
        """Somebody gave way because all connections together held too much."""
        half = holder if isinstance(holder, Half) else None
        link = self._link(half) if half is not None else holder
        assert isinstance(link, Link)
        self._out.append(losses.too_much_held(link, half, size, self.budget.limit))

    # -- what links report --------------------------------------------------------------------------------------

    def client_id(self, raw: bytes) -> str:
        """A client id as text, the same object every time; undecodable bytes are shown escaped."""
        text = raw.decode("utf-8", "backslashreplace")
        if len(self.client_ids) < MAX_NAMES and len(raw) <= MAX_CLIENT_ID_BYTES:
            self.client_ids[raw] = text
        return text

    @staticmethod
    def reads(api_key: int, version: int, direction: Direction, frame: bytes, offset: int) -> bool | None:
        """Whether a body reads as this message to its last byte; None when there is no such API or version."""
        try:
            decode = codec.decoder(api_key, version, direction, "skip")
        except SchemaError:
            return None
        try:
            _, end = decode(frame, offset, [])
        except DecodeError:
            return False
        return bool(end == len(frame))

    def peek(self, exchange: Exchange, direction: Direction) -> Body | None:
        """The body of a message that every depth looks into, or None when it cannot be read."""
        message = exchange.request if direction == "request" else exchange.response
        if message is None or message.frame is None:
            return None
        version = read_version(exchange, direction)
        try:
            body, _ = codec.decoder(exchange.api_key, version, direction, "skip")(
                message.frame, message.body_offset, []
            )
        except (DecodeError, SchemaError):
            return None
        return body

    def sieve(self, exchange: Exchange, body_offset: int) -> Sifter | None:
        """Who keeps the response of an exchange without its record sets, as far as it has any."""
        return self._scanner.sieve(exchange, body_offset) if self._scanner is not None else None

    def complete(self, exchange: Exchange) -> None:
        """An exchange is as complete as it will ever be: decode as far as wanted and report it."""
        if self._want is not None and self._want(exchange) is False:
            if self._scanner is not None:
                self._scanner.scan(exchange)
        else:
            if self._decoder is not None:
                self._decoder.decode(exchange)
            elif self._scanner is not None:
                self._scanner.scan(exchange)
            if self._sink is not None:
                self._sink.exchange(exchange)
            else:
                self._out.append(exchange)
        counts = exchange.connection.exchanges
        outcome = exchange.outcome
        counts[outcome] = counts.get(outcome, 0) + 1

    def lost_message(self, direction: Direction, packet: int, ns: int, size: int, lost: int, link: Link) -> None:
        """A frame of which so much is missing that it belongs to no exchange."""
        self._out.append(losses.lost_message(direction, packet, ns, size, lost, link))

    def incomplete(self, code: str, what: str, link: Link, half: Half, size: int, present: int) -> None:
        """A frame that had begun when its connection or the capture ended."""
        self._out.append(losses.incomplete(code, what, link, half, size, present))

    def tell_unseen(self, link: Link, half: Half) -> None:
        """Bytes that were not in the capture before it was known that the connection is worth a word."""
        if half.unseen:
            packet, ns, missing = half.unseen_packet, half.unseen_ns, half.unseen
            half.unseen = 0
            self._out.append(losses.lost_bytes(link, half, packet, ns, missing, 0, LOST_GAP))

    def lost(self, link: Link, half: Half, packet: int, ns: int, missing: int, skipped: int, code: str) -> None:
        """Bytes that were not in the capture (``missing``) or could not be read (``skipped``).

        Until the connection is known to be Kafka they are only counted.
        """
        skipped += half.skipped
        if link.connection is UNSETTLED:
            half.skipped = skipped
            if missing and not half.unseen:
                half.unseen_packet, half.unseen_ns = packet, ns
            half.unseen += missing
            return
        half.skipped = 0
        link.connection.skipped_bytes[half.index] += skipped
        self._out.append(losses.lost_bytes(link, half, packet, ns, missing, skipped, code))


def answers_another(half: Half, ack: int, flags: int) -> bool:
    """Whether a SYN with ACK answers another SYN than the one that opened this connection, which nobody answered."""
    asked = half.peer.syn_seq
    return bool(flags & ACK) and asked >= 0 and (ack - 1 - asked) & SEQ_MASK > MAX_SYN_BYTES


def analyze(
    segments: Iterable[Segment],
    *,
    depth: Depth = "records",
    topics: bool = False,
    want: Callable[[Exchange], bool | None] | None = None,
    show_secrets: bool = False,
) -> Iterator[Event]:
    """Exchanges, ended connections and problems of a stream of segments; see :class:`Analyzer`."""
    return Analyzer(depth, topics=topics, want=want, show_secrets=show_secrets).analyze(segments)
