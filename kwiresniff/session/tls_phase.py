"""What a connection does while it is TLS: its handshakes are read, what is encrypted is counted."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar

from kwiresniff.session.kafka_messages import KafkaMessages
from kwiresniff.session.phases import TLS, Verdict
from kwiresniff.session.services import ConnectionServices
from kwiresniff.session.tls_inspection import TlsInspection
from kwiresniff.stream.half_stream import HalfStream

if TYPE_CHECKING:
    from kwiresniff.session.tls_inspection import TlsInspection


@cache
def _inspection() -> type[TlsInspection]:
    """What inspects a connection, imported with the first one: it brings tables that few captures need."""
    return TlsInspection


class TlsPhase(KafkaMessages):
    """One connection whose bytes may be TLS records. ``tls`` is set while it is TLS."""

    STATE: ClassVar[tuple[str, ...]] = ("tls",)
    __slots__ = STATE

    def __init__(self, services: ConnectionServices, flow: bytes, other_flow: bytes, packet: int, ns: int) -> None:
        super().__init__(services, flow, other_flow, packet, ns)
        self.tls: TlsInspection | None = None

    def begin_tls(self, verdict: Verdict) -> None:
        """Goes into the phase; the first records begin where the verdict says."""
        self.identify(verdict.client, "tls")
        self.phase = TLS
        self.tls = _inspection()()
        for half in (self.client, self.broker):
            buffer = half.resync.buffer
            if half is verdict.shown:
                buffer.skip(verdict.offset)
            if len(buffer):
                self.on_search(half.side)  # a proxy's answer may stand before the records

    def inspect_tls(self, half: HalfStream) -> None:
        """Reads what has come of TLS handshakes; once all that follows is encrypted, the half stream only counts."""
        tls, buffer = self.tls, half.resync.buffer
        assert tls is not None
        done = tls.feed(0 if half is self.client else 1, buffer.data)
        half.budget.held += len(buffer)
        buffer.clear()
        if done:
            if half is self.client:
                tls.answered_bytes = self.broker.bytes - self.broker.preamble_bytes
            half.count_only()

    def count_encrypted_gap(self, half: HalfStream, packet: int, ns: int, missing: int, code: str) -> None:
        """Counts ``missing`` bytes, which the capture does not have.

        All gaps of a direction are reported as one in the end: there are no messages here to be distinguished, and
        with a snap length as many gaps.
        """
        assert self.tls is not None
        half.note_gap(packet, ns, missing, code)
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
            sent = int(client.bytes - client.preamble_bytes), int(broker.bytes - broker.preamble_bytes)
        self.connection.tls = tls.summary(decrypted, sent, closed_by)
        for half in (client, broker):
            self.report_counted_gap(half)
        self.report_end()
