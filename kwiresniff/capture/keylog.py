"""TLS key logs, and whether tshark, which decrypts with them, is installed.

Format: SSLKEYLOGFILE (draft-ietf-tls-keylogfile). A line is a label, the client's random (32 bytes) and a secret, both
in hex. For TLS 1.2 there is an older form, which agents in Java write and tshark reads: ``RSA Session-ID:HEX
Master-Key:HEX``, with the id that the server's hello gives the session.
"""

from __future__ import annotations

import re

from kwiresniff.capture.paths import reason
from kwiresniff.capture.pyshark_settings import use_own_settings
from kwiresniff.errors import CaptureError

WITHOUT_TSHARK = "install Wireshark's command-line program tshark to have TLS decrypted"

#: How much of a key log is looked at to see that it is one.
_LOOK_BYTES = 64 * 1024
#: Label and random, or session id.
KEY_LINE = re.compile(
    rb"^(?:([A-Z][A-Z0-9_]*) ([0-9a-fA-F]{16,}) [0-9a-fA-F]{32,}"
    rb"|RSA Session-ID:([0-9a-fA-F]{2,64}) Master-Key:[0-9a-fA-F]{96})\s*$",
    re.MULTILINE,
)

#: Sessions whose keys are remembered, the newest; each is asked for soon after its keys were written.
MAX_SESSIONS = 65_536
#: Read at once of what has been added, and the longest line.
_PIECE_BYTES = 1 << 20
_MAX_LINE_BYTES = 4096

#: What TLS 1.2 needs, alone; and what TLS 1.3 needs, together. The secrets of the handshake are written before those.
_WHOLE, _CLIENT, _SERVER = 3, 1, 2
_LABELS = {b"CLIENT_RANDOM": _WHOLE, b"CLIENT_TRAFFIC_SECRET_0": _CLIENT, b"SERVER_TRAFFIC_SECRET_0": _SERVER}


def check_key_log(path: str, *, growing: bool = False) -> None:
    """Raises CaptureError, one line, when there is no key log at ``path``.

    One that is still ``growing`` may have nothing but comments, which OpenSSL begins with, and a line under way.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(_LOOK_BYTES)
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path}: {reason(error)}") from None
    written = head[: head.rfind(b"\n") + 1] if growing else head
    if growing and all(line.startswith(b"#") or not line.strip() for line in written.splitlines()):
        return
    if not KEY_LINE.search(head):
        raise CaptureError(
            f"{path} is not a TLS key log: it has no lines like 'CLIENT_RANDOM 0123... 4567...', "
            "which clients and brokers write"
        )


def tshark_is_there() -> bool:
    """Whether pyshark finds tshark."""
    from pyshark.tshark.tshark import TSharkNotFoundException, get_process_path

    use_own_settings()
    try:
        get_process_path()
    except TSharkNotFoundException:
        return False
    return True


class GrowingKeyLog:
    """A key log that others write to, now or later: it may not be there yet, and may be begun anew."""

    def __init__(self, path: str) -> None:
        """Raises CaptureError when there is something else at ``path``."""
        self._path = path
        self._offset = 0
        self._rest = b""
        self._found: dict[bytes, int] = {}
        self.is_there = False
        try:
            with open(path, "rb") as file:
                self.is_there = bool(file.read(1))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise CaptureError(f"{path}: {reason(error)}") from None
        if self.is_there:
            check_key_log(path, growing=True)

    def has(self, client_random: bytes, session_id: bytes = b"") -> bool:
        """Whether all keys of the session are in the log, by either name, as far as it was read."""
        return self._found.get(client_random) == _WHOLE or self._found.get(session_id) == _WHOLE

    def poll(self) -> None:
        """Reads the lines that have been added."""
        try:
            while piece := self._read():
                lines, newline, rest = (self._rest + piece).rpartition(b"\n")
                self._rest = rest[:_MAX_LINE_BYTES]
                self._learn(lines + newline)
        except OSError:
            pass  # it may come back

    def _read(self) -> bytes:
        try:
            file = open(self._path, "rb")  # noqa: SIM115  closed below
        except FileNotFoundError:
            self._offset = 0
            return b""
        with file:
            if file.seek(0, 2) < self._offset:
                self._offset, self._rest = 0, b""
            file.seek(self._offset)
            piece = file.read(_PIECE_BYTES)
        self._offset += len(piece)
        return piece

    def _learn(self, lines: bytes) -> None:
        found = self._found
        for label, random, session_id in KEY_LINE.findall(lines):
            kind = _LABELS.get(label)
            if session_id and len(session_id) % 2 == 0:
                found[bytes.fromhex(session_id.decode())] = _WHOLE
            elif kind is not None and len(random) == 64:
                session = bytes.fromhex(random.decode())
                found[session] = found.get(session, 0) | kind
        while len(found) > MAX_SESSIONS:
            del found[next(iter(found))]
