"""What a capture holds, worked out without the code under test: streams by sequence number, frames by length.

Each direction of an undamaged capture is laid out as one string of bytes by the sequence numbers of its segments,
then cut into frames from its first byte on. The segments of a damaged version keep their places, so it can be said
of every frame whether its bytes are still there, and which packets carry them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kwiresniff.model import SYN, Segment

HALF = 1 << 31
MASK = (1 << 32) - 1


@dataclass
class Stream:
    """One direction of one connection. ``frames`` are (start, end) places in ``data``, length included."""

    flow: bytes
    base: int | None = None
    data: bytearray = field(default_factory=bytearray)
    frames: list[tuple[int, int]] = field(default_factory=list)

    def place(self, seq: int) -> int:
        """Where the byte with this sequence number lies."""
        assert self.base is not None
        delta = (seq - self.base) & MASK
        return delta - (1 << 32) if delta >= HALF else delta

    def cut(self) -> None:
        """Cut the bytes into frames; a rest that is no whole frame belongs to none."""
        at = 0
        while at + 4 <= len(self.data):
            end = at + 4 + int.from_bytes(self.data[at : at + 4], "big", signed=True)
            if end < at + 4 or end > len(self.data):
                break
            self.frames.append((at, end))
            at = end


class Place(NamedTuple):
    """A segment's payload as bytes ``start`` to ``end`` of stream number ``stream``."""

    stream: int
    start: int
    end: int


class Oracle:
    """The streams of an undamaged capture; ``places`` tells by packet where its payload lies."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.streams: list[Stream] = []
        self.places: dict[int, Place] = {}
        current: dict[bytes, int] = {}
        opened: dict[bytes, int] = {}
        for packet, _, flow, seq, _, flags, buffer, start, end, missing in segments:
            assert not missing, "an undamaged capture is not snapped"
            if flags & SYN:
                if opened.get(flow) != seq:
                    opened[flow] = seq
                    if flow not in current or self.streams[current[flow]].base is not None:
                        self._open(flow, current)
                    self.streams[current[flow]].base = (seq + 1) & MASK
            elif start < end:
                if flow not in current:
                    self._open(flow, current)
                self._lay(packet, current[flow], seq, buffer[start:end])
        for stream in self.streams:
            stream.cut()

    def _open(self, flow: bytes, current: dict[bytes, int]) -> None:
        address = (len(flow) - 4) // 2
        other = flow[address : 2 * address] + flow[:address] + flow[-2:] + flow[-4:-2]
        for one in (flow, other):
            current[one] = len(self.streams)
            self.streams.append(Stream(one))

    def _lay(self, packet: int, number: int, seq: int, payload: bytes) -> None:
        stream = self.streams[number]
        if stream.base is None:
            stream.base = seq
        at, end = stream.place(seq), stream.place(seq) + len(payload)
        if len(payload) == 1 and at == len(stream.data) - 1:
            return  # a keep-alive probe
        assert 0 <= at <= len(stream.data), "an undamaged capture is in order and without holes"
        if end > len(stream.data):
            stream.data += payload[len(payload) - (end - len(stream.data)) :]
        self.places[packet] = Place(number, at, end)


class Carried(NamedTuple):
    """A frame as a damaged capture carries it. ``first`` and ``last`` are (packet, timestamp_ns) of the segments
    with its first and last byte, None when these are lost; ``captured`` counts the bytes that are there."""

    first: tuple[int, int] | None
    last: tuple[int, int] | None
    captured: int
    whole: bool


class Coverage:
    """Which bytes of the oracle's streams, or of those numbered, a (damaged) capture has, and in which packets."""

    def __init__(self, oracle: Oracle, segments: Iterable[Segment], streams: Iterable[int] | None = None) -> None:
        self.oracle = oracle
        self.streams = set(range(len(oracle.streams)) if streams is None else streams)
        self._pieces: dict[int, list[tuple[int, int, int, int, int]]] = {}
        for arrival, (packet, ns, _, _, _, _, _, start, end, _) in enumerate(segments):
            place = oracle.places.get(packet)
            if place is not None and start < end and place.stream in self.streams:
                piece = (place.start, arrival, place.start + end - start, packet, ns)
                self._pieces.setdefault(place.stream, []).append(piece)
        self._longest = {}
        for number, pieces in self._pieces.items():
            pieces.sort()
            self._longest[number] = max(end - start for start, _, end, _, _ in pieces)

    def _at(self, number: int, place: int) -> list[tuple[int, int, int, int, int]]:
        """The pieces that hold the byte at ``place``, unordered."""
        pieces = self._pieces.get(number, [])
        found = []
        index = bisect_right(pieces, (place, HALF)) - 1
        while index >= 0 and pieces[index][0] > place - self._longest[number]:
            if pieces[index][2] > place:
                found.append(pieces[index])
            index -= 1
        return found

    def _packet(self, number: int, place: int) -> tuple[int, int] | None:
        pieces = self._at(number, place)
        return min(pieces, key=lambda piece: piece[1])[3:] if pieces else None

    def holes(self, number: int) -> list[tuple[int, int]]:
        """The places of a stream that are not in the capture."""
        holes = []
        at = 0
        for start, _, end, _, _ in self._pieces.get(number, []):
            if start > at:
                holes.append((at, start))
            at = max(at, end)
        size = len(self.oracle.streams[number].data)
        return [*holes, (at, size)] if at < size else holes

    def carried(self, number: int) -> list[Carried]:
        """What the capture has of each frame of a stream."""
        found = []
        holes = self.holes(number)
        for start, end in self.oracle.streams[number].frames:
            lost = sum(max(0, min(end, b) - max(start, a)) for a, b in holes) if holes else 0
            found.append(
                Carried(self._packet(number, start), self._packet(number, end - 1), end - start - lost, not lost)
            )
        return found

    def captured(self, number: int) -> int:
        """Bytes of a stream that are there, each counted once."""
        return len(self.oracle.streams[number].data) - sum(end - start for start, end in self.holes(number))
