"""Writes captured packets into a folder that others read meanwhile; see ``kwiresniff.capture.spooled``."""

from __future__ import annotations

import fcntl
import os
from typing import IO, Final

from kwiresniff import __version__
from kwiresniff.base.address_names import AddressNames
from kwiresniff.capture.live.packet_comments import PacketComments
from kwiresniff.capture.packet_formats import PcapngFormat
from kwiresniff.capture.paths import reason
from kwiresniff.capture.spooled import HEADER, LOCK, piece_name
from kwiresniff.errors import CaptureError

#: Bytes of packets that are kept for the screen of a live capture: minutes of a busy broker, hours of a quiet one.
MAX_SPOOL_BYTES: Final = 512 << 20
#: Pieces in which they are kept: one at a time is given up.
PIECES: Final = 8


class SpoolWriter:
    """Keeps the newest packets, up to ``most_bytes``, in private files; ``given_up`` counts those deleted."""

    full: Final = False

    def __init__(
        self, folder: str, link_type: int, snap_bytes: int, names: AddressNames, most_bytes: int = MAX_SPOOL_BYTES
    ) -> None:
        self.given_up = 0
        self._folder = folder
        self._format = PcapngFormat(f"kwiresniff {__version__}")
        self._comments = PacketComments(names, link_type)
        self._piece_bytes = most_bytes // PIECES
        self._parts: list[bytes] = []
        self._packets = 0
        self._kept: list[tuple[str, int]] = []  # paths, and the packets before each
        header = self._format.begin() + self._format.interface(link_type, snap_bytes)
        self._offset = len(header)
        try:
            self._lock: IO[bytes] = self._create(LOCK)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            with self._create(HEADER) as file:
                file.write(header)
            self._begin()
        except OSError as error:
            raise self._failed(error) from None

    def write(self, timestamp_ns: int, buffer: bytes, start: int, end: int, wire: int) -> None:
        """Takes one packet, ``wire`` bytes long before it was cut; it can be read after the next ``flush``."""
        comments, flags = self._comments.of(buffer, start, end)
        self._parts.append(self._format.packet(0, timestamp_ns, buffer[start:end], wire, comments, flags))

    def flush(self) -> None:
        """Hands the packets taken to readers. Raises CaptureError."""
        if not self._parts:
            return
        data = b"".join(self._parts)
        try:
            self._file.write(data)
            self._packets += len(self._parts)
            self._offset += len(data)
            self._size += len(data)
            self._parts.clear()
            if self._size >= self._piece_bytes:
                self._file.close()
                self._begin()
        except OSError as error:
            raise self._failed(error) from None

    def close(self) -> None:
        """Ends the stream."""
        try:
            self.flush()
        finally:
            self._file.close()
            self._lock.close()

    def _begin(self) -> None:
        """Begins a piece, and gives the oldest up where there are too many."""
        self._comments.begin()
        name = piece_name(self._offset, self._packets)
        self._file, self._size = self._create(name), 0
        self._kept.append((name, self._packets))
        if len(self._kept) > PIECES:
            os.unlink(os.path.join(self._folder, self._kept.pop(0)[0]))
            self.given_up = self._kept[0][1]

    def _create(self, name: str) -> IO[bytes]:
        path = os.path.join(self._folder, name)
        return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0)

    def _failed(self, error: OSError) -> CaptureError:
        return CaptureError(
            f"{self._folder}: {reason(error)}; the screen keeps packets there: name another folder with TMPDIR, "
            "or do without the screen with --no-live"
        )
