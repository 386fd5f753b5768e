"""Anonymous frames kept in a file until the packets are written that carry them, and payloads made of them.

What belongs to no frame is zeros, so that a byte that nobody has understood is in no packet.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import IO

from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.errors import ExportError
from kwiresniff.model import Message

#: Bytes of frames that the file may hold, and frames: their places take 24 bytes each.
MAX_FRAMES_BYTES = 4 << 30
MAX_FRAMES = 10_000_000
#: Bytes of SASL tokens without headers between two messages, as many as brokers take of one.
MAX_TOKEN_BYTES = 1 << 20
_LENGTH_BYTES = 4


class _Places:
    """The sequence numbers at which frames of one direction begin, and their places in the file."""

    __slots__ = ("is_sorted", "offsets", "sizes", "starts")

    def __init__(self) -> None:
        self.starts = array("q")
        self.sizes = array("q")
        self.offsets = array("q")
        self.is_sorted = True

    def add(self, start: int, size: int, offset: int) -> None:
        self.is_sorted = self.is_sorted and (not self.starts or start >= self.starts[-1])
        self.starts.append(start)
        self.sizes.append(size)
        self.offsets.append(offset)

    def sort(self) -> None:
        if not self.is_sorted:
            order = sorted(range(len(self.starts)), key=self.starts.__getitem__)
            for name in ("offsets", "sizes", "starts"):
                values = getattr(self, name)
                setattr(self, name, array("q", [values[at] for at in order]))
            self.is_sorted = True


class FrameSpool:
    """The frames of all connections, in a private ``file``."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = 0
        self._count = 0
        self._places: dict[tuple[int, bool], _Places] = {}

    def add(self, connection: int, from_client: bool, message: Message, frame: bytes) -> None:
        """Keeps a frame, or its front, in the place of a message's. Raises ExportError where there is no room."""
        if message.end_seq >= 0 and frame:
            start = message.end_seq - message.size_bytes - _LENGTH_BYTES
            self._put(connection, from_client, start, message.size_bytes.to_bytes(_LENGTH_BYTES, "big") + frame)

    def _put(self, connection: int, from_client: bool, start: int, data: bytes) -> None:
        self._count += 1
        if self._size + len(data) > MAX_FRAMES_BYTES or self._count > MAX_FRAMES:
            raise ExportError(
                f"--anonymise keeps no more than {MAX_FRAMES_BYTES >> 30} GB of messages; give fewer captures at a time"
            )
        places = self._places.setdefault((connection, from_client), _Places())
        places.add(start & SEQ_MASK, len(data), self._size)
        self._file.write(data)
        self._size += len(data)

    def add_preamble(self, connection: int, from_client: bool, start: int, data: bytes) -> None:
        """Keeps what a proxy, or its client, says from a sequence number on."""
        if data:
            self._put(connection, from_client, start, data)

    def add_tokens(self, connection: int, from_client: bool, start: int, end: int) -> None:
        """Keeps a token without a header, as bytes 0xff between two sequence numbers: zeros read as a request."""
        size = ((end - start) & SEQ_MASK) - _LENGTH_BYTES
        if 0 < size <= MAX_TOKEN_BYTES:
            self._put(connection, from_client, start, size.to_bytes(_LENGTH_BYTES, "big") + b"\xff" * size)

    def payload(self, connection: int, from_client: bool, seq: int, size: int) -> bytes:
        """The bytes from a sequence number on: those of the frames there, zeros elsewhere."""
        out = bytearray(size)
        places = self._places.get((connection, from_client))
        if places is not None and size:
            places.sort()
            self._fill(out, places, seq, 0)
            if seq + size > SEQ_MASK + 1:
                self._fill(out, places, 0, SEQ_MASK + 1 - seq)
        return bytes(out)

    def _fill(self, out: bytearray, places: _Places, seq: int, at: int) -> None:
        """Fills ``out`` from ``at`` on, which has the sequence number ``seq``."""
        size = len(out) - at
        starts, sizes = places.starts, places.sizes
        number = max(bisect_right(starts, seq) - 1, 0)
        while number < len(starts) and starts[number] < seq + size:
            skipped = max(seq - starts[number], 0)
            place = at + max(starts[number] - seq, 0)
            length = min(sizes[number] - skipped, len(out) - place)
            if length > 0:
                self._file.seek(places.offsets[number] + skipped)
                out[place : place + length] = self._file.read(length)
            number += 1
