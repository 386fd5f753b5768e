"""Following an authentication: which mechanism, who, with what outcome; never with what secret.

Sources: KIP-43 (SaslHandshake), KIP-152 (SaslAuthenticate), RFC 4616 (PLAIN), RFC 5802 (SCRAM).
"""

from __future__ import annotations

import re
from typing import Any

from kwiresniff.model import Body, Connection

SASL_HANDSHAKE = 17
SASL_AUTHENTICATE = 36

_SCRAM_USER = re.compile(rb"(?:^|,)n=([^,]{1,1024})")
_OAUTH_AUTHZID = re.compile(rb"^n,a=([^,]{1,1024}),")


class Sasl:
    """The state of authentication on one connection; ``raw`` while frames are bare tokens without a header."""

    __slots__ = ("_connection", "awaiting_token", "raw", "started_ns")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.raw = False
        self.awaiting_token = 0
        self.started_ns = 0

    def _facts(self) -> dict[str, Any]:
        facts = self._connection.sasl
        if facts is None:
            facts = {"mechanism": None, "principal": None, "outcome": "unknown", "duration_ns": None}
            self._connection.sasl = facts
        return facts

    def begin(self, mechanism: str | None, ns: int) -> None:
        """A SaslHandshake request, or a GSS-API token where one was not expected."""
        facts = self._facts()
        facts["mechanism"] = mechanism
        facts["outcome"] = "unknown"
        self.started_ns = ns

    def handshake_answered(self, error_code: int) -> None:
        """The answer to SaslHandshake; refused, no tokens follow it."""
        if error_code:
            self._facts()["outcome"] = "failed"
            self.raw = False

    def client_token(self, token: bytes) -> None:
        """A token from the client, bare or out of SaslAuthenticate; takes the principal where it can be read."""
        facts = self._facts()
        mechanism = facts["mechanism"] or ""
        name: bytes | None = None
        if mechanism == "PLAIN":
            parts = token.split(b"\x00", 2)
            if len(parts) == 3:
                name = parts[1]
        elif mechanism.startswith("SCRAM-"):
            found = _SCRAM_USER.search(token) if token[:1] in (b"n", b"y", b"p") else None
            name = found[1].replace(b"=2C", b",").replace(b"=3D", b"=") if found else None
        elif mechanism == "OAUTHBEARER":
            found = _OAUTH_AUTHZID.search(token)
            name = found[1] if found else None
        if name is not None and facts["principal"] is None:
            facts["principal"] = name.decode("utf-8", "replace")

    def finished(self, ok: bool, ns: int) -> None:
        """The broker's word on the last token: accepted so far, or refused."""
        facts = self._facts()
        facts["outcome"] = "ok" if ok else "failed"
        if ok and self.started_ns:
            facts["duration_ns"] = ns - self.started_ns

    def authenticate_answered(self, body: Body, ns: int) -> None:
        """A SaslAuthenticate response."""
        self.finished(body.get("error_code", 0) == 0, ns)

    def end_raw(self, ns: int) -> None:
        """A request with a header came after bare tokens, so they were accepted."""
        self.raw = False
        self.finished(True, ns)
