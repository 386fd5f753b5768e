"""The secrets of TLS sessions, by the names that sessions have on the wire.

Format: SSLKEYLOGFILE (draft-ietf-tls-keylogfile). A line is a label, the client's random (32 bytes) and a secret, both
in hex. For TLS 1.2 there is an older form, which agents in Java write: ``RSA Session-ID:HEX Master-Key:HEX``, with the
id that the server's hello gives the session.
"""

from __future__ import annotations

import re
from typing import Final

#: Sessions whose secrets are remembered, the newest: some 800 bytes each.
MAX_SESSIONS = 262_144
#: A secret is an output of the suite's hash, or the master secret of TLS 1.2 (48 bytes).
SECRET_BYTES: Final = frozenset((32, 48))

#: Labels. Of TLS 1.2: the master secret, by the client's random or by the session's id. Of TLS 1.3: by direction,
#: client's first, the secrets of the handshake and those of application data.
MASTER: Final = "CLIENT_RANDOM"
MASTER_BY_ID: Final = "RSA Session-ID"
HANDSHAKE_SECRETS: Final = ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET")
TRAFFIC_SECRETS: Final = ("CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0")

_LABELS: Final = {label.encode(): label for label in (MASTER, *HANDSHAKE_SECRETS, *TRAFFIC_SECRETS)}
KEY_LINE: Final = re.compile(
    rb"^(?:([A-Z][A-Z0-9_]*) ([0-9a-fA-F]{64}) ((?:[0-9a-fA-F]{2}){32,64})"
    rb"|RSA Session-ID:((?:[0-9a-fA-F]{2}){1,32}) Master-Key:([0-9a-fA-F]{96}))[ \t\r]*$",
    re.MULTILINE,
)


class TlsSecrets:
    """Secrets by session, its client random or its id. ``expected``: some are or may come; ``growing``: even after the
    connection's end; ``changes`` counts pieces of key logs with secrets.
    """

    def __init__(self) -> None:
        self.expected = False
        self.growing = False
        self.changes = 0
        self._sessions: dict[bytes, dict[str, bytes]] = {}

    def __repr__(self) -> str:
        return f"<TlsSecrets of {len(self._sessions)} sessions>"

    def add(self, lines: bytes) -> bool:
        """Takes whole lines of a key log; whether there were secrets in them."""
        sessions = self._sessions
        found = False
        for label, random, secret, session_id, master in KEY_LINE.findall(lines):
            name = _LABELS.get(label, "")
            if session_id:
                name, random, secret = MASTER_BY_ID, session_id, master
            if not name or len(secret) // 2 not in SECRET_BYTES:
                continue
            found = True
            session = bytes.fromhex(random.decode())
            sessions.setdefault(session, {})[name] = bytes.fromhex(secret.decode())
            if len(sessions) > MAX_SESSIONS:
                del sessions[next(iter(sessions))]
        self.changes += found
        return found

    def secret(self, label: str, session: bytes) -> bytes | None:
        """The secret of a session by its ``label``, or None."""
        known = self._sessions.get(session)
        return None if known is None else known.get(label)

    def master(self, client_random: bytes, session_id: bytes) -> bytes | None:
        """The master secret of a session of TLS 1.2, by either of its names, or None."""
        return self.secret(MASTER, client_random) or self.secret(MASTER_BY_ID, session_id)

    def randoms(self) -> list[bytes]:
        """The client's randoms of all sessions of TLS 1.3 with both secrets of application data, the newest first."""
        both = set(TRAFFIC_SECRETS)
        return [session for session, known in reversed(self._sessions.items()) if both <= known.keys()]

    def lines(self, client_random: bytes, session_id: bytes = b"") -> list[str]:
        """The lines of a key log that decrypt one session, of those that were added."""
        found = [
            f"{label} {client_random.hex()} {secret.hex()}"
            for label, secret in self._sessions.get(client_random, {}).items()
            if label != MASTER_BY_ID
        ]
        master = self.secret(MASTER_BY_ID, session_id)
        if master is not None:
            found.append(f"{MASTER_BY_ID}:{session_id.hex()} Master-Key:{master.hex()}")
        return found
