"""Where packets are found again: places between records of capture files, noted while the files are read once.

One place is noted for each read of a file, about a megabyte, so that a packet is found by reading no more than that.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Final, NamedTuple

#: Bytes of a file between two places.
APART_BYTES: Final = 1 << 19


class Place(NamedTuple):
    """``offset`` in the decompressed file behind ``packet``, with ``context`` as in ``FileReader``."""

    packet: int
    offset: int
    context: int


class PacketPlaces:
    """The places of some files, in the order of reading; 24 bytes each."""

    def __init__(self) -> None:
        self._packets = array("q")
        self._offsets = array("q")
        self._contexts = array("q")

    def __len__(self) -> int:
        return len(self._packets)

    def add(self, packet: int, offset: int, context: int) -> None:
        """Adds a place behind those that are known; one that is near the last of its file is left out."""
        if self._offsets and 0 <= offset - self._offsets[-1] < APART_BYTES:
            return
        self._packets.append(packet)
        self._offsets.append(offset)
        self._contexts.append(context)

    def before(self, packet: int) -> Place | None:
        """The last place before a packet, of its file or an earlier one; None where there is none."""
        at = bisect_left(self._packets, packet) - 1
        return None if at < 0 else Place(self._packets[at], self._offsets[at], self._contexts[at])

    def since(self, count: int) -> list[Place]:
        """The places but for the first ``count``."""
        return [
            Place(*one)
            for one in zip(self._packets[count:], self._offsets[count:], self._contexts[count:], strict=True)
        ]
