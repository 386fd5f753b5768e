"""The session of a TLS connection: what its hellos say, and the ciphers that its secrets make.

It holds no secret: they are asked for by the client's random, or the session's id, whenever a cipher is made. Sources:
RFC 8446 (TLS 1.3), RFC 5246 (TLS 1.2), RFC 5077 (session tickets).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from kwiresniff.base.tls_secrets import HANDSHAKE_SECRETS, MASTER, TRAFFIC_SECRETS, TlsSecrets
from kwiresniff.session.tls_cipher import RecordCipher
from kwiresniff.session.tls_handshake import TLS_1_2, TLS_1_3, HandshakeParser
from kwiresniff.session.tls_names import version_name
from kwiresniff.session.tls_suites import suite_of

#: The numbers of keys in TLS 1.3: that of the handshake, that of application data, and its updates. TLS 1.2 has one.
HANDSHAKE_KEY: Final = 0
FIRST_KEY: Final = 1
#: Names of sessions of TLS 1.2 that may be resumed, the newest.
MAX_RESUMPTIONS = 65_536


class TlsSession:
    """A session by ``names`` (client random, session id), ``origin`` if resumed; ``version`` 0 while unknown."""

    STATE: ClassVar[tuple[str, ...]] = ("_mac_behind", "_server_random", "names", "origin", "suite", "version")
    __slots__ = STATE

    def __init__(self) -> None:
        self.names = (b"", b"")
        self.origin = (b"", b"")
        self.version = 0
        self.suite = 0
        self._server_random = b""
        self._mac_behind = False

    def learn(self, client: HandshakeParser, server: HandshakeParser) -> str:
        """Takes what the hellos say; returns why the session cannot be decrypted, or an empty string."""
        self.names = self.origin = client.random, server.session_id
        self.version, self.suite = server.version or 0, server.suite
        self._server_random, self._mac_behind = server.random, server.mac_behind
        if self.version not in (TLS_1_2, TLS_1_3):
            return f"{version_name(self.version)} is not decrypted"
        if suite_of(self.suite) is None:
            return f"the cipher suite {server.cipher} is not decrypted"
        return "its records are compressed" if server.compression and self.version == TLS_1_2 else ""

    def note_resumption(
        self, client: HandshakeParser, server: HandshakeParser, known: dict[bytes, tuple[bytes, bytes]]
    ) -> None:
        """Finds the session of TLS 1.2 that is resumed, and adds the names by which this one may be to ``known``."""
        if not server.sent_certificate:
            self.origin = known.get(client.ticket) or known.get(server.session_id) or self.origin
        for name in (server.ticket, server.session_id):
            if name:
                known[name] = self.origin
        while len(known) > MAX_RESUMPTIONS:
            del known[next(iter(known))]

    def begin_blind(self, client_random: bytes, suite: int) -> None:
        """Takes the session of TLS 1.3 that trials have shown."""
        self.names = self.origin = client_random, b""
        self.version, self.suite = TLS_1_3, suite

    def lacks(self, secrets: TlsSecrets) -> str:
        """The label of the secret that is lacking, empty where none is."""
        if self.version == TLS_1_2:
            return "" if self._master(secrets) else MASTER
        known = [label for label in TRAFFIC_SECRETS if secrets.secret(label, self.names[0])]
        return next((label for label in TRAFFIC_SECRETS if label not in known), "")

    def _master(self, secrets: TlsSecrets) -> bytes | None:
        return secrets.master(*self.names) or secrets.master(*self.origin)

    def ciphers(self, secrets: TlsSecrets) -> tuple[Callable[[int], RecordCipher | None], ...]:
        """Makers of the client's and the server's ciphers by the number of their key."""
        from kwiresniff.session.tls_ciphers import tls12_ciphers, tls13_cipher, updated

        suite = suite_of(self.suite)
        assert suite is not None
        if self.version == TLS_1_2:
            master = self._master(secrets)
            assert master is not None
            pair = tls12_ciphers(suite, master, self.names[0], self._server_random, self._mac_behind)
            return (lambda _: pair[0]), (lambda _: pair[1])

        def make(role: int, key: int) -> RecordCipher | None:
            labels = HANDSHAKE_SECRETS if key == HANDSHAKE_KEY else TRAFFIC_SECRETS
            secret = secrets.secret(labels[role], self.names[0])
            return None if secret is None else tls13_cipher(suite, updated(suite, secret, max(key - FIRST_KEY, 0)))

        return (lambda key: make(0, key)), (lambda key: make(1, key))
