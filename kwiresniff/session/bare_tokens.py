"""SASL tokens that go without a header between requests and responses that have one.

Source: KIP-43 (after SaslHandshake v0 each token is a frame of its own), KIP-152 (which ended that). Before Kafka 0.10
GSS-API tokens begin the connection. Nothing but its looks tells a token from a request.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from kwiresniff.session.readings import READS, read_request
from kwiresniff.stream.footing import STRONG, WEAK, grade_request, is_near
from kwiresniff.stream.half import REQUESTS, RESPONSES, Half

if TYPE_CHECKING:
    from kwiresniff.session.link import Link

#: So much of a frame shows whether it is a request: header and client id.
_FRONT_BYTES = 1100
_correlation_id = Struct(">i").unpack_from


class BareTokens:
    """Takes the frames of a link while tokens are exchanged; ``expected`` is false when there will be none any more.

    ``awaiting`` counts the tokens of the client that the broker has not answered.
    """

    __slots__ = ("_link", "awaiting", "expected")

    def __init__(self, link: Link) -> None:
        self._link = link
        self.expected = False
        self.awaiting = 0

    def begin(self) -> None:
        """From now on frames are tokens."""
        self.expected = True
        self._link.client.hear(self.request)
        self._link.broker.hear(self.response)

    def request(
        self, half: Half, packet: int, ns: int, last_packet: int, last_ns: int, size: int, data: bytes, lost: int
    ) -> None:
        """A frame from the client: a token, or the first request behind them, which shows that they were accepted."""
        link = self._link
        sasl = link.sasl
        assert sasl is not None
        grade = grade_request(size.to_bytes(4, "big") + data[:_FRONT_BYTES], 0, link.analyzer.versions)
        if grade == STRONG or (grade == WEAK and read_request(data) == READS):
            self.expected = False
            sasl.finished(True, ns)
            link.analyzer.keep_as_wanted(link)
            half.hear(link.request, REQUESTS)
            link.request(half, packet, ns, last_packet, last_ns, size, data, lost)
            return
        self.awaiting += 1
        link.analyzer.bare_token_bytes += 4 + size - lost
        sasl.client_token(data)

    def response(
        self, half: Half, packet: int, ns: int, last_packet: int, last_ns: int, size: int, data: bytes, lost: int
    ) -> None:
        """A frame from the broker that answers a token, or a response before or after them."""
        link = self._link
        answers = False
        if len(data) >= 4:
            (correlation_id,) = _correlation_id(data)
            answers = correlation_id in link.pending.by_id
            # The token or the request that this answers was lost; or not even the handshake is answered.
            if not self.awaiting or link.pending.by_id:
                answers = answers or is_near(correlation_id, link.first_correlation_id)
        if not answers and (self.expected or self.awaiting):
            self.awaiting = max(self.awaiting - 1, 0)
            link.analyzer.bare_token_bytes += 4 + size - lost
            return
        if not self.expected:
            half.hear(link.response, RESPONSES)
        link.response(half, packet, ns, last_packet, last_ns, size, data, lost)

    def broker_left(self, ns: int) -> None:
        """The broker closes the connection. Before KIP-152 that is all it says to a token that it refuses."""
        sasl = self._link.sasl
        if self.expected and self.awaiting and sasl is not None:
            self.expected = False
            sasl.finished(False, ns)
