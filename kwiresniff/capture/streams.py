"""One input as a stream of bytes that is never sought: a file, a FIFO or standard input, compressed or not."""

from __future__ import annotations

import io
from typing import BinaryIO

from kwiresniff.capture.compression import LONGEST_MAGIC, DamagedStream, Source, compression_of, decompressed

#: Bytes asked for at a time. Larger gains nothing measurable, smaller costs system calls; a segment's payload
#: keeps the whole piece alive, so it must not be large.
CHUNK_BYTES = 256 * 1024


class _Counted:
    """The bytes as they lie on disk or come through the pipe, with some given back at the front."""

    def __init__(self, file: BinaryIO) -> None:
        # read1 and the read of an unbuffered file give what there is; a pipe that is still being written to
        # must not make us wait for a full piece.
        self._read = getattr(file, "read1", file.read)
        self._front = b""
        self.consumed = 0

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


class Stream:
    """Decompressed bytes in order.

    ``name`` is what the user calls it. ``compression`` names the compression that was taken off, or is empty.
    ``ending`` is empty until the bytes end, and after that unless they end because the input is damaged: then
    it says in half a sentence how.
    """

    def __init__(self, name: str, file: BinaryIO, *, owned: bool = True) -> None:
        """``owned`` says that closing the stream closes ``file``."""
        self.name = name
        self.ending = ""
        self._file = file
        self._owned = owned
        self._raw = _Counted(file)
        self._front = b""
        self.compression = compression_of(self._raw.peek(LONGEST_MAGIC))
        self._source: Source = decompressed(self.compression, self._raw) if self.compression else self._raw

    @property
    def consumed(self) -> int:
        """Bytes taken from the input so far, as they lie on disk."""
        return self._raw.consumed

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """Between 1 and ``size`` bytes, as many as come without waiting; none at the end."""
        if self._front:
            data, self._front = self._front[:size], self._front[size:]
            return data
        return self._take(size)

    def exactly(self, size: int) -> bytes:
        """``size`` bytes, fewer only where the input ends."""
        pieces = []
        while size and (data := self.read(min(size, CHUNK_BYTES))):
            pieces.append(data)
            size -= len(data)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer only where the input ends, without consuming them."""
        if len(self._front) < size:
            self._front = self.exactly(size)
        return self._front[:size]

    def close(self) -> None:
        """Nothing more is read; who goes on reading finds the end."""
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
