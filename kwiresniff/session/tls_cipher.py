"""The interface of what opens TLS records, without what it is made of (``tls_ciphers``)."""

from __future__ import annotations


class RecordCipher:
    """The cipher of one direction: ``overhead`` bytes added to data, or -1; ``counts`` if records begin with an 8-byte
    nonce, which most senders count up.
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
