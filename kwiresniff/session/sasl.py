"""Authentications of a connection: mechanism, principal, outcome and duration, never a secret.

A connection authenticates once or, when its session is limited (KIP-368), again and again. Sources: KIP-43
(SaslHandshake), KIP-152 (SaslAuthenticate), KIP-368 (re-authentication), KIP-48 (delegation tokens).
"""

from __future__ import annotations

from typing import Any, ClassVar

from kwiresniff.model import Body, Connection
from kwiresniff.session.sasl_tokens import read_token

#: Authentications reported of one connection: the first ones and the last. A session of an hour is renewed every hour.
MAX_AUTHENTICATIONS = 32
#: Characters of names in all authentications; beyond it the last takes the place of the one before.
MAX_AUTHENTICATION_CHARACTERS = 8192
#: Characters reported of a mechanism's name, which has 20 characters at the most (RFC 4422).
MAX_MECHANISM_CHARACTERS = 64
#: What is kept of a frame while tokens are exchanged. Kafka refuses longer ones (``sasl.server.max.receive.size``).
MAX_TOKEN_FRAME_BYTES = 512 << 10
#: What is known of an authentication that begins, in the order in which it is reported.
_UNKNOWN: dict[str, Any] = {
    "timestamp_ns": None, "mechanism": None, "principal": None, "outcome": "unknown", "duration_ns": None,
    "session_lifetime_ms": None, "delegation_token_id": None, "token_subject": None, "token_expiry_ns": None,
    "service": None,
}  # fmt: skip


class Sasl:
    """The state of authentication on one connection."""

    STATE: ClassVar[tuple[str, ...]] = ("_characters", "_connection", "started_ns")
    __slots__ = STATE

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Of names in all authentications but the last, which may still get some.
        self._characters = sum(map(_characters, (connection.sasl or {}).get("authentications", ())[:-1]))
        self.started_ns = 0

    def _facts(self) -> dict[str, Any]:
        """The facts of the authentication under way."""
        authentications = (self._connection.sasl or self.begin(None, 0))["authentications"]
        facts: dict[str, Any] = authentications[-1]
        return facts

    def _add(self, found: dict[str, Any]) -> None:
        """Adds facts to the authentication under way and to the connection's ``sasl``."""
        self._facts().update(found)
        assert self._connection.sasl is not None
        self._connection.sasl.update(found)

    def begin(self, mechanism: str | None, ns: int) -> dict[str, Any]:
        """Begins an authentication, at ``ns`` or 0 if its begin was not seen; returns the connection's ``sasl``."""
        begun = _UNKNOWN.copy()
        if mechanism is not None:
            begun["mechanism"] = mechanism[:MAX_MECHANISM_CHARACTERS]
        sasl = self._connection.sasl
        if sasl is None:
            sasl = {**begun, "authentication_count": 0, "authentications": []}
            del sasl["timestamp_ns"]
            self._connection.sasl = sasl
        else:
            sasl |= begun
            del sasl["timestamp_ns"]
        begun["timestamp_ns"] = ns or None
        sasl["authentication_count"] += 1
        authentications = sasl["authentications"]
        if authentications:
            characters = self._characters + _characters(authentications[-1])
            if len(authentications) == MAX_AUTHENTICATIONS or characters > MAX_AUTHENTICATION_CHARACTERS:
                authentications.pop()
            else:
                self._characters = characters
        authentications.append(begun)
        self.started_ns = ns
        return sasl

    def refused(self) -> None:
        """Notes that SaslHandshake was answered with an error: no tokens follow it."""
        self._add({"outcome": "failed"})

    def client_token(self, token: bytes) -> None:
        """Takes from a client's token, bare or out of SaslAuthenticate, the facts that it has in the clear."""
        facts = self._facts()
        identity = read_token(facts["mechanism"] or "", token)
        if identity and all(facts[name] is None for name in identity):
            self._add(identity)

    def finished(self, ok: bool, ns: int) -> None:
        """Notes that the broker has accepted the last token, or refused it, at ``ns``."""
        found: dict[str, Any] = {"outcome": "ok" if ok else "failed"}
        if self.started_ns:
            found["duration_ns"] = max(ns - self.started_ns, 0)
        self._add(found)

    def authenticate_answered(self, body: Body, ns: int) -> bool:
        """Takes in a SaslAuthenticate response; returns whether it was the last one."""
        facts = self._facts()
        if body.get("error_code", 0):
            self.finished(False, ns)
            return True
        # The mechanism's last word: SCRAM's is the server's signature, the others' is nothing.
        token, mechanism = body.get("auth_bytes") or b"", facts["mechanism"] or ""
        last = not token or token.startswith(b"v=") if mechanism.startswith("SCRAM-") else not token
        if not last and mechanism != "PLAIN":
            return False
        self._add({"session_lifetime_ms": body.get("session_lifetime_ms") or None})
        self.finished(True, ns)
        return True


def _characters(authentication: dict[str, Any]) -> int:
    """The characters of the names in what is known of an authentication."""
    return sum([len(fact) for fact in authentication.values() if isinstance(fact, str)])
