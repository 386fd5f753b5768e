"""The interface of what opens TLS records, without what it is made of (``tls_ciphers``)."""

from __future__ import annotations


class RecordCipher:
    """The cipher of one direction under one key.

    ``overhead`` are the bytes that it adds to application data, -1 where that depends on the data. ``counts`` says that
    the first 8 bytes of a record are a nonce that most senders count up.
    """

    def __init__(self, overhead: int, counts: bool) -> None:
        self.overhead = overhead
        self.counts = counts

    def open(self, number: int, header: bytes, body: bytes) -> bytes | None:
        """The application data of record ``number``; empty for another type, None when it does not open."""
        raise NotImplementedError

    def handshake(self, number: int, header: bytes, body: bytes) -> bytes:
        """The handshake messages in such a record of TLS 1.3, empty where there are none."""
        return b""
