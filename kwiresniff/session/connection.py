"""One connection: its phase, what that means for its frames and gaps, and its end.

Detection and the reading of SASL tokens, TLS hellos and messages are in modules of their own; this one acts on what
they return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.session.attempt import Attempt
from kwiresniff.session.connection_state import UNIDENTIFIED_CONNECTION
from kwiresniff.session.delays import LONG_POLL, under_way
from kwiresniff.session.detection import ProtocolDetector, guess_from_both
from kwiresniff.session.phases import IGNORED, KAFKA, SASL_OPAQUE, TLS, UNIDENTIFIED, Verdict
from kwiresniff.session.proxy_preamble import FIRST_OF_ANY, NONE, PERHAPS, ProxyPreamble, opening
from kwiresniff.session.services import ConnectionServices
from kwiresniff.session.signatures import (
    RESPONSES_ALONE,
    guess_protocol,
    is_certain_response,
    reads_like_responses,
    response_protocol,
)
from kwiresniff.session.tls_phase import TlsPhase
from kwiresniff.stream.frame_handler import LOST_GAP, LOST_MID_STREAM, LOST_UNRECOGNIZED
from kwiresniff.stream.frame_reader import FIRST_BYTES
from kwiresniff.stream.half_stream import HalfStream

if TYPE_CHECKING:
    from mypy_extensions import i64

#: So many bytes that were dropped in one search are one problem. A stream that is never found again is reported
#: while it goes on, and in few lines.
MAX_UNREPORTED_BYTES = 1 << 20


class ConnectionAnalyzer(TlsPhase):
    """The analyzer of one TCP connection, which handles the frames and gaps of its half streams.

    ``carried`` is the connection inside one that is TLS, once there is anything decrypted.
    """

    STATE: ClassVar[tuple[str, ...]] = ("carried", "detector")
    __slots__ = STATE

    def __init__(self, services: ConnectionServices, flow: bytes, other_flow: bytes, packet: int, ns: int) -> None:
        super().__init__(services, flow, other_flow, packet, ns)
        self.carried: ConnectionAnalyzer | None = None

    def start(self) -> None:
        """Makes what reads data, and has it search for the first frame."""
        super().start()
        self.detector = ProtocolDetector(self.half(0).flow, self.services.broker_ports)
        self.client.desynchronize(LOST_MID_STREAM)
        self.broker.desynchronize(LOST_MID_STREAM)

    def on_syn(self, client: HalfStream, ns: int) -> None:
        """A SYN from ``client``: its next byte is the first of the first frame. ``ns`` is -1 when it was not seen."""
        self.set_client(client)
        self.life.opened_by_syn = True
        self.life.syn_ns = ns

    def follow(self, attempt: Attempt) -> None:
        """Takes over what was seen of the attempt that becomes this connection."""
        client = self.client
        self.on_syn(client, attempt.first_ns)
        self.life.syn_retransmits = int(attempt.retransmits)
        client.syn_seq, client.next_seq = attempt.seq, (attempt.seq + 1) & SEQ_MASK
        client.packets, client.last_ns = 1 + attempt.copies, attempt.last_ns
        client.retransmits, client.captured_twice = attempt.copies, attempt.captured_twice
        client.came_soon = attempt.copies - attempt.retransmits

    # -- frames and gaps, by phase ------------------------------------------------------------------------------

    def on_frame(
        self,
        side: i64,
        first_packet: i64,
        first_ns: int,
        last_packet: i64,
        last_ns: int,
        size: i64,
        data: bytes,
        lost: i64,
    ) -> None:
        """Handles a frame from the client or the broker by the phase of the connection; see ``FrameHandler``."""
        if side == self.client_side:
            if self.phase == KAFKA or not self.is_token(first_ns, size, data, lost):
                self.request(first_packet, first_ns, last_packet, last_ns, size, data, lost)
            if self.reordering.held:
                self.handle_reordered(self.reordering.ready(data, last_packet, last_ns, self.in_flight.by_id))
            return
        if self.phase == SASL_OPAQUE and self.is_answer_to_token(
            size, data, lost, self.in_flight.by_id, self.first_correlation_id
        ):
            return
        if self.responses_lost and len(data) >= 4:
            self.evict_overtaken(last_packet, size, data)
            self.responses_lost = False
        self.response(first_packet, first_ns, last_packet, last_ns, size, data, lost)

    def on_gap(self, side: i64, packet: int, ns: int, missing: int, skipped: int, code: str) -> None:
        """Handles bytes that a half stream skipped: they are reported, or only counted until the connection is
        identified.
        """
        if self.tls is not None:
            self.count_encrypted_gap(self.half(side), packet, ns, missing, code)
            return
        self._note_loss(side, ns)
        self.report_gap(self.half(side), packet, ns, missing, skipped, code)

    def on_dropped(self, side: i64, packet: int, ns: int, dropped: int, code: str) -> None:
        """Handles bytes that a half stream has dropped in a search that goes on: they are reported when it ends, or
        when they are many.
        """
        half = self.half(side)
        if self.tls is not None:
            self.count_encrypted_gap(half, packet, ns, 0, code)
            return
        self._note_loss(side, ns)
        half.unreported_bytes += dropped
        if half.unreported_bytes >= MAX_UNREPORTED_BYTES:
            self.report_gap(half, packet, ns, 0, 0, code)

    def _note_loss(self, side: i64, ns: int) -> None:
        """Notes that responses may be among the bytes that ``side`` lost at ``ns``."""
        half = self.half(side)
        if half is self.broker:
            if self.phase == KAFKA or (self.phase == SASL_OPAQUE and not self.has_opaque_answers()):
                self.responses_lost = True
            if not half.frames.synchronized:
                self.channel.lost_ns = ns

    def on_invalid_length(self, side: i64, packet: int, ns: int, first: bytes) -> bool:
        """Whether the broker's very first bytes are another protocol's; if so, that is remembered of the server."""
        if (
            side == self.client_side
            or self.connection is UNIDENTIFIED_CONNECTION
            or self.is_answered()
            or self.reordering.held
        ):
            return False
        answer = response_protocol(first)
        if answer is None:
            return False
        self.services.non_kafka.answered(self.connection, answer, packet, ns)
        return True

    # -- what it is ---------------------------------------------------------------------------------------------

    def on_search(self, side: i64) -> int:
        """The offset of a frame in the bytes that a half stream searches, or -1."""
        half = self.half(side)
        if self._is_in_preamble(half):
            return -1
        if self.phase == UNIDENTIFIED:
            is_client_known = self.life.opened_by_syn or self.preamble is not None
            verdict = self.detector.detect(half, self.client, self.broker, is_client_known)
            return -1 if verdict is None else self._act_on(verdict, half)
        if self.phase == TLS:
            self.inspect_tls(half)
            return -1
        if self.phase == IGNORED:
            return -1
        if half is self.client:
            return self.detector.find_request_start(half)
        return self._find_response(half)

    def _is_in_preamble(self, half: HalfStream) -> bool:
        """Whether all that is under search of ``half`` is of a proxy's preamble, as far as it shows; what was read of
        it is dropped.
        """
        if self.preamble is None:
            if self.phase != UNIDENTIFIED:
                return False
            sender = self.client if self.life.opened_by_syn else half
            data = sender.resync.buffer.data
            if not data or data[0] not in FIRST_OF_ANY or not sender.is_all_there():
                return False
            peer = self.broker if sender is self.client else self.client
            found = opening(data, peer.resync.buffer.data, is_first=self.life.opened_by_syn)
            if found == PERHAPS:
                return not self.detector.ending
            if found == NONE:
                return False
            self.set_client(sender)
            self.preamble = ProxyPreamble()
        for one in (self.client, self.broker):
            self._read_preamble(self.preamble, one)
        return not len(half.resync.buffer) or self.preamble.expects(half is self.client)

    def _read_preamble(self, preamble: ProxyPreamble, half: HalfStream) -> None:
        is_client, buffer = half is self.client, half.resync.buffer
        if not len(buffer) or not preamble.expects(is_client):
            return
        if not half.is_all_there():
            preamble.give_up(is_client)
            return
        if is_client:
            read = preamble.from_client(buffer.data, self.broker.resync.buffer.data)
        else:
            read = preamble.from_broker(buffer.data, *buffer.place(0))
        if read:
            half.pass_preamble(read)

    def _find_response(self, half: HalfStream) -> int:
        if half.starts_at_syn():
            return 0
        buffer = half.resync.buffer
        if (
            self.detector.ending
            and half.bytes - half.preamble_bytes == len(buffer)
            and is_certain_response(buffer.data)
        ):
            packet, ns = buffer.place(0)
            if self.on_invalid_length(half.side, packet, ns, buffer.data[:FIRST_BYTES]):
                half.count_only()
                return -1
        return self.detector.find_response_start(buffer, self.in_flight.by_id, self.first_correlation_id)

    def _act_on(self, verdict: Verdict, half: HalfStream) -> int:
        """Changes phase as the verdict says; returns the offset of a frame in the bytes ``half`` searches, or -1."""
        if verdict.phase == TLS:
            self.begin_tls(verdict)
            return -1
        if verdict.phase == IGNORED:
            self._ignore(verdict.protocol)
            return -1
        client = verdict.client
        self._begin_kafka(client)
        if verdict.phase == SASL_OPAQUE:
            self.begin_gssapi(half.last_ns)
        if client is half:
            return verdict.offset
        client.resync_at(self, verdict.offset)
        return self.on_search(half.side)

    def _begin_kafka(self, client: HalfStream) -> None:
        self.identify(client, "kafka")
        self.phase = KAFKA
        broker = self.broker
        client.frames.min_frame_bytes = broker.frames.min_frame_bytes = 0
        self.report_counted_gap(client)
        self.report_counted_gap(broker)
        is_answered = self.preamble is None or not self.preamble.expects(False)
        if is_answered and not len(broker.resync.buffer) and broker.starts_at_syn():
            broker.resume()  # nothing has come from the broker, so the first that comes is a response

    def _ignore(self, protocol: str) -> None:
        """Counts the connection as ``protocol``, which is not Kafka, and ignores its bytes from now on."""
        self.phase = IGNORED
        self.closed = True
        counts = self._count_as(protocol)
        if self.carrier is None:
            self.client.end()
            self.broker.end()
            self.services.forget(self.client.flow, self.broker.flow, counts)

    def _count_as(self, protocol: str) -> list[int]:
        client, life, preamble = self.client, self.life, self.preamble
        size = client.bytes + self.broker.bytes
        first = life.first_packet, life.first_ns
        if preamble is None:
            return self.services.non_kafka.count(protocol, client.flow, life.opened_by_syn, *first, size)
        has_rest = any(len(half.resync.buffer) for half in (client, self.broker))
        what = preamble.described(protocol, has_rest)
        return self.services.non_kafka.count(what, client.flow, True, *first, size, preamble.dialled())

    # -- TLS ----------------------------------------------------------------------------------------------------

    def decrypted(self, half: HalfStream, packet: int, ns: int, seq: int, buffer: bytes, start: int, end: int) -> None:
        """Take ``buffer[start:end]``, what TLS carries on ``half`` from the byte ``seq`` of its plaintext on."""
        carried = self._carried()
        if not carried.closed:
            one = carried.client if half.flow == carried.client.flow else carried.broker
            one.last_ns = ns
            one.bytes += end - start
            one.feed_anyhow(carried, packet, ns, seq, buffer, start, end, 0)

    def carry(self, half: HalfStream, packet: i64, ns: int, data: bytes, start: i64, end: i64) -> None:
        """Gives ``data[start:end]``, the next that ``half`` carries, to the connection inside."""
        carried = self._carried()
        if not carried.closed:
            one = carried.client if half.flow == carried.client.flow else carried.broker
            one.last_ns = ns
            one.bytes += end - start
            one.take(carried, packet, ns, data, start, end)

    def carry_gap(self, half: HalfStream, packet: i64, ns: int, lost: i64, span: i64, code: str) -> None:
        """Tells the connection inside that ``lost`` bytes are lost, -1 for an unknown part of ``span``; nothing is lost
        where ``span`` is 0: the capture begins in the middle of the stream.
        """
        carried = self._carried()
        if carried.closed:
            return
        one = carried.client if half.flow == carried.client.flow else carried.broker
        if not span:
            one.syn_seq = -1
        else:
            one.lose(carried, packet, ns, lost if lost > 0 else span, code, lost > 0)

    def _carried(self) -> ConnectionAnalyzer:
        """The decrypted connection inside this TLS connection; it begins with the first byte of each direction."""
        if self.carried is not None:
            return self.carried
        carried = self.carried = ConnectionAnalyzer(
            self.services, self.client.flow, self.broker.flow, 0, self.life.first_ns
        )
        carried.carrier = self.connection
        carried.start()
        carried.on_syn(carried.client, -1)
        for half in (carried.client, carried.broker):
            half.syn_seq, half.next_seq = SEQ_MASK, 0
        return carried

    # -- the budget ---------------------------------------------------------------------------------------------

    def held_bytes(self) -> int:
        """Memory of requests that wait for their responses, of responses that wait for their requests, and of TLS."""
        held = int(self.in_flight.bytes) + int(self.reordering.held_bytes)
        if self.decryption is not None:
            held += self.decryption.held_bytes()
        return held if self.tls is None else held + self.tls.held_bytes()

    def release(self) -> None:
        """Releases memory: the older half of the requests, all buffered responses, and TLS hellos."""
        self.release_reordered()
        if self.tls is not None:
            self.tls.release()
        if self.decryption is not None and not self.decryption.is_open:
            self.decryption.drop()
        self._evict_oldest(self.in_flight.bytes // 2)

    # -- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the analysis with the connection or the capture, and reports what was left unfinished."""
        if self.closed:
            return
        if self.started:
            if not self._flush():
                self.services.paused[self] = True
                return
            if self.ends_later():
                return
            for half in (self.client, self.broker, self.broker):
                half.search(self)  # the other side may have shown since the last search what there is to find
            self._search_in_the_end()
            if self.phase == UNIDENTIFIED:
                self._accept_lone_responses()
            self.release_reordered()
        self.closed = True
        if self.preamble is not None and self.preamble.refused is not None and self.phase != UNIDENTIFIED:
            _, packet, ns = self.preamble.refused
            self.services.non_kafka.answered(self.connection, (self.preamble.described("", False), None), packet, ns)
        if self.phase == UNIDENTIFIED:
            self._close_unidentified()
        elif self.phase == TLS:
            self._close_tls()
        elif self.phase != IGNORED:
            self._close_kafka()

    def _flush(self) -> bool:
        """Skips every gap; False when some of what was queued has to wait."""
        for half in (self.client, self.broker):
            if not half.flush(self):
                return False
        return self.carried is None or self.carried._flush()

    def must_pause(self) -> bool:
        """Whether too many events wait to be taken."""
        services = self.services
        if len(services.output.events) < services.most_waiting:
            return False
        services.paused.setdefault(self, False)
        return True

    def resume_delivery(self) -> None:
        """Hand on what had to wait, in the order of the directions: nobody is asked before the client has spoken."""
        if self.client.deliver_queued(self):
            self.broker.deliver_queued(self)

    def _search_in_the_end(self) -> None:
        """Searches once more at the end, when no more bytes will come: what nothing speaks against is accepted now."""
        client, broker = self.client, self.broker
        if not self.detector.believable and not is_certain_response(broker.resync.buffer.data):
            return
        self.detector.ending = True
        for half in (client, broker, broker):
            half.search(self)

    def _accept_lone_responses(self) -> None:
        """Takes what a known broker sent, of whose client there is nothing, for responses where it reads like them."""
        for half, peer in ((self.broker, self.client), (self.client, self.broker)):
            if peer.bytes == 0 and half.bytes:
                offset = self.detector.find_lone_responses(half)
                if offset >= 0:
                    self._begin_kafka(peer)
                    half.resync_at(self, offset)
                return

    def _close_unidentified(self) -> None:
        client, broker = self.client, self.broker
        for half in (client, broker) if self.started else ():
            front = half.resync.buffer.data[:FIRST_BYTES]
            if front and self.phase == UNIDENTIFIED and guess_protocol(front) == "tls":
                self.begin_tls(self.detector.tls(half, client, broker, 0, self.life.opened_by_syn))
        if self.phase == TLS:
            self._close_tls()
            return
        if client.bytes + broker.bytes:
            self._count_unidentified()
        elif self.life.syn_ns >= 0 and broker.syn_seq < 0:
            self.report_attempt()
        client.end()
        broker.end()

    def _count_unidentified(self) -> None:
        """Counts the connection as what its bytes read like, responses of Kafka where one side alone was captured."""
        client, broker = self.client, self.broker
        if not client.bytes or not broker.bytes:
            silent, half = (client, broker) if not client.bytes else (broker, client)
            buffer = half.resync.buffer
            if not silent.packets and reads_like_responses(buffer.data, buffer.starts()):
                non_kafka = self.services.non_kafka
                non_kafka.count(
                    RESPONSES_ALONE, silent.flow, True, self.life.first_packet, self.life.first_ns, half.bytes
                )
                return
        self._count_as(guess_from_both(client, broker))

    def _close_tls(self) -> None:
        self.end_tls()
        self.end_decryption()
        if self.carried is not None:
            self.carried.close()
        self.report_tls(self.carried is not None)

    def _note_unseen(self, half: HalfStream, peer: HalfStream) -> None:
        """Reports bytes at the end of a direction that ``peer`` acknowledges and the capture does not have.

        A direction of which it has nothing at all is no gap, but a capture of one direction.
        """
        if not half.bytes or peer.ack < 0 or half.out_of_window(peer.ack):
            return
        missing = half.distance(peer.ack) - (1 if self.life.parting is not None else 0)  # a FIN counts as a byte
        if missing > 0:
            self.report_gap(half, 0, half.last_ns, missing, 0, LOST_GAP)

    def _close_kafka(self) -> None:
        self._note_unseen(self.broker, self.client)
        self._note_unseen(self.client, self.broker)
        self.report_unfinished()
        for half in (self.client, self.broker):
            if half.resync.buffer.data or half.unreported_bytes:
                self.report_gap(half, 0, half.last_ns, 0, len(half.resync.buffer), LOST_UNRECOGNIZED)
            half.end()
        over_ns = self.life.parting[1] if self.life.parting is not None else self.services.now_ns
        for exchange in self.in_flight.drain():
            if under_way(exchange, over_ns):
                exchange.waiting = LONG_POLL
            self._evict(exchange)
        self.report_end()
