"""TLS made by OpenSSL in memory: the handshake and the records of a client and a broker, as flights of bytes."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Callable
from pathlib import Path

from tests.support.paths import TESTS

DATA = TESTS / "session" / "data"
#: Who speaks: 0 client, 1 broker; and the bytes until the other one has to.
Flight = tuple[int, bytes]


class TlsTalk:
    """A client and a broker, each a real TLS end. ``flights`` is what went over the wire so far.

    ``client`` and ``broker`` are the ends' own objects, to be asked what they agreed on.
    """

    def __init__(
        self,
        *,
        version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
        server_name: str | None = "broker-1.test",
        protocols: tuple[list[str], list[str]] | None = None,
        client_certificate: bool = False,
        trusted: bool = True,
        keylog: Path | None = None,
        suite: str | None = None,
        curve: str | None = None,
        after: TlsTalk | None = None,
        options: int = 0,
    ) -> None:
        """``suite`` is the only one of TLS 1.2, by OpenSSL's name; ``curve`` the only one of the broker, and none for
        which the client sends a key unasked; ``after`` is a talk whose session is resumed.
        """
        ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        session: ssl.SSLSession | None = None
        if after is not None:
            (ours, theirs), session = after.contexts, after.client.session
        self.contexts: tuple[ssl.SSLContext, ssl.SSLContext] = ours, theirs
        theirs.load_cert_chain(DATA / "broker.pem")
        ours.check_hostname = False
        if trusted:
            ours.load_verify_locations(DATA / "broker.pem")
        if client_certificate:
            ours.load_cert_chain(DATA / "client.pem")
            theirs.verify_mode = ssl.CERT_REQUIRED
            theirs.load_verify_locations(DATA / "client.pem")
        if protocols is not None:
            ours.set_alpn_protocols(protocols[0])
            theirs.set_alpn_protocols(protocols[1])
        if keylog is not None:
            ours.keylog_filename = str(keylog)
        if suite is not None:
            for end in (ours, theirs):
                end.set_ciphers(f"{suite}:@SECLEVEL=0")
        ours.options |= options
        if curve is not None:
            theirs.set_ecdh_curve(curve)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # TLS 1.1 is what some tests are about
            ours.minimum_version = ours.maximum_version = version
            theirs.minimum_version = version
        self._to_client, self._to_broker = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = self._to_client, self._to_broker
        self.client: ssl.SSLObject = ours.wrap_bio(*ends, server_hostname=server_name, session=session)
        self.broker = theirs.wrap_bio(self._to_broker, self._to_client, server_side=True)
        self.flights: list[Flight] = []

    def shake(self) -> TlsTalk:
        """The handshake, to its end or to the first refusal."""
        done = [False, False]
        while not all(done):
            for side, end in enumerate((self.client, self.broker)):
                if not done[side]:
                    done[side] = self._step(side, end.do_handshake)
        return self

    def up(self, data: bytes) -> TlsTalk:
        self._step(0, lambda: self.client.write(data))
        assert _read(self.broker, len(data)) == data
        return self

    def down(self, data: bytes) -> TlsTalk:
        self._step(1, lambda: self.broker.write(data))
        assert _read(self.client, len(data)) == data
        return self

    def _step(self, side: int, action: Callable[[], object]) -> bool:
        outgoing = self._to_client if side else self._to_broker
        incoming = self._to_broker if side else self._to_client
        ended = True
        # What is written into a memory BIO is read by the other end: it has to be noted on the way.
        before = outgoing.pending
        try:
            action()
        except ssl.SSLWantReadError:
            ended = False
        except ssl.SSLError:
            incoming.read()
        flight = outgoing.read()
        outgoing.write(flight)
        if flight[before:]:
            self.flights.append((side, flight[before:]))
        return ended


def _read(end: ssl.SSLObject, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += end.read(size - len(data))
    return data
