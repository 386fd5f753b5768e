"""What a connection does while it is TLS: its handshakes are read, what is encrypted is decrypted or counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kwiresniff.session import problems
from kwiresniff.session.kafka_messages import KafkaMessages
from kwiresniff.session.phases import TLS, Verdict
from kwiresniff.session.services import MAX_ALL_WAITING_BYTES, MAX_ENDING, ConnectionServices
from kwiresniff.session.tls_decryption import Plaintext, TlsDecryption
from kwiresniff.session.tls_inspection import TlsInspection
from kwiresniff.stream.half_stream import HalfStream

if TYPE_CHECKING:
    from mypy_extensions import i64


class TlsPhase(KafkaMessages):
    """The TLS layer: ``tls`` is set while it is TLS, ``decryption`` where secrets are expected."""

    STATE: ClassVar[tuple[str, ...]] = ("decryption", "tls")
    __slots__ = STATE

    def __init__(self, services: ConnectionServices, flow: bytes, other_flow: bytes, packet: int, ns: int) -> None:
        super().__init__(services, flow, other_flow, packet, ns)
        self.tls: TlsInspection | None = None
        self.decryption: TlsDecryption | None = None

    def begin_tls(self, verdict: Verdict) -> None:
        """Goes into the phase; the first records begin where the verdict says."""
        self.identify(verdict.client, "tls")
        self.phase = TLS
        self.tls = tls = TlsInspection()
        if self.services.tls_secrets.expected and self.carrier is None:
            self.decryption = TlsDecryption(self.services, int(self.client_side), tls.parsers)
        for half in (self.client, self.broker):
            buffer = half.resync.buffer
            if half is verdict.shown:
                buffer.pass_over(verdict.offset)
            if len(buffer):
                self.on_search(half.side)  # a proxy's answer may stand before the records

    def inspect_tls(self, half: HalfStream) -> None:
        """Reads TLS handshakes; behind them the half stream counts bytes, or hands them on to be decrypted."""
        buffer = half.resync.buffer
        if self.decryption is None:
            done = self._read_hello(half, buffer.data)
            half.budget.held += len(buffer)
            buffer.clear()
            if done:
                half.count_only()
            return
        data, segments = buffer.data, buffer.segments(0)
        half.unframe()
        for start, end, packet, ns, _ in segments:
            self.on_bytes(half.side, packet, ns, data, start, end)

    def _read_hello(self, half: HalfStream, data: bytes) -> bool:
        """Reads the next bytes of a handshake; whether all that follows is encrypted."""
        tls = self.tls
        assert tls is not None
        done = tls.feed(0 if half is self.client else 1, data)
        if done and half is self.client:
            tls.answered_bytes = self.broker.sent_bytes()
        return done

    # -- decryption ---------------------------------------------------------------------------------------------

    def on_bytes(self, side: i64, packet: i64, ns: int, buffer: bytes, start: i64, end: i64) -> None:
        """Decrypts the next bytes of a side."""
        tls, decryption = self.tls, self.decryption
        if tls is None or decryption is None:
            return
        half = self.half(side)
        half.budget.held += end - start
        if not tls.parsers[0 if half is self.client else 1].done:
            self._read_hello(half, buffer[start:end])
        was_open = decryption.is_open
        self._carry(decryption.feed(int(side), packet, ns, buffer, start, end))
        if not was_open or decryption.refused:
            self._await_secrets()

    def look_for_secrets(self) -> None:
        """Decrypts what waits, if its secrets have come; a connection that only waited for them ends."""
        if self.decryption is not None:
            self._carry(self.decryption.look())
            self._await_secrets()
            if self in self.services.tls_ending:
                self.close()

    def ends_later(self) -> bool:
        """Whether a connection that has ended still waits for its secrets."""
        services, decryption = self.services, self.decryption
        if decryption is None:
            return False
        may_wait = self in services.tls_ending or len(services.tls_ending) < MAX_ENDING
        if may_wait and services.waits_at_end and services.tls_secrets.growing and decryption.waiting_bytes:
            services.tls_ending.setdefault(self, services.now_ns)
            return True
        services.tls_ending.pop(self, None)
        return False

    def close(self) -> None:
        """Ends the analysis."""
        raise NotImplementedError

    def _await_secrets(self) -> None:
        """Has the connection wait for its secrets while it has to; where it is refused, both sides only count."""
        services, decryption = self.services, self.decryption
        assert decryption is not None
        if decryption.refused or decryption.is_open:
            services.tls_waiting.pop(self, None)
            for half in (self.client, self.broker) if decryption.refused else ():
                if half.unframed:
                    half.count_only()
            return
        services.tls_waiting[self] = True
        while services.tls_waiting_bytes > MAX_ALL_WAITING_BYTES and services.tls_waiting:
            longest = next(iter(services.tls_waiting))
            del services.tls_waiting[longest]
            assert isinstance(longest, TlsPhase) and longest.decryption is not None
            longest.decryption.drop()

    def _carry(self, found: list[Plaintext]) -> None:
        """Gives what was decrypted to the connection inside."""
        decryption = self.decryption
        assert decryption is not None
        if found and decryption.client_side != self.client_side:
            self.set_client(self.half(decryption.client_side))
            self.connection.client, self.connection.broker = self.connection.broker, self.connection.client
        for one in found:
            half, record, data = self.half(one.side), one.record, one.data
            if one.lost:
                half.unreported_gap = None  # the connection inside reports it
                packet, ns = (record.packet, record.ns) if record is not None else (0, half.last_ns)
                self.carry_gap(half, packet, ns, one.lost, one.span, one.code)
            if record is None or not data:
                continue
            done: i64 = 0
            if record.first_packet != record.packet:
                done = 1
                self.carry(half, record.first_packet, record.first_ns, data, 0, 1)
            self.carry(half, record.packet, record.ns, data, done, len(data))

    def carry(self, half: HalfStream, packet: i64, ns: int, data: bytes, start: i64, end: i64) -> None:
        """Gives ``data[start:end]`` of a half stream to the connection inside."""
        raise NotImplementedError

    def carry_gap(self, half: HalfStream, packet: i64, ns: int, lost: i64, span: i64, code: str) -> None:
        """Tells the connection inside that ``lost`` bytes are lost, -1 for an unknown part of ``span``."""
        raise NotImplementedError

    def end_decryption(self) -> None:
        """Ends the decryption; why there is none, or not of all, is reported."""
        decryption = self.decryption
        if decryption is None:
            return
        self._carry(decryption.end())
        self.services.tls_waiting.pop(self, None)
        reason = decryption.reason()
        if reason and self.services.tls_secrets.changes:
            self.services.output.report(problems.not_decrypted(self.connection, reason, self.life.first_ns))

    # -- what is reported ---------------------------------------------------------------------------------------

    def count_encrypted_gap(self, half: HalfStream, packet: int, ns: int, missing: int, code: str) -> None:
        """Counts ``missing`` bytes; the gaps of a direction are reported as one at its end, since a snap length makes
        many.
        """
        assert self.tls is not None
        half.note_gap(packet, ns, missing, code)
        decryption = self.decryption
        if decryption is not None and not decryption.refused:
            if not half.unframed:
                half.unframe()
            self._carry(decryption.gap(int(half.side), packet, ns, missing, code))
        self.tls.gap(0 if half is self.client else 1)
        if not half.frames.synchronized:
            half.count_only()

    def end_tls(self) -> None:
        """Ends both half streams; a client's hello to which the server said nothing is noted."""
        client, broker, tls, life = self.client, self.broker, self.tls, self.life
        assert tls is not None
        client.end()
        broker.end()
        silent = broker.bytes == 0 and broker.unreported_gap is None and broker.syn_seq >= 0
        if silent and tls.has_client_hello() and life.parting is not None and life.was_ended_by(broker.flow):
            self.services.non_kafka.unanswered_hello(self.connection, life.parting[2], life.parting[1])

    def report_tls(self, decrypted: bool) -> None:
        """Reports the connection with what its handshakes say; ``decrypted``: what it carries could be read."""
        client, broker, tls, life = self.client, self.broker, self.tls, self.life
        assert tls is not None
        tls.release()
        whole = client.unreported_gap is None and client.syn_seq >= 0 and broker.unreported_gap is None
        closed_by = "broker" if life.was_ended_by(broker.flow) else "client" if life.was_ended_by(client.flow) else ""
        sent: tuple[int, int] | None = None
        if whole and life.parting is not None:
            sent = client.sent_bytes(), broker.sent_bytes()
        self.connection.tls = tls.summary(decrypted, sent, closed_by)
        if self.decryption is not None and self.decryption.is_open:
            self.connection.tls_session = self.decryption.session.names
        for half in (client, broker):
            self.report_counted_gap(half)
        self.report_end()
