"""Connections that were captured at both of their ends, and which of the two captures tells of them.

Two sources have the same connection when addresses and ports agree, their times overlap within ``MAX_SKEW_NS``, and
TCP's sequence numbers agree: both initial ones where both captures have the handshake, else the ranges that were seen
in both directions must overlap. Initial sequence numbers are random (RFC 9293, section 3.4.1), so other hosts with the
same private addresses, and a port that is used again, stay apart; so does a connection of which more than ``MAX_RANGE``
was seen without its beginning, since ranges that wide overlap by chance.

Kept is the capture that has more of the connection's bytes; of two that have the same, the one that is nearer to the
broker, where the answer to the SYN came sooner: latencies are then what the broker took, without the network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kwiresniff.model import DECRYPTED, FIN, RST, SYN, Segment
from kwiresniff.session.flows import reverse
from kwiresniff.stream.half import SEQ_HALF, SEQ_MASK

#: Clocks of hosts without any care differ by seconds; a port is not used again within a minute (RFC 9293: 2 MSL).
MAX_SKEW_NS = 60 * 10**9
#: A 16th of all sequence numbers; that two such ranges overlap in both directions by chance is one in 64, beside the
#: same addresses, ports and times.
MAX_RANGE = 1 << 28
#: Connections looked at in one source at once; those beyond it are not compared.
MAX_SIGHTINGS = 1_000_000


@dataclass(frozen=True, slots=True)
class Sighting:
    """A connection as one source has seen it. ``flow`` is the smaller one of its two flow keys, hexadecimal.

    Of each pair the first is that flow's. ``initial`` are sequence numbers of the SYNs, -1 where none was seen;
    ``first`` and ``length`` the range of the stream that was seen, ``size`` the bytes of it that are in the capture.
    ``answered_ns`` is the time from SYN to its answer, -1 when they were not seen.
    """

    flow: str
    first_ns: int
    last_ns: int
    initial: tuple[int, int]
    first: tuple[int, int]
    length: tuple[int, int]
    size: tuple[int, int]
    answered_ns: int

    @staticmethod
    def from_json(value: list[Any]) -> Sighting:
        """What ``dataclasses.astuple`` gave, after JSON."""
        flow, first_ns, last_ns, *pairs, answered_ns = value
        initial, first, length, size = ((pair[0], pair[1]) for pair in pairs)
        return Sighting(flow, first_ns, last_ns, initial, first, length, size, answered_ns)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Packets of ``flow``, of both directions, from ``first_ns`` to ``last_ns`` are left to source ``kept``."""

    flow: str
    first_ns: int
    last_ns: int
    kept: str


class _Seen:
    """A connection being looked at."""

    __slots__ = ("answered_ns", "closed", "first", "first_ns", "initial", "last_ns", "length", "size", "syn_ns")

    def __init__(self, ns: int) -> None:
        self.first_ns = self.last_ns = ns
        self.initial = [-1, -1]
        self.first = [-1, -1]
        self.length = [0, 0]
        self.size = [0, 0]
        self.syn_ns = self.answered_ns = -1
        self.closed = False

    def add(self, way: int, ns: int, seq: int, flags: int, size: int, missing: int) -> None:
        self.first_ns, self.last_ns = min(self.first_ns, ns), max(self.last_ns, ns)
        if flags & SYN:
            self.initial[way] = seq
            seq = (seq + 1) & SEQ_MASK
            if self.syn_ns >= 0 and self.initial[1 - way] >= 0 and self.answered_ns < 0:
                self.answered_ns = ns - self.syn_ns
            elif self.syn_ns < 0:
                self.syn_ns = ns
        if self.first[way] < 0:
            self.first[way] = seq
        end = (seq + size + missing - self.first[way]) & SEQ_MASK
        if end < SEQ_HALF:
            self.length[way] = max(self.length[way], end)
        self.size[way] += size
        self.closed = self.closed or bool(flags & (FIN | RST))


def sightings(segments: Iterable[Segment]) -> Iterator[Sighting]:
    """The connections of a source. A port that is used again, with another SYN, begins another one."""
    found: dict[bytes, _Seen] = {}
    for _, ns, flow, seq, _, flags, _, start, end, missing in segments:
        if flags & DECRYPTED:
            continue
        other = reverse(flow)
        key, way = (flow, 0) if flow <= other else (other, 1)
        seen = found.get(key)
        if seen is not None and flags & SYN and seen.initial[way] != seq and (seen.initial[way] >= 0 or seen.closed):
            yield _sighting(key, found.pop(key))
            seen = None
        if seen is None:
            if len(found) >= MAX_SIGHTINGS:
                oldest = next(iter(found))
                yield _sighting(oldest, found.pop(oldest))
            seen = found[key] = _Seen(ns)
        seen.add(way, ns, seq, flags, end - start, missing)
    for key, seen in found.items():
        yield _sighting(key, seen)


def _sighting(key: bytes, seen: _Seen) -> Sighting:
    pairs = [(pair[0], pair[1]) for pair in (seen.initial, seen.first, seen.length, seen.size)]
    return Sighting(key.hex(), seen.first_ns, seen.last_ns, pairs[0], pairs[1], pairs[2], pairs[3], seen.answered_ns)


def left_out(by_source: dict[str, list[Sighting]]) -> dict[str, list[LeftOut]]:
    """What each source leaves to another one."""
    by_flow: dict[str, list[tuple[str, Sighting]]] = {}
    for source in sorted(by_source):
        for one in by_source[source]:
            by_flow.setdefault(one.flow, []).append((source, one))
    found: dict[str, list[LeftOut]] = {}
    for same in by_flow.values():
        same.sort(key=lambda item: _rank(item[1]))
        kept: list[tuple[str, Sighting]] = []
        for source, one in same:
            better = next((name for name, other in kept if name != source and is_same(one, other)), None)
            if better is None:
                kept.append((source, one))
            else:
                found.setdefault(source, []).append(LeftOut(one.flow, one.first_ns, one.last_ns, better))
    return found


def is_same(one: Sighting, other: Sighting) -> bool:
    """Whether two sources have seen the same connection."""
    if one.first_ns > other.last_ns + MAX_SKEW_NS or other.first_ns > one.last_ns + MAX_SKEW_NS:
        return False
    whole = [-1 not in sighting.initial for sighting in (one, other)]
    if all(whole):
        return one.initial == other.initial
    if max(*one.length, *other.length) > MAX_RANGE:
        return False
    return all(_overlap(one, other, way) for way in (0, 1))


def _overlap(one: Sighting, other: Sighting, way: int) -> bool:
    """Whether the ranges of a direction overlap, both ends included."""
    if one.first[way] < 0 or other.first[way] < 0:
        return False
    ahead = (other.first[way] - one.first[way]) & SEQ_MASK
    behind = (one.first[way] - other.first[way]) & SEQ_MASK
    return ahead <= one.length[way] or behind <= other.length[way]


def _rank(one: Sighting) -> tuple[int, int]:
    """The one to keep comes first."""
    return -sum(one.size), one.answered_ns if one.answered_ns >= 0 else 1 << 62


def without(segments: Iterable[Segment], dropped: Iterable[LeftOut]) -> Iterable[Segment]:
    """The segments of all connections that are not left out."""
    spans: dict[bytes, list[tuple[int, int]]] = {}
    for one in dropped:
        flow = bytes.fromhex(one.flow)
        for way in (flow, reverse(flow)):
            spans.setdefault(way, []).append((one.first_ns, one.last_ns))
    if not spans:
        return segments
    return (
        segment
        for segment in segments
        if segment[2] not in spans or not any(first <= segment[1] <= last for first, last in spans[segment[2]])
    )
