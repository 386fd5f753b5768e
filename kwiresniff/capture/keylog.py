"""TLS key logs, which others write to, now or later. Their format is in ``kwiresniff.base.tls_secrets``."""

from __future__ import annotations

import os
import stat
import time
from typing import Final

from kwiresniff.base.tls_secrets import KEY_LINE, TlsSecrets
from kwiresniff.capture.paths import reason
from kwiresniff.errors import CaptureError

#: How much of a key log is looked at to see that it is one.
_LOOK_BYTES: Final = 64 * 1024
#: Read at once of what has been added, and the longest line.
_PIECE_BYTES: Final = 1 << 20
_MAX_LINE_BYTES: Final = 4096
#: How often it is looked for new lines.
POLL_SECONDS: Final = 0.1


def check_key_log(path: str, *, growing: bool = False) -> None:
    """Raises CaptureError for no key log at ``path``; a ``growing`` one may hold only comments and half a line."""
    try:
        _refuse_pipe(path)
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


class KeyLog:
    """A key log that may grow and may be replaced; its lines are added to ``secrets``."""

    def __init__(self, path: str, secrets: TlsSecrets, *, growing: bool = False) -> None:
        """A ``growing`` one may be missing at first. Raises CaptureError when ``path`` is something else."""
        self._path = path
        self._secrets = secrets
        self._offset = 0
        self._rest = b""
        self._polled = float("-inf")
        self.is_there = True
        secrets.expected = True
        secrets.growing = secrets.growing or growing
        if growing:
            try:
                _refuse_pipe(path)
                with open(path, "rb") as file:
                    self.is_there = bool(file.read(1))
            except FileNotFoundError:
                self.is_there = False
            except (OSError, ValueError) as error:
                raise CaptureError(f"{path}: {reason(error)}") from None
        if self.is_there:
            check_key_log(path, growing=growing)
        self.poll()

    def poll(self) -> None:
        """Reads the lines that have been added, also a last one without its end if it is whole."""
        now = time.monotonic()
        if now - self._polled < POLL_SECONDS:
            return
        self._polled = now
        try:
            while piece := self._read():
                lines, newline, rest = (self._rest + piece).rpartition(b"\n")
                self._rest = rest[:_MAX_LINE_BYTES]
                self._secrets.add(lines + newline)
        except (OSError, ValueError):
            pass  # it may come back

    def finish(self) -> None:
        """Reads what is left, because nothing more will be asked for."""
        self._polled = float("-inf")
        self.poll()
        self._secrets.add(self._rest)

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


def _refuse_pipe(path: str) -> None:
    """Raises CaptureError for a pipe, as of a shell's ``<(...)``: a key log is read again from its beginning."""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        raise CaptureError(f"{path}: is a pipe, and a key log is read more than once; save it to a file")
