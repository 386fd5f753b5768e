"""Inspection of TLS connections: their handshakes are read, the rest is counted.

What is encrypted is decrypted elsewhere (``tls_decryption``), by what the parsers have read.
"""

from __future__ import annotations

from typing import Any, ClassVar

from kwiresniff.session.tls_handshake import HandshakeParser

#: The shortest Finished in a record of TLS 1.3: five bytes, a message of 4 + 32, one for its type, a tag of 16.
FINISHED_BYTES = 58
#: What is reported of an alert that cannot be read.
ENCRYPTED = "encrypted"


class TlsInspection:
    """The unencrypted beginnings, client's ``direction`` 0; ``answered_bytes`` came before the client encrypted."""

    STATE: ClassVar[tuple[str, ...]] = ("answered_bytes", "parsers")
    __slots__ = STATE

    def __init__(self) -> None:
        self.parsers = (HandshakeParser(), HandshakeParser())
        self.answered_bytes = 0

    def feed(self, direction: int, data: bytes) -> bool:
        """Takes the next bytes of a direction; True when all that follows is encrypted."""
        parser = self.parsers[direction]
        parser.feed(data)
        return parser.done

    def gap(self, direction: int) -> None:
        """Bytes of a direction are missing: no records can be found behind a gap; what was read before it stands."""
        self.parsers[direction].done = True

    def has_client_hello(self) -> bool:
        """Whether the client's hello was read."""
        return self.parsers[0].hello

    def held_bytes(self) -> int:
        """Memory of hellos that are not complete."""
        return sum(parser.held_bytes() for parser in self.parsers)

    def release(self) -> None:
        """Releases incomplete hellos."""
        for parser in self.parsers:
            parser.stop()

    def summary(self, decrypted: bool, sent: tuple[int, int] | None, closed_by: str) -> dict[str, Any]:
        """The connection's ``tls`` member; ``sent`` are the bytes of a fully seen connection, ``closed_by`` its end."""
        client, server = self.parsers
        certified: bool | None = None
        if client.sent_certificate:
            certified = True
        elif client.encrypted and server.certificate is not None:
            certified = False  # all of a TLS 1.2 handshake was seen, and no certificate of the client's in it
        return {
            "version": server.version_name,
            "cipher": server.cipher,
            "server_name": client.server_name,
            "alpn": server.protocol,
            "alpn_offered": client.offered,
            "client_certificate": certified,
            "client_certificate_names": client.certificate if certified else None,
            "server_certificate_names": server.certificate,
            "server_certificate_not_after": server.not_after or None,
            "alert": _alert(client, server) or self._encrypted_alert(sent, closed_by == "broker"),
            "abandoned": closed_by == "client" and self._is_abandoned(sent),
            "decrypted": decrypted,
        }

    def _encrypted_alert(self, sent: tuple[int, int] | None, closed_by_server: bool) -> dict[str, Any] | None:
        """In TLS 1.3 alerts are encrypted: one is all that fits into what a client sent that is no Finished, and what a
        server sent after the client's that is no session ticket."""
        client, server = self.parsers
        if sent is None or not client.encrypted or server.version_name != "TLSv1.3":
            return None
        if 0 < sent[0] - client.clear_bytes < FINISHED_BYTES:
            return {"sender": "client", "description": ENCRYPTED}
        if closed_by_server and 0 < sent[1] - self.answered_bytes < FINISHED_BYTES:
            return {"sender": "broker", "description": ENCRYPTED}
        return None

    def _is_abandoned(self, sent: tuple[int, int] | None) -> bool:
        """Whether a client had the server's certificate and sent nothing more, not even an alert."""
        client, server = self.parsers
        if sent is None or client.alert or not client.hello or client.clear_bytes != sent[0]:
            return False
        certified = server.version_name == "TLSv1.3" and sent[1] - server.clear_bytes > FINISHED_BYTES
        return certified or server.sent_certificate


def _alert(client: HandshakeParser, server: HandshakeParser) -> dict[str, Any] | None:
    for sender, parser in (("client", client), ("broker", server)):
        if parser.alert is not None:
            return {"sender": sender, "description": parser.alert}
    return None
