"""The packets of a live capture in files of one folder, read as one pcapng stream while they grow.

The folder has a header (section and interface), which stays, and pieces of packet blocks, of which the oldest are
deleted. A piece is named after its place in the stream and the packets before it, so that offsets and numbers of
packets stay those of the whole stream. Whoever writes holds a lock: without it nothing more comes.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from typing import IO, Final, NamedTuple

HEADER: Final = "header"
LOCK: Final = ".kwiresniff-spool"
#: What ``FileReader.context`` is behind the header.
CONTEXT: Final = (1 << 32) + 1
#: How often a reader looks for further packets.
WAIT_S: Final = 0.05

_DIGITS: Final = 20


class Piece(NamedTuple):
    """Packet blocks from ``offset`` of the stream on, behind ``packets`` packets."""

    offset: int
    packets: int
    path: str


def is_spool(path: str) -> bool:
    """Whether a folder is one of these."""
    return os.path.exists(os.path.join(path, LOCK))


def piece_name(offset: int, packets: int) -> str:
    """The name of the file of a piece."""
    return f"{offset:0{_DIGITS}}-{packets:0{_DIGITS}}"


def pieces_of(folder: str) -> list[Piece]:
    """The pieces that are there, in their order."""
    found = []
    for name in sorted(os.listdir(folder)):
        offset, dash, packets = name.partition("-")
        if dash and offset.isdecimal() and packets.isdecimal():
            found.append(Piece(int(offset), int(packets), os.path.join(folder, name)))
    return found


def size_of(folder: str) -> int:
    """Bytes of the stream so far, those that were deleted included."""
    pieces = pieces_of(folder)
    return pieces[-1].offset + os.path.getsize(pieces[-1].path) if pieces else 0


def is_written(folder: str) -> bool:
    """Whether more may come."""
    import fcntl

    try:
        with open(os.path.join(folder, LOCK), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


class SpoolFile(io.RawIOBase):
    """Reads a spool from its header on; with ``wait``, called meanwhile, it waits for its writer. ``is_behind`` says
    that it ended where pieces have been deleted.
    """

    def __init__(self, folder: str, wait: Callable[[], None] | None = None, *, skips: bool = False) -> None:
        """With ``skips`` the first piece that is kept follows the header; ``packets_before`` were before it."""
        self.is_behind = False
        self._first = next(iter(pieces_of(folder)), None) if skips else None
        self.packets_before = 0 if self._first is None else self._first.packets
        self._folder = folder
        self._wait = wait
        self._at = 0
        self._file: IO[bytes] = open(os.path.join(folder, HEADER), "rb", buffering=0)  # noqa: SIM115  closed by close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Between 1 and ``size`` bytes; none at the end."""
        while True:
            last = self._wait is None or not is_written(self._folder)  # before it is looked whether there is more
            data = self._file.read(size) or (self._file.read(size) if self._goes_on() else b"")
            if data:
                self._at += len(data)
                return data
            if last or self.is_behind or self._wait is None:
                return b""
            self._wait()
            time.sleep(WAIT_S)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Goes to a place in the stream; where its piece is gone, nothing is read there."""
        self._at = offset + (self._at if whence == os.SEEK_CUR else 0)
        before = [one for one in pieces_of(self._folder) if one.offset <= self._at]
        if before and self._open(before[-1].path):
            self._file.seek(self._at - before[-1].offset)
        else:
            self.is_behind = True
        return self._at

    def close(self) -> None:
        self._file.close()
        super().close()

    def _goes_on(self) -> bool:
        """Opens the piece that begins here, where there is one."""
        if self._first is not None:
            self._at, path, self._first = self._first.offset, self._first.path, None
            return self._open(path)
        later = [one for one in pieces_of(self._folder) if one.offset >= self._at]
        if not later:
            return False
        self.is_behind = later[0].offset > self._at
        return not self.is_behind and self._open(later[0].path)

    def _open(self, path: str) -> bool:
        try:
            file = open(path, "rb", buffering=0)  # noqa: SIM115  closed by close()
        except FileNotFoundError:  # deleted just now
            self.is_behind = True
            return False
        self._file.close()
        self._file = file
        return True
