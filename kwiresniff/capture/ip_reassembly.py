"""Reassembly of IP fragments (RFC 791 section 3.2, RFC 8200 section 4.5), within limits.

A fragment that lies wholly inside what is already there is a duplicate and ignored. One that overlaps it in
part discards the whole datagram, as RFC 5722 demands for IPv6 and Linux does for IPv4 too: nobody honest sends
such a thing, and every rule for choosing between the two versions has been used to deceive an analyzer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable

#: Unfinished datagrams kept at a time. A busy link that fragments has tens of them in flight.
MAX_DATAGRAMS = 256
#: Bytes kept in unfinished datagrams, all together. 128 datagrams of the largest size.
MAX_BYTES = 8 * 1024 * 1024
#: What one fragment costs beside its bytes, so that a flood of tiny ones is bounded too.
FRAGMENT_OVERHEAD_BYTES = 128
#: The age in packets at which a datagram is given up: its 16-bit identification will come again.
MAX_AGE_PACKETS = 100_000
#: Packets of one datagram that are remembered: as many as its fragments can be, of 8 bytes each.
MAX_FRAGMENTS = 8192
#: The largest datagram IP can describe.
MAX_DATAGRAM_BYTES = 65535


class _Datagram:
    """The fragments of one datagram so far, sorted by offset and free of overlaps."""

    __slots__ = ("born", "cost", "end", "offsets", "packets", "pieces", "received", "total")

    def __init__(self, born: int) -> None:
        self.born = born
        self.end = 0  # of the last piece
        self.offsets: list[int] = []
        self.packets = [born]
        self.pieces: list[bytes] = []
        self.received = 0
        self.total = -1  # unknown until the last fragment is seen
        self.cost = 0

    def add(self, offset: int, data: bytes, last: bool) -> bool:
        """Take one fragment; False when it contradicts those before it."""
        size = len(data)
        end = offset + size
        if last:
            if self.total not in (-1, end) or self.end > end:
                return False
            self.total = end
        elif self.total != -1 and end > self.total:
            return False
        if offset == self.end:  # most come in order
            self.offsets.append(offset)
            self.pieces.append(data)
            self.end = end
            self.received += size
            self.cost += size + FRAGMENT_OVERHEAD_BYTES
            return True
        at = bisect_left(self.offsets, offset)
        if at < len(self.offsets) and self.offsets[at] < end:
            # Another one starts inside this: fine only if it starts where this does, and covers it.
            return self.offsets[at] == offset and len(self.pieces[at]) >= size
        if at and (covered := self.offsets[at - 1] + len(self.pieces[at - 1])) > offset:
            return covered >= end
        self.offsets.insert(at, offset)
        self.pieces.insert(at, data)
        self.end = max(self.end, end)
        self.received += size
        self.cost += size + FRAGMENT_OVERHEAD_BYTES
        return True


class Fragments:
    """Unfinished datagrams, oldest out first; ``dropped`` counts fragments, ``packets`` are the last whole one's."""

    def __init__(self) -> None:
        self._datagrams: dict[Hashable, _Datagram] = {}
        self._cost = 0
        self.dropped = 0
        self.packets: list[int] = []

    def add(self, key: Hashable, packet: int, offset: int, data: bytes, last: bool) -> bytes | None:
        """Adds a fragment of the datagram ``key``; returns the payload when it is whole. ``packet`` grows with time."""
        if offset + len(data) > MAX_DATAGRAM_BYTES or not data:
            self.dropped += 1
            return None
        datagram = self._datagrams.get(key)
        if datagram is not None and packet - datagram.born > MAX_AGE_PACKETS:
            self._drop(key)
            datagram = None
        if datagram is None:
            datagram = self._datagrams[key] = _Datagram(packet)
        elif len(datagram.packets) < MAX_FRAGMENTS:
            datagram.packets.append(packet)
        before = datagram.cost
        if not datagram.add(offset, data, last):
            self._drop(key)
            self.dropped += 1
            return None
        self._cost += datagram.cost - before
        if datagram.received == datagram.total:
            del self._datagrams[key]
            self._cost -= datagram.cost
            self.packets = datagram.packets
            return b"".join(datagram.pieces)
        while self._cost > MAX_BYTES or len(self._datagrams) > MAX_DATAGRAMS:
            self._drop(next(iter(self._datagrams)))
        return None

    def close(self) -> None:
        """Give up what is unfinished, so that it is counted."""
        while self._datagrams:
            self._drop(next(iter(self._datagrams)))

    def _drop(self, key: Hashable) -> None:
        datagram = self._datagrams.pop(key)
        self._cost -= datagram.cost
        self.dropped += len(datagram.pieces)
