"""The one loop: segments in, exchanges, connections and problems out.

Everything that reads Kafka traffic goes through :class:`Analyzer`, whether the segments come from a file, a network
interface or a partition of a cluster job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from kwiresniff import codec
from kwiresniff.base.api_keys import FETCH, SHARE_ACKNOWLEDGE, SHARE_FETCH
from kwiresniff.compiled import COMPILED, i32
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import (
    DECRYPTED,
    FIN,
    RST,
    SYN,
    Body,
    Connection,
    ConnectionAttempt,
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
from kwiresniff.session.flows import endpoints
from kwiresniff.session.link import Link
from kwiresniff.session.roles import UNSETTLED
from kwiresniff.session.scan import Scanner
from kwiresniff.session.topics import MAX_TOPIC_NAMES, Topics
from kwiresniff.session.tracker import Tracker, link_of
from kwiresniff.stream.budget import Budget, Holder
from kwiresniff.stream.half import (
    LOST_GAP,
    MAX_KEPT_BYTES,
    REQUESTS,
    RESPONSES,
    SEQ_MASK,
    SMALL_PIECE_BYTES,
    Half,
    Sifter,
    frame_length,
)

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kwiresniff.codec.text.words import Words
    from kwiresniff.session.decode import BodyDecoder
    from kwiresniff.session.fetch_sessions import FetchSessions

Depth: TypeAlias = Literal["headers", "errors", "bodies", "records"]

#: The APIs whose requests belong to fetch sessions.
SESSION_APIS: Final = frozenset({FETCH, SHARE_FETCH, SHARE_ACKNOWLEDGE})
#: Different client ids remembered by name, and the longest of them. Escaped, a byte is four characters.
MAX_CLIENT_IDS = 10_000
MAX_REMEMBERED_ID_BYTES = 255
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
    bodies may come as text (``Message.text``), as far as nothing in them needs telling elsewhere. With
    ``words`` they may come as the rows of a tree, with ``gists`` as what they are about. With ``attempts`` connections
    that never came to be are told too. With ``sessions``, and with ``topics``, fetches are told what their sessions are
    about (``Exchange.fetched``).
    ``connections`` counts those recognised so far, ``bare_token_bytes`` what SASL tokens without a header took, lengths
    included: the only bytes of Kafka connections that belong to no event.
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
        attempts: bool = False,
        sessions: bool = False,
        words: Words | None = None,
        gists: bool = False,
    ) -> None:
        self.depth: Depth = depth
        self.topics = Topics()
        self.versions = known_versions()
        self.client_ids: dict[bytes, str] = {}
        self.broker_ports = frozenset(port.to_bytes(2, "big") for port in ports)
        self._attempts = attempts
        self._want = want
        decoded = depth in ("bodies", "records")
        self.fetch_sessions: FetchSessions | None = None
        if topics or sessions:
            from kwiresniff.session.fetch_sessions import FetchSessions  # few ask for topics

            self.fetch_sessions = FetchSessions()
        self.keep_request = MAX_KEPT_BYTES if decoded or topics or sessions else FRONT_BYTES
        self._keep_response = RESPONSE_FRONT_BYTES if depth == "headers" and not topics else MAX_KEPT_BYTES
        records: RecordsMode = "full" if depth == "records" else "headers"
        self._decoder: BodyDecoder | None = None
        if decoded:
            from kwiresniff.session.decode import BodyDecoder  # brings all that can be inside bodies

            self._decoder = BodyDecoder(
                records, self.topics, show_secrets=show_secrets, encode=encode, words=words, gists=gists
            )
        scanned = topics or depth != "headers"
        self._scanner = Scanner(self.topics, errors=depth != "headers", topics=topics) if scanned else None
        self.sifts = scanned and not decoded  # large responses are kept without their record sets
        self.budget = Budget(self.holders, self.given_up)
        self.connections = 0  # met so far; each is numbered
        self.bare_token_bytes = 0
        self._sink: ExchangeSink | None = None
        self._out: list[Event] = []
        self.tracker = Tracker(self)

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
        """The same for a source that gives its segments itself, which costs less: see ``CaptureSet.feed``."""
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
        tracker = self.tracker
        tracker.now_ns = ns
        half = tracker.halves.get(flow)
        if half is None or flags & UNUSUAL or half.closed:
            tracker.take(packet, ns, flow, seq, ack, flags, buffer, start, end, missing)
            self.budget.relieve()
            return len(self._out) > 0
        half.packets += 1
        half.last_ns = ns
        half.ack = ack
        if half.peer.waiting.segments:
            half.peer.acknowledged(packet, ns, ack)
        length = end - start
        if not length and not missing:
            return False
        half.bytes += length
        if seq == half.next_seq and not missing and not half.waiting.segments:
            half.next_seq = (seq + length) & SEQ_MASK
            need = half.need
            if length < need:
                if half.room > 0:
                    if length >= SMALL_PIECE_BYTES:
                        half.parts.append(buffer[start:end])
                        half.room -= length
                    else:
                        half.keep_piece(buffer[start:end])
                elif half.sifter is not None:
                    if half.passing >= length:
                        half.passing -= length
                    else:
                        half.sift(buffer, start, end)
                elif half.wanted:
                    half.grant()
                    half.keep_piece(buffer[start:end])
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
            budget = self.budget
            if budget.held > budget.limit:
                budget.relieve()
        elif half.is_jump(seq):
            tracker.take(packet, ns, flow, seq, ack, flags, buffer, start, end, missing)
            self.budget.relieve()
        else:
            half.segment(packet, ns, seq, buffer, start, end, missing)
            self.budget.relieve()
        return len(self._out) > 0

    def count(self, sink: ExchangeSink) -> None:
        """From now on exchanges go to ``sink``, all of them, and are not among the events."""
        self._want = None
        self._sink = sink

    def expire(self, idle_ns: int) -> Iterator[Event]:
        """End the connections that have been silent for ``idle_ns`` at the last segment, and yield what that gives."""
        before = len(self._out)
        self.tracker.expire(idle_ns)
        self._put_in_order(before)
        yield from self.events()

    def _put_in_order(self, start: int) -> None:
        """Of the events from ``start`` on, exchanges come first, by time: several connections ended at once."""
        ended = self._out[start:]
        asked = [one for one in ended if isinstance(one, Exchange)]
        asked.sort(key=_seen_ns)
        self._out[start:] = [*asked, *[one for one in ended if not isinstance(one, Exchange)]]

    def end_attempts(self, idle_ns: int) -> None:
        """End the attempts at connections that nobody has answered for ``idle_ns``; they are among the next events."""
        self.tracker.end_attempts(idle_ns)

    def close(self) -> None:
        """End every connection that is still open, and say what was there besides Kafka.

        Requests that nobody will answer now come in the order of their times, whichever connection they are on.
        """
        before = len(self._out)
        self.tracker.close()
        self._put_in_order(before)
        if self.topics.forgotten:
            self._out.append(losses.too_many_topic_names(MAX_TOPIC_NAMES, self.topics.forgotten))
            self.topics.forgotten = 0
        self._out.extend(self.tracker.strangers.problems())

    # -- what links report --------------------------------------------------------------------------------------

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
        link.client.keep = self.keep_request
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
        connection.first_packet = link.first_packet
        connection.syn_retransmits = link.syn_retransmits
        if link.parting is not None:
            flow, connection.closed_ns, connection.closed_packet, connection.was_reset = link.parting
            connection.closed_by = "client" if flow == client.flow else "broker"
        if connection.tls is None and link.is_answered():
            self.tracker.strangers.speaks_kafka(connection.broker)
        self._out.append(connection)

    def attempt_failed(self, link: Link) -> None:
        """A connection ended before its SYN was answered with anything but a RST."""
        if not self._attempts:
            return
        client, server = endpoints(link.client.flow)
        last_ns = max(link.client.last_ns, link.broker.last_ns, link.first_ns)
        refused, syns = link.broker.fin, 1 + link.syn_retransmits
        self._out.append(ConnectionAttempt(client, server, link.first_packet, link.first_ns, last_ns, syns, refused))

    def too_many_connections(self, limit: int, given_up: int, ns: int) -> None:
        """Connections were ended to make room."""
        self._out.append(losses.too_many_connections(limit, given_up, ns))

    def holders(self) -> Iterator[Holder]:
        """All who may hold bytes back."""
        return self.tracker.holders()

    def given_up(self, holder: Holder, size: int) -> None:
        """Somebody gave way because all connections together held too much."""
        half = holder if isinstance(holder, Half) else None
        link = link_of(half) if half is not None else holder
        assert isinstance(link, Link)
        self._out.append(losses.too_much_held(link, half, size, self.budget.limit))

    def client_id(self, raw: bytes) -> str:
        """A client id as text, the same object every time; undecodable bytes are shown escaped."""
        text = raw.decode("utf-8", "backslashreplace")
        if len(self.client_ids) < MAX_CLIENT_IDS and len(raw) <= MAX_REMEMBERED_ID_BYTES:
            self.client_ids[raw] = text
        return text

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
        if self.fetch_sessions is not None and exchange.api_key in SESSION_APIS:
            self.fetch_sessions.follow(exchange)
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
        """Bytes that were not in the capture and that nobody was told of yet."""
        if half.unseen is not None:
            packet, ns, missing = half.unseen
            half.unseen = None
            self._out.append(losses.lost_bytes(link, half, packet, ns, missing, 0, LOST_GAP))

    def lost(self, link: Link, half: Half, packet: int, ns: int, missing: int, skipped: int, code: str) -> None:
        """Bytes that were not in the capture (``missing``) or could not be read (``skipped``).

        Until the connection is known to be Kafka they are only counted.
        """
        skipped += half.skipped
        if link.connection is UNSETTLED:
            half.skipped = skipped
            half.miss(packet, ns, missing)
            return
        half.skipped = 0
        link.connection.skipped_bytes[half.index] += skipped
        self._out.append(losses.lost_bytes(link, half, packet, ns, missing, skipped, code))


def _seen_ns(exchange: Exchange) -> int:
    """When an exchange was first seen."""
    first = exchange.request or exchange.response
    return first.first_ns if first is not None else 0


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
