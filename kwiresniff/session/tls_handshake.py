"""What both sides of a TLS connection say in the clear before they encrypt.

Source: RFC 8446 (TLS 1.3: sections 4.1.2, 4.1.3, 4.2.1, 5.1), RFC 5246 (TLS 1.2: sections 6.2.1, 7.4), RFC 6066
(server name, section 3), RFC 7301 (application protocols). All numbers are big-endian. A handshake message inside
records is type, 24-bit length, and may begin and end anywhere in them.
"""

from __future__ import annotations

from hashlib import sha256
from typing import ClassVar

from kwiresniff.base.tls_record import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    CLIENT_HELLO,
    RECORD_HEADER_BYTES,
    SERVER_HELLO,
)
from kwiresniff.session.tls_names import alert_name, cipher_suite_name, version_name
from kwiresniff.session.tls_record_layer import is_record, record_length
from kwiresniff.session.x509 import certificate_names, not_after

#: Bytes of one direction that are read; a server's chain of certificates takes some 10 KiB.
MAX_HANDSHAKE_BYTES = 64 * 1024
#: Application protocols reported of one offer; real ones have two or three.
MAX_PROTOCOLS = 16
#: The longest name of a server or protocol reported: RFC 1035's limit for a host name, RFC 7301's for a protocol.
MAX_NAME_BYTES = 255

NEW_SESSION_TICKET, ENCRYPTED_EXTENSIONS, CERTIFICATE = 4, 8, 11
#: The random of a server's hello that asks for another one of the client (RFC 8446, section 4.1.3).
HELLO_RETRY_RANDOM = sha256(b"HelloRetryRequest").digest()
_SERVER_NAME, _PROTOCOLS, _ENCRYPT_THEN_MAC, _SESSION_TICKET, _EARLY_DATA, _SUPPORTED_VERSIONS = 0, 16, 22, 35, 42, 43
_READ = frozenset((_SERVER_NAME, _PROTOCOLS, _ENCRYPT_THEN_MAC, _SESSION_TICKET, _EARLY_DATA, _SUPPORTED_VERSIONS))
TLS_1_2, TLS_1_3 = 0x0303, 0x0304


class _Misfit(Exception):
    """Bytes that are not what they should be."""


class _Cursor:
    """Reads ``data[at:end]`` from its front; raises _Misfit at its end."""

    __slots__ = ("_at", "_data", "_end")

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self._data = data
        self._at = at
        self._end = end

    def __bool__(self) -> bool:
        return self._at < self._end

    def skip(self, size: int) -> None:
        """Passes over ``size`` bytes."""
        self._at += size
        if self._at > self._end:
            raise _Misfit

    def number(self, size: int) -> int:
        at = self._at
        self._at = after = at + size
        if after > self._end:
            raise _Misfit
        return int.from_bytes(self._data[at:after], "big")

    def skip_vector(self, size: int) -> None:
        """Passes over what follows a length of ``size`` bytes."""
        after = self._at + size
        self._at = after = after + int.from_bytes(self._data[self._at : after], "big")
        if after > self._end:
            raise _Misfit

    def vector(self, size: int) -> _Cursor:
        """The content behind a length of ``size`` bytes."""
        start = self._at + size
        self.skip_vector(size)
        return _Cursor(self._data, start, self._at)

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        start = self._at
        self.skip(size)
        return self._data[start : self._at]

    def rest(self) -> bytes:
        at, self._at = self._at, self._end
        return self._data[at : self._end]


class HandshakeParser:
    """The handshake messages of one direction, as far as they are not encrypted.

    ``done`` once nothing more can be learned from it; ``hello`` once a hello was read. What was not seen stays None:
    ``version`` and ``cipher`` are a server's choice, ``server_name`` and ``offered`` (application protocols) a client's
    wish; ``protocol`` is the one chosen. ``certificate`` has the names in the first certificate sent, empty when there
    was none in it, ``not_after`` until when that holds: None without one, empty where it
    cannot be read. ``clear_bytes`` were read before what is encrypted begins.

    For decryption: ``random`` of the hello, ``session_id`` and ``suite`` of a server's, whether it has ``compression``
    and chose to encrypt first and then to authenticate (``mac_behind``); ``ticket`` names the session ticket that a
    client offers or a server of TLS 1.2 gives, and ``early_data`` says that a client offers some.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "_buffer", "_messages", "_room", "alert", "certificate", "cipher", "clear_bytes", "compression", "done",
        "early_data", "encrypted", "hello", "mac_behind", "not_after", "offered", "protocol", "random", "server_name",
        "session_id", "suite", "ticket", "version",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self) -> None:
        self.done = False
        self.encrypted = False
        self.hello = False
        self.version: int | None = None
        self.cipher: str | None = None
        self.server_name: str | None = None
        self.offered: list[str] | None = None
        self.protocol: str | None = None
        self.certificate: list[str] | None = None
        self.not_after: str | None = None
        self.alert: str | None = None
        self.clear_bytes = 0
        self.random = b""
        self.session_id = b""
        self.suite = 0
        self.compression = False
        self.mac_behind = False
        self.ticket = b""
        self.early_data = False
        self._buffer = b""
        self._messages = b""
        self._room = MAX_HANDSHAKE_BYTES

    def feed(self, data: bytes) -> None:
        """Takes the next bytes in order; bytes that are no handshake end it."""
        if self.done:
            return
        self._room -= len(data)
        if self._buffer:
            data = self._buffer + data
        at = 0
        while not self.done and len(data) - at >= RECORD_HEADER_BYTES:
            if not is_record(data, at):
                self.done = True
                break
            kind = data[at]
            if kind in (CHANGE_CIPHER_SPEC, APPLICATION_DATA):
                self.done = self.encrypted = True
                break
            end = at + RECORD_HEADER_BYTES + record_length(data, at)
            if len(data) < end:
                break
            self._record(kind, data[at + RECORD_HEADER_BYTES : end])
            at = end
        self.clear_bytes += at
        self._buffer = data[at:]
        if self._room <= 0:
            self.done = True
        if self.done:
            self.stop()

    def held_bytes(self) -> int:
        """Bytes of records and messages that are not complete."""
        return len(self._buffer) + len(self._messages)

    def stop(self) -> None:
        """Ends the parsing; what was learned stays."""
        self.done = True
        self._buffer = self._messages = b""

    def _record(self, kind: int, data: bytes) -> None:
        if kind == ALERT:
            if len(data) == 2:
                self.alert = alert_name(data[1])
            self.done = True
            return
        messages = self._messages + data
        at = 0
        while not self.done and len(messages) - at >= 4:
            end = at + 4 + int.from_bytes(messages[at + 1 : at + 4], "big")
            if end > len(messages):
                break
            try:
                self._message(messages[at], _Cursor(messages, at + 4, end))
            except _Misfit:
                self.done = True
            at = end
        self._messages = messages[at:]

    def _message(self, kind: int, body: _Cursor) -> None:
        if kind == CLIENT_HELLO:
            self._client_hello(body)
        elif kind == SERVER_HELLO:
            self._server_hello(body)
        elif kind == CERTIFICATE:
            chain = body.vector(3)
            certificate = chain.vector(3).rest() if chain else b""
            self.certificate = certificate_names(certificate)
            self.not_after = not_after(certificate) or "" if certificate else None
        elif kind == NEW_SESSION_TICKET:
            body.skip(4)  # how long it holds
            self.ticket = ticket_name(body.vector(2).rest())

    def _client_hello(self, body: _Cursor) -> None:
        body.skip(2)  # version
        self.random = body.take(32)
        body.skip_vector(1)  # session id
        body.skip_vector(2)  # cipher suites
        body.skip_vector(1)  # compression methods
        self.hello = True
        for kind, data in _extensions(body):
            if kind == _SERVER_NAME:
                for_host = data.vector(2)
                while for_host and self.server_name is None:
                    host = for_host.number(1) == 0
                    name = for_host.vector(2).rest()
                    self.server_name = _text(name) if host else None
            elif kind == _PROTOCOLS:
                self.offered = _protocols(data)
            elif kind == _SESSION_TICKET:
                self.ticket = ticket_name(data.rest())
            elif kind == _EARLY_DATA:
                self.early_data = True

    def _server_hello(self, body: _Cursor) -> None:
        version = body.number(2)
        random = body.take(32)
        self.session_id = body.vector(1).rest()
        self.suite = body.number(2)
        self.cipher = cipher_suite_name(self.suite)
        self.version = version
        self.random = random
        self.hello = True
        self.compression = body.number(1) != 0
        for kind, data in _extensions(body):
            if kind == _SUPPORTED_VERSIONS:
                self.version = data.number(2)
            elif kind == _PROTOCOLS:
                self.protocol = next(iter(_protocols(data)), None)
            elif kind == _ENCRYPT_THEN_MAC:
                self.mac_behind = True
        # From here on a TLS 1.3 server encrypts; of a HelloRetryRequest all that is reported is final.
        self.done = self.version == TLS_1_3

    @property
    def sent_certificate(self) -> bool:
        """Whether there was a certificate."""
        return self.not_after is not None

    @property
    def asks_again(self) -> bool:
        """Whether a server's hello is a HelloRetryRequest, which refuses early data."""
        return self.random == HELLO_RETRY_RANDOM

    @property
    def version_name(self) -> str | None:
        """The name of the version that the server chose, None before that is known."""
        return None if self.version is None else version_name(self.version)


def _extensions(body: _Cursor) -> list[tuple[int, _Cursor]]:
    """The extensions that are read, when all of them are in order."""
    found = []
    extensions = body.vector(2) if body else body
    while extensions:
        kind = extensions.number(2)
        if kind in _READ:
            found.append((kind, extensions.vector(2)))
        else:
            extensions.skip_vector(2)
    return found


def takes_early_data(messages: bytes) -> bool | None:
    """Whether EncryptedExtensions accept early data; None while cut off (RFC 8446, 4.2.10 and 4.3.1)."""
    end = 4 + int.from_bytes(messages[1:4], "big")
    if messages[:1] != bytes([ENCRYPTED_EXTENSIONS]) or len(messages) < end:
        return None
    try:
        return any(kind == _EARLY_DATA for kind, _ in _extensions(_Cursor(messages, 4, end)))
    except _Misfit:
        return None


def ticket_name(ticket: bytes) -> bytes:
    """A name of 16 bytes for a session ticket, empty for an empty one."""
    return sha256(ticket).digest()[:16] if ticket else b""


def _protocols(data: _Cursor) -> list[str]:
    names: list[str] = []
    protocols = data.vector(2)
    while protocols and len(names) < MAX_PROTOCOLS:
        names.append(_text(protocols.vector(1).rest()))
    return names


def _text(raw: bytes) -> str:
    return raw[:MAX_NAME_BYTES].decode("ascii", "backslashreplace")
