"""Keeps anonymous frames of all exchanges that are seen: which of them are written is known later."""

from __future__ import annotations

from kwiresniff.base.api_keys import SASL_HANDSHAKE
from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.model import Connection, Direction, Exchange, Message
from kwiresniff.packets.anonymous.frames import FrameAnonymizer
from kwiresniff.packets.anonymous.payloads import FrameSpool
from kwiresniff.packets.anonymous.preambles import preamble
from kwiresniff.packets.anonymous.pseudonyms import Pseudonyms

#: Bytes of all that is said before the first message: more are no preambles alone.
MAX_PREAMBLE_BYTES = 16 << 10
#: Bytes of the length in front of each message.
_LENGTH_BYTES = 4


class FrameKeeper:
    """Collects the frames of exchanges in a spool, SASL tokens without headers (KIP-43), and preambles of proxies."""

    def __init__(self, pseudonyms: Pseudonyms, spool: FrameSpool) -> None:
        self._frames = FrameAnonymizer(pseudonyms)
        self._spool = spool
        self._tokens: dict[int, tuple[int, int]] = {}  # by connection: where those of client and broker begin
        self._begun: dict[int, set[Direction]] = {}  # directions behind a preamble that have had a message

    def keep(self, exchange: Exchange) -> None:
        """Keeps both messages. Raises ExportError where there is no room."""
        connection = exchange.connection.id
        tokens = self._tokens.pop(connection, None)
        self._keep(exchange, exchange.request, "request", -1 if tokens is None else tokens[0])
        self._keep(exchange, exchange.response, "response", -1 if tokens is None else tokens[1])
        if exchange.api_key == SASL_HANDSHAKE and exchange.api_version == 0:
            self._tokens[connection] = (_end_of(exchange.request), _end_of(exchange.response))

    def _keep(self, exchange: Exchange, message: Message | None, which: Direction, tokens: int) -> None:
        """Keeps one message, and the tokens in front of it that begin at the sequence number ``tokens``."""
        if message is None:
            return
        connection, from_client = exchange.connection.id, which == "request"
        if exchange.connection.proxied is not None and message.end_seq >= 0:
            self._keep_preamble(exchange.connection, message, which)
        self._spool.add(connection, from_client, message, self._frames.frame(exchange, which))
        if tokens >= 0 and message.end_seq >= 0:
            begin = message.end_seq - message.size_bytes - _LENGTH_BYTES
            self._spool.add_tokens(connection, from_client, tokens, begin)

    def _keep_preamble(self, connection: Connection, message: Message, which: Direction) -> None:
        """Keeps what stands before the first message of a direction."""
        begun = self._begun.setdefault(connection.id, set())
        start = connection.client_iss if which == "request" else connection.broker_iss
        if which in begun or start < 0 or connection.proxied is None:
            return
        begun.add(which)
        size = (message.end_seq - message.size_bytes - _LENGTH_BYTES - start - 1) & SEQ_MASK
        made = preamble(connection.proxied["by"], which == "request", size) if size <= MAX_PREAMBLE_BYTES else b""
        self._spool.add_preamble(connection.id, which == "request", start + 1, made)

    def forget(self, connection: Connection) -> None:
        """Forgets a connection that has ended."""
        self._tokens.pop(connection.id, None)
        self._begun.pop(connection.id, None)


def _end_of(message: Message | None) -> int:
    return -1 if message is None else message.end_seq
