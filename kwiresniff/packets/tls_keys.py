"""The lines of TLS key logs that connections use: those with the random of their client hello, or their session's id.

The format is told in ``kwiresniff.capture.keylog``.
"""

from __future__ import annotations

from kwiresniff.base.tls_record import RECORD_HEADER_BYTES
from kwiresniff.capture.keylog import KEY_LINE
from kwiresniff.session.tls_record_layer import hello_sender

#: Memory of key logs, of the lines alone.
MAX_KEY_BYTES = 16 << 20
#: In a hello: its type, length and version stand before the random.
_RANDOM = RECORD_HEADER_BYTES + 6
_RANDOM_BYTES = 32


class KeyLines:
    """Lines of key logs by what names their session."""

    def __init__(self) -> None:
        self._lines: dict[bytes, list[bytes]] = {}
        self._size = 0

    def add(self, log: bytes) -> None:
        """Adds the lines of a key log, as far as there is room."""
        for match in KEY_LINE.finditer(log):
            line = b" ".join(match[0].split())
            name = (match[2] or match[3]).lower()
            known = self._lines.setdefault(name, [])
            if line not in known and self._size + len(line) <= MAX_KEY_BYTES:
                known.append(line)
                self._size += len(line)

    def take(self, buffer: bytes, start: int, end: int) -> bytes:
        """The lines that belong to the hello at the start of a segment's data, each given once; empty for none."""
        if not self._lines or not hello_sender(buffer[start:end], 0):
            return b""
        name = buffer[start + _RANDOM : start + _RANDOM + _RANDOM_BYTES]
        found = self._lines.pop(name.hex().encode(), [])
        at = start + _RANDOM + _RANDOM_BYTES
        size = buffer[at] if at < end else 0
        found += self._lines.pop(buffer[at + 1 : at + 1 + size].hex().encode(), [])
        return b"".join(line + b"\n" for line in found)
