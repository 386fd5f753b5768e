"""The authentication of a connection: which frames are SASL tokens without a header, and what tokens say."""

from __future__ import annotations

from typing import ClassVar

from kwiresniff.base.api_keys import SASL_HANDSHAKE
from kwiresniff.base.header_fields import unpack_correlation_id
from kwiresniff.model import Exchange
from kwiresniff.session import problems
from kwiresniff.session.apis import known_versions
from kwiresniff.session.connection_state import ConnectionState
from kwiresniff.session.frame_search import is_near
from kwiresniff.session.in_flight import Outstanding
from kwiresniff.session.peek import peek_body
from kwiresniff.session.phases import KAFKA, SASL_OPAQUE
from kwiresniff.session.sasl import MAX_TOKEN_FRAME_BYTES, Sasl
from kwiresniff.session.sasl_opaque import OpaqueTokens, is_request, token_mechanism
from kwiresniff.session.services import ConnectionServices


class SaslPhase(ConnectionState):
    """The SASL layer: ``sasl`` once an authentication was seen, ``opaque`` while tokens have no header."""

    STATE: ClassVar[tuple[str, ...]] = ("opaque", "sasl")
    __slots__ = STATE

    def __init__(self, services: ConnectionServices, flow: bytes, other_flow: bytes, packet: int, ns: int) -> None:
        super().__init__(services, flow, other_flow, packet, ns)
        self.sasl: Sasl | None = None
        self.opaque: OpaqueTokens | None = None

    def begin_gssapi(self, ns: int) -> None:
        """Begins an authentication with tokens of GSS-API, without a handshake request."""
        self.sasl = Sasl(self.connection)
        self.sasl.begin("GSSAPI", ns)
        self._expect_opaque_tokens()

    def is_stray_token(self, packet: int, ns: int, size: int, data: bytes, lost: int) -> bool:
        """Whether a frame of an unknown API is a SASL token where a request has to come; it is reported. Brokers take
        bare tokens as the first bytes, and after SaslHandshake v0; after v1 in SaslAuthenticate (KIP-152).
        """
        if self.sasl is not None and (self.connection.sasl or {}).get("outcome") != "unknown":
            return False
        mechanism = token_mechanism(data)
        if not mechanism:
            return False
        wanted = "SaslHandshake" if self.sasl is None else "SaslAuthenticate"
        if self.sasl is None:
            self.sasl = Sasl(self.connection)
            self.sasl.begin(mechanism, ns)
        self._expect_opaque_tokens()
        self.services.output.report(problems.stray_token(self.connection, mechanism, wanted, packet, ns))
        return self.is_token(ns, size, data, lost)

    def _expect_opaque_tokens(self) -> None:
        """Takes frames for SASL tokens without a header, until one is a request."""
        if self.opaque is None:
            self.opaque = OpaqueTokens()
        self.opaque.begin()
        self.phase = SASL_OPAQUE
        self.responses_lost = False

    def _side_ended(self, opaque: OpaqueTokens) -> None:
        """Goes back to the Kafka phase once neither side sends tokens any more."""
        if opaque.is_over():
            self.phase = KAFKA

    def is_token(self, ns: int, size: int, data: bytes, lost: int) -> bool:
        """Whether a frame from the client is a token, and not the first request behind them."""
        opaque, sasl = self.opaque, self.sasl
        if opaque is None or sasl is None or not opaque.from_client:
            return False
        if not is_request(size, data, known_versions()):
            opaque.awaiting += 1
            self.services.opaque_token_bytes += 4 + size - lost
            sasl.client_token(data)
            return True
        opaque.expected = opaque.from_client = False
        sasl.finished(True, ns)
        self.apply_keep_limits()
        self._side_ended(opaque)
        return False

    def is_answer_to_token(
        self, size: int, data: bytes, lost: int, outstanding: Outstanding, first_correlation_id: int | None
    ) -> bool:
        """Whether a broker's frame answers a token rather than a request."""
        opaque = self.opaque
        if opaque is None or not opaque.from_broker:
            return False
        answers = False
        if len(data) >= 4:
            (correlation_id,) = unpack_correlation_id(data)
            answers = correlation_id in outstanding
            # The token or the request that this answers was lost; or not even the handshake is answered.
            if not opaque.awaiting or outstanding:
                answers = answers or is_near(correlation_id, first_correlation_id)
        if not answers and (opaque.expected or opaque.awaiting):
            opaque.awaiting = max(opaque.awaiting - 1, 0)
            self.services.opaque_token_bytes += 4 + size - lost
            return True
        if not opaque.expected:
            opaque.from_broker = False
            self._side_ended(opaque)
        return False

    def has_opaque_answers(self) -> bool:
        """Whether a frame from the broker may be the answer to a token."""
        return self.opaque is not None and self.opaque.from_broker

    def broker_left(self, ns: int) -> None:
        """Handles a connection closed by the broker: before KIP-152 that is how it refuses a token."""
        opaque = self.opaque
        if opaque is not None and opaque.expected and opaque.awaiting and self.sasl is not None:
            opaque.expected = False
            self.sasl.finished(False, ns)

    def sasl_request(self, exchange: Exchange) -> None:
        """Handles a SaslHandshake or SaslAuthenticate request."""
        body = peek_body(exchange, "request") or {}
        sasl = self.sasl
        if sasl is None:
            sasl = self.sasl = Sasl(self.connection)
        if exchange.api_key == SASL_HANDSHAKE:
            assert exchange.request is not None
            sasl.begin(body.get("mechanism"), exchange.request.first_ns)
            for half in (self.client, self.broker):
                half.frames.keep = max(half.frames.keep, MAX_TOKEN_FRAME_BYTES)
            if exchange.api_version == 0:
                self._expect_opaque_tokens()
        else:
            sasl.client_token(body.get("auth_bytes") or b"")

    def sasl_response(self, exchange: Exchange, ns: int) -> None:
        """Handles the response to SaslHandshake or SaslAuthenticate."""
        body = peek_body(exchange, "response")
        if body is None or self.sasl is None:
            return
        if exchange.api_key == SASL_HANDSHAKE:
            if body.get("error_code", 0):
                self.sasl.refused()
                if self.opaque is not None:
                    self.opaque.expected = False
        elif self.sasl.authenticate_answered(body, ns):
            self.apply_keep_limits()
