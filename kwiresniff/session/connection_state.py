"""The state that all layers of a connection's analyzer share: two half streams, client and broker, begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.base.flows import endpoints
from kwiresniff.base.header_fields import unpack_correlation_id, unpack_request_header
from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.model import Connection, ConnectionAttempt, Direction, Unacknowledged
from kwiresniff.session import problems
from kwiresniff.session.apis import api_facts
from kwiresniff.session.phases import UNIDENTIFIED
from kwiresniff.session.proxy_preamble import ProxyPreamble
from kwiresniff.session.services import ConnectionServices
from kwiresniff.stream.frame_handler import LOST_GAP, FrameHandler
from kwiresniff.stream.half_stream import MANY_COPIES, HalfStream

if TYPE_CHECKING:
    from mypy_extensions import i64


#: Outcomes of exchanges in which the broker had no part.
_WITHOUT_ANSWER: Final = frozenset({"unanswered", "no_response_expected"})
#: Stands for the connection until it is known what it is.
UNIDENTIFIED_CONNECTION: Final = Connection(0, "", "")


class Lifecycle:
    """How a connection began and ends; times are -1 if unknown. ``parting`` is the first FIN or RST: flow, time,
    packet, whether RST. ``lingering`` waits for what is underway; ``path_ns`` passed between SYN and answer.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "first_ns", "first_packet", "handshake_rtt_ns", "lingering", "opened_by_syn", "parting", "path_ns",
        "syn_ns", "syn_retransmits",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self, first_packet: int, first_ns: int) -> None:
        self.first_packet = first_packet
        self.first_ns = first_ns
        self.syn_ns = -1
        self.syn_retransmits = 0
        self.opened_by_syn = False
        self.handshake_rtt_ns: int | None = None
        self.path_ns: int | None = None
        self.parting: tuple[bytes, int, int, bool] | None = None
        self.lingering = False

    def was_ended_by(self, flow: bytes) -> bool:
        """Whether the first FIN or RST came on this flow."""
        return self.parting is not None and self.parting[0] == flow


class ConnectionState(FrameHandler):
    """The state of one TCP connection.

    ``client`` and ``broker`` are its half streams; which of them is the client is a guess until the ``phase`` is known
    (see ``detection``) or a SYN was seen. ``connection`` is what is reported of it in the end. ``carrier`` is set when
    this is what a TLS connection carries: what is reported of that. ``responses_lost`` says that bytes from the broker
    were lost since its last frame. ``preamble`` is what a proxy and its client say before anything else, if they do.

    A connection without data is little more than its handshake and its end: what reads it is made by ``start``.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "broker", "carrier", "client", "client_side", "closed", "connection", "life", "phase", "preamble",
        "responses_lost", "services", "started",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self, services: ConnectionServices, flow: bytes, other_flow: bytes, packet: int, ns: int) -> None:
        self.services = services
        self.client = HalfStream(flow, 0, services.budget)
        self.broker = HalfStream(other_flow, 1, services.budget)
        self.client_side: i64 = 0
        self.phase: i64 = UNIDENTIFIED
        self.connection = UNIDENTIFIED_CONNECTION
        self.carrier: Connection | None = None
        self.life = Lifecycle(packet, ns)
        self.preamble: ProxyPreamble | None = None
        self.responses_lost = False
        self.started = False
        self.closed = False

    def start(self) -> None:
        """Makes what reads data, because the first of it has come."""
        self.started = True
        self.client.start(self.services.keep_request)
        self.broker.start(self.services.keep_request)

    def last_ns(self) -> int:
        """When something was last seen of the connection; 0 before its first segment is counted."""
        return max(self.client.last_ns, self.broker.last_ns)

    def half(self, side: i64) -> HalfStream:
        """The half stream of a side."""
        return self.client if side == self.client_side else self.broker

    def set_client(self, client: HalfStream) -> None:
        """Sets the client's half stream, known or guessed."""
        if client is not self.client:
            self.client, self.broker = client, self.client
            self.client_side = client.side

    def identify(self, client: HalfStream, protocol: str) -> None:
        """Gives the connection its number, once its ``protocol`` (``kafka`` or ``tls``) and client are known."""
        self.set_client(client)
        self.apply_keep_limits()
        carrier = self.carrier
        if carrier is not None:
            carrier.protocol = protocol
            self.connection = carrier
            if self.preamble is not None:
                carrier.proxied = self.preamble.facts()
            return
        client_name, broker_name = endpoints(client.flow)
        self.connection = connection = Connection(self.services.next_number(), client_name, broker_name)
        connection.first_ns = self.life.first_ns
        connection.path_ns = self.life.path_ns
        connection.protocol = protocol
        connection.client_iss, connection.broker_iss = self.client.syn_seq, self.broker.syn_seq
        if self.preamble is not None:
            connection.proxied = self.preamble.facts()

    def apply_keep_limits(self) -> None:
        """Tells both half streams how many bytes of each frame to keep."""
        services = self.services
        self.client.frames.keep = services.keep_request
        self.broker.frames.keep = services.keep_response
        self.broker.frames.filters = services.filters

    def report_gap(self, half: HalfStream, packet: int, ns: int, missing: int, skipped: int, code: str) -> None:
        """Reports bytes that were not in the capture or could not be read; counts them until the phase is known."""
        skipped += half.unreported_bytes
        if self.connection is UNIDENTIFIED_CONNECTION:
            half.unreported_bytes = skipped
            half.note_gap(packet, ns, missing, code)
            return
        half.unreported_bytes = 0
        self.connection.skipped_bytes[0 if half is self.client else 1] += skipped
        self._report_loss(half, packet, ns, missing, skipped, code)

    def report_counted_gap(self, half: HalfStream) -> None:
        """Report the bytes that were not in the capture and were only counted."""
        if half.unreported_gap is not None:
            packet, ns, missing, code = half.unreported_gap
            half.unreported_gap = None
            self._report_loss(half, packet, ns, missing, 0, code)

    def _report_loss(self, half: HalfStream, packet: int, ns: int, missing: int, skipped: int, code: str) -> None:
        direction: Direction = "request" if half is self.client else "response"
        unacknowledged = code == LOST_GAP and missing > 0 and self._is_unacknowledged(half, missing)
        problem = problems.lost_bytes(self.connection, direction, packet, ns, missing, skipped, code, unacknowledged)
        self.services.output.report(problem)

    def _is_unacknowledged(self, half: HalfStream, missing: i64 = 0) -> bool:
        """Whether the receiver's last acknowledgement is that of the byte before the last ``missing`` ones: it waits
        for what follows, which nobody has seen."""
        peer = self.broker if half is self.client else self.client
        return peer.ack >= 0 and (peer.ack + missing - half.next_seq) & SEQ_MASK == 0

    def is_answered(self) -> bool:
        """Whether the broker has sent a response."""
        return any(outcome not in _WITHOUT_ANSWER for outcome in self.connection.exchanges)

    def report_unfinished(self) -> None:
        """Reports frames that had begun and have no end."""
        for half in (self.client, self.broker):
            frames = half.frames
            size, present, data = frames.unfinished()
            if not present:
                continue
            packet, ns = int(frames.first_packet), frames.first_ns
            waits = self._is_unacknowledged(half)
            if half is self.client:
                what = "a request"
                if len(data) >= 10:
                    api_key, api_version, correlation_id, _ = unpack_request_header(data)
                    what = f"{api_facts(api_key, api_version).name} v{api_version} request {correlation_id}"
                problem = problems.incomplete(self.connection, "request", what, packet, ns, size, present, waits)
            else:
                what = f"response {unpack_correlation_id(data)[0]}" if size and len(data) >= 4 else "a response"
                problem = problems.incomplete(self.connection, "response", what, packet, ns, size, present, waits)
            self.services.output.report(problem)

    def report_end(self) -> None:
        """Reports the connection with its totals; a decrypted one is part of the TLS connection that carries it."""
        if self.carrier is not None:
            return
        connection, client, broker, life = self.connection, self.client, self.broker, self.life
        connection.last_ns = max(connection.first_ns, self.last_ns())
        connection.bytes = [client.bytes, broker.bytes]
        connection.packets = [client.packets, broker.packets]
        connection.largest_segments = [client.largest, broker.largest]
        connection.recovered = [client.recovered, broker.recovered]
        connection.retransmits = [client.retransmits, broker.retransmits]
        connection.captured_twice = client.captured_twice + broker.captured_twice
        connection.copies = client.copies, broker.copies
        copied = [half for half in (client, broker) if half.has_copies()]
        if copied and (len(copied) == (client.bytes > 0) + (broker.bytes > 0) or copied[0].came_soon >= MANY_COPIES):
            connection.is_twice = True
            connection.captured_twice = 0
            copies = list(connection.copies)
            for side, half in enumerate((client, broker)):
                if half in copied or not half.bytes:  # one direction alone where a capture point saw no other
                    connection.captured_twice += half.came_soon
                    connection.retransmits[side] -= half.came_soon
                    connection.bytes[side] -= half.soon_bytes
                    copies[side] = 0
            connection.copies = copies[0], copies[1]
        for side, half, peer in ((0, client, broker), (1, broker, client)):
            if half.resent[0] >= 0 and half.resent[0] == peer.ack:
                connection.unacknowledged = Unacknowledged(side, *half.resent[1:])
        connection.handshake_seen = life.opened_by_syn
        connection.handshake_rtt_ns = life.handshake_rtt_ns
        connection.first_packet = life.first_packet
        connection.syn_retransmits = life.syn_retransmits
        if life.parting is not None:
            flow, connection.closed_ns, connection.closed_packet, connection.was_reset = life.parting
            connection.closed_by = "client" if flow == client.flow else "broker"
        if connection.tls is None and self.is_answered():
            self.services.non_kafka.speaks_kafka(connection.broker)
        self.services.output.report(connection)

    def report_attempt(self) -> None:
        """Reports a connection that ended before its SYN was answered with anything but a RST."""
        if not self.services.attempts:
            return
        client, broker, life = self.client, self.broker, self.life
        last_ns = max(self.last_ns(), life.first_ns)
        names = endpoints(client.flow)
        self.services.output.report(
            ConnectionAttempt(
                *names, life.first_packet, life.first_ns, last_ns, 1 + life.syn_retransmits, broker.fin, client.syn_seq
            )
        )
