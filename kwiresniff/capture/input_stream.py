"""One input as a stream of bytes that is never sought: a file, a FIFO or standard input, compressed or not."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable
from select import POLLIN, poll
from typing import BinaryIO

from kwiresniff.capture.compressions import LONGEST_MAGIC, DamagedStream, Source, compression_of

#: Bytes asked for at a time. Larger gains nothing measurable. In smaller pieces more packets straddle two reads: with a
#: quarter of it ``stats`` on large segments takes 4 % longer.
CHUNK_BYTES = 1 << 20
#: How long a pipe is waited for at a time. A Ctrl-C that comes just before the system call would otherwise be heard
#: only when the next bytes come, and they may never come.
PIPE_WAIT_MS = 500


class _Counted:
    """The bytes as they lie on disk or come through the pipe, with some given back at the front."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._read = _reader(file)
        self._front = b""
        self.consumed = 0

    def skip(self, count: int) -> None:
        """Passes over bytes of a file that can be sought."""
        given_back = min(count, len(self._front))
        self._front = self._front[given_back:]
        self._file.seek(count - given_back, io.SEEK_CUR)
        self.consumed += count - given_back

    def read(self, size: int, /) -> bytes:
        if self._front:
            data, self._front = self._front[:size], self._front[size:]
            return data
        data = self._read(size) or b""
        self.consumed += len(data)
        return data

    def peek(self, size: int) -> bytes:
        while len(self._front) < size:
            data = self._read(size - len(self._front))
            if not data:
                break
            self.consumed += len(data)
            self._front += data
        return self._front[:size]


def _reader(file: BinaryIO) -> Callable[[int], bytes | None]:
    """What gives the bytes that are there, without waiting for a full piece; none at the end."""
    raw = getattr(file, "raw", file)
    if not isinstance(raw, io.FileIO) or stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return getattr(file, "read1", file.read)
    waiting = poll()
    waiting.register(raw, POLLIN)

    def read(size: int) -> bytes | None:
        while not waiting.poll(PIPE_WAIT_MS):
            pass
        return raw.read(size)

    return read


class Stream:
    """Decompressed bytes in order.

    ``name`` is what the user calls it. ``compression`` names the compression that was taken off, or is empty.
    ``ending`` is empty until the bytes end, and after that unless they end because the input is damaged: then
    it says in half a sentence how. ``piece_bytes`` are asked for at a time.
    """

    def __init__(self, name: str, file: BinaryIO, *, owned: bool = True) -> None:
        """``owned`` says that closing the stream closes ``file``."""
        self.name = name
        self.ending = ""
        self.piece_bytes = CHUNK_BYTES
        self._file = file
        self._owned = owned
        self._raw = _Counted(file)
        self._front = b""
        self.compression = compression_of(self._raw.peek(LONGEST_MAGIC))
        self._source: Source = self._raw
        if self.compression:
            from kwiresniff.capture.compression import decompressed

            self._source = decompressed(self.compression, self._raw)

    @property
    def consumed(self) -> int:
        """Bytes taken from the input so far, as they lie on disk."""
        return self._raw.consumed

    def read(self, size: int = 0) -> bytes:
        """Between 1 and ``size`` bytes (a piece by default), as many as come without waiting; none at the end."""
        size = size or self.piece_bytes
        if self._front:
            data, self._front = self._front[:size], self._front[size:]
            return data
        return self._take(size)

    def exactly(self, size: int) -> bytes:
        """``size`` bytes, fewer only where the input ends."""
        pieces = []
        while size and (data := self.read(min(size, self.piece_bytes))):
            pieces.append(data)
            size -= len(data)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer only where the input ends, without consuming them."""
        if len(self._front) < size:
            self._front = self.exactly(size)
        return self._front[:size]

    def skip(self, count: int) -> None:
        """Passes over ``count`` bytes; what is compressed is read for that."""
        given_back = min(count, len(self._front))
        self._front = self._front[given_back:]
        count -= given_back
        if count and not self.compression and self._file.seekable():
            self._raw.skip(count)
            return
        while count and (data := self.read(min(count, self.piece_bytes))):
            count -= len(data)

    def close(self) -> None:
        """Ends the stream: reads find its end from now on."""
        self._source = io.BytesIO()
        if self._owned:
            self._file.close()

    def _take(self, size: int) -> bytes:
        try:
            return self._source.read(size)
        except DamagedStream as damage:
            self.ending = str(damage)
        except OSError as error:
            self.ending = f"reading fails ({error.strerror or error})"
        return b""
