"""Connections captured at both of their ends, and which of the two captures each is taken from.

Two sources have the same connection when addresses and ports agree and TCP's sequence numbers agree: both initial
ones, within a day, where both captures have the handshake; else the ranges that were seen in both directions must
overlap, and their times to within ``MAX_SKEW_NS``, after what other connections show of the two hosts' clocks. Initial
sequence numbers are random (RFC 9293, section 3.4.1), so other hosts with the same private addresses, and a port that
is used again, stay apart; so does a connection of which more than ``MAX_RANGE`` was seen without its beginning, since
ranges that wide overlap by chance.

Kept is the capture that has more of the connection's bytes; of two that have the same, the one that is nearer to the
broker, where the answer to the SYN came sooner: latencies are then what the broker took, without the network. What the
kept capture lacks and the other one has (it began later, it lost packets) is taken from the other one, with its times
put on the clock of the kept one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from statistics import median_low

from kwiresniff.base.flows import reverse
from kwiresniff.base.sequence_numbers import SEQ_HALF, SEQ_MASK
from kwiresniff.model import DECRYPTED, SYN, Segment
from kwiresniff.pipeline.observed_connections import ObservedConnection
from kwiresniff.pipeline.sequence_ranges import Range, lacking

#: Clocks of hosts without any care differ by seconds; a port is not used again within a minute (RFC 9293: 2 MSL).
MAX_SKEW_NS = 60 * 10**9
#: Where two numbers of 32 bits agree, a clock may be set to another time zone.
MAX_CLOCK_NS = 86_400 * 10**9
#: A 16th of all sequence numbers; that two such ranges overlap in both directions by chance is one in 64, beside the
#: same addresses, ports and times.
MAX_RANGE = 1 << 28
#: Captures of one connection that are all compared with each other to know their clocks.
_MAX_ENDS = 8


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Packets of ``flow``, of both directions, from ``first_ns`` to ``last_ns`` are left to source ``kept``."""

    flow: str
    first_ns: int
    last_ns: int
    kept: str


@dataclass(frozen=True, slots=True)
class Filled:
    """The part of a connection that source ``other`` alone has: ranges of sequence numbers of ``flow`` and its reverse.

    A range is its start and its length. ``syns`` tells for each way whether the SYN is lacking, too. It passed there
    from ``first_ns`` to ``last_ns``; ``shift_ns`` added to the times there gives those on the clock of who lacks it.
    """

    other: str
    flow: str
    first_ns: int
    last_ns: int
    shift_ns: int
    lacking: tuple[tuple[Range, ...], tuple[Range, ...]]
    syns: tuple[bool, bool]


def shared(by_source: dict[str, list[ObservedConnection]]) -> tuple[dict[str, list[LeftOut]], dict[str, list[Filled]]]:
    """The connections that each source leaves to another one, and the parts that each takes from others."""
    by_flow: dict[str, list[tuple[str, ObservedConnection]]] = {}
    for source in sorted(by_source):
        for one in by_source[source]:
            by_flow.setdefault(one.flow, []).append((source, one))
    clocks = _clocks(by_flow.values())
    left_out: dict[str, list[LeftOut]] = {}
    filled: dict[str, list[Filled]] = {}
    for same in by_flow.values():
        same.sort(key=lambda item: _rank(item[1]))
        kept: list[tuple[str, ObservedConnection]] = []
        for source, one in same:
            for name, better in kept:
                clock_ns = clocks.get((name, source))
                if name != source and is_same(better, one, clock_ns or 0):
                    left_out.setdefault(source, []).append(LeftOut(one.flow, one.first_ns, one.last_ns, name))
                    ahead_ns = _ahead(better, one)
                    more = _filled(source, better, one, clock_ns if ahead_ns is None else ahead_ns)
                    if more is not None:
                        filled.setdefault(name, []).append(more)
                    break
            else:
                kept.append((source, one))
    return left_out, filled


def _clocks(groups: Iterable[list[tuple[str, ObservedConnection]]]) -> dict[tuple[str, str], int]:
    """How far the clock of the second source is ahead of that of the first, by connections that both captured."""
    found: dict[tuple[str, str], list[int]] = {}
    for same in groups:
        by_initial: dict[tuple[int, int], list[tuple[str, ObservedConnection]]] = {}
        for source, one in same:
            by_initial.setdefault(one.initial if one.whole else (-1, -1), []).append((source, one))
        begun = by_initial.pop((-1, -1), [])[:_MAX_ENDS]
        for ends in (*by_initial.values(), begun):
            for source, one in ends[:_MAX_ENDS]:
                for other, two in (*ends[:_MAX_ENDS], *(begun if one.whole else ())):
                    ahead_ns = _ahead(one, two) if other != source and is_same(one, two) else None
                    if ahead_ns is not None:
                        found.setdefault((source, other), []).append(ahead_ns)
                        found.setdefault((other, source), []).append(-ahead_ns)
    return {pair: median_low(values) for pair, values in found.items()}


def _ahead(one: ObservedConnection, other: ObservedConnection) -> int | None:
    """How far the other's clock is ahead, None when it is not known; both ways are taken for equally long.

    Of a handshake both ends have the same moment in the middle; else both directions have passed the same numbers.
    """
    if one.whole and other.whole and min(one.answered_ns, other.answered_ns) >= 0:
        return (other.syn_ns + other.answered_ns - one.syn_ns - one.answered_ns) // 2
    ways = []
    for marks, other_marks in zip(one.marks, other.marks, strict=True):
        theirs = dict(other_marks)
        both = [theirs[seq] - ns for seq, ns in marks if seq in theirs]
        if both:
            ways.append(median_low(both))
    return sum(ways) // len(ways) if ways else None


def is_same(one: ObservedConnection, other: ObservedConnection, ahead_ns: int = 0) -> bool:
    """Whether two sources have seen the same connection; the clock of the other one is ``ahead_ns`` ahead."""
    first_ns, last_ns = other.first_ns - ahead_ns, other.last_ns - ahead_ns
    skew_ns = MAX_CLOCK_NS if one.whole and other.whole else MAX_SKEW_NS
    if one.first_ns > last_ns + skew_ns or first_ns > one.last_ns + skew_ns:
        return False
    if one.whole and other.whole:
        return one.initial == other.initial
    if max(*one.length, *other.length) > MAX_RANGE:
        return False
    return all(_overlap(one, other, way) for way in (0, 1))


def _overlap(one: ObservedConnection, other: ObservedConnection, way: int) -> bool:
    """Whether the ranges of a direction overlap, both ends included."""
    if one.first[way] < 0 or other.first[way] < 0:
        return False
    (start, end), (other_start, other_end) = (_hull(sighting.parts[way]) for sighting in (one, other))
    ahead = _ahead_of(one, other, way)
    return start <= other_end + ahead and other_start + ahead <= end


def _hull(parts: tuple[Range, ...]) -> Range:
    return (parts[0][0], parts[-1][1]) if parts else (0, 0)


def _ahead_of(one: ObservedConnection, other: ObservedConnection, way: int) -> int:
    """The offset from places in the other's parts to places in the one's."""
    ahead = (other.first[way] - one.first[way]) & SEQ_MASK
    return ahead - (SEQ_MASK + 1) if ahead >= SEQ_HALF else ahead


def _rank(one: ObservedConnection) -> tuple[int, int]:
    """The one to keep comes first."""
    return -one.size, one.answered_ns - one.syn_ns if one.answered_ns >= 0 else 1 << 62


def _filled(source: str, kept: ObservedConnection, other: ObservedConnection, ahead_ns: int | None) -> Filled | None:
    """The part that ``other``, seen by ``source``, has besides; None when there is none, or it is not known.

    It must come in time, so the clocks must be known; and numbers come round again, so they must not have.
    """
    if ahead_ns is None or max(*kept.length, *other.length) >= SEQ_HALF:
        return None
    ways = []
    for way in (0, 1):
        has, first = kept.parts[way], kept.first[way]
        if first < 0:
            has, first = (), other.first[way]
        ahead = 0 if kept.first[way] < 0 else _ahead_of(kept, other, way)
        parts = tuple((start + ahead, end + ahead) for start, end in other.parts[way])
        ways.append(tuple(((first + start) & SEQ_MASK, end - start) for start, end in lacking(has, parts)))
    if not any(ways):
        return None
    one, two = (kept.initial[way] < 0 <= other.initial[way] for way in (0, 1))
    return Filled(source, other.flow, other.first_ns, other.last_ns, -ahead_ns, (ways[0], ways[1]), (one, two))


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


def with_filled(segments: Iterable[Segment], others: Iterable[Segment], filled: Iterable[Filled]) -> Iterable[Segment]:
    """The segments, and among them by time those of another source that have what they lack."""
    return merge(segments, _lacked(others, filled), key=lambda segment: segment[1])


def _lacked(segments: Iterable[Segment], filled: Iterable[Filled]) -> Iterator[Segment]:
    wanted: dict[bytes, list[tuple[Filled, int]]] = {}
    for one in filled:
        flow = bytes.fromhex(one.flow)
        for way, key in enumerate((flow, reverse(flow))):
            wanted.setdefault(key, []).append((one, way))
    for segment in segments:
        packet, ns, flow, seq, ack, flags, buffer, start, end, missing = segment
        for one, way in wanted.get(flow, ()):
            if not one.first_ns <= ns <= one.last_ns or flags & DECRYPTED:
                continue
            lacked = flags & SYN and one.syns[way]
            if lacked or any(_touches(seq, end - start, *hole) for hole in one.lacking[way]):
                yield packet, ns + one.shift_ns, flow, seq, ack, flags, buffer, start, end, missing


def _touches(seq: int, size: int, start: int, length: int) -> bool:
    """Whether a segment has bytes of a range; numbers come round, so distances are taken forward."""
    return size > 0 and ((seq - start) & SEQ_MASK < length or (start - seq) & SEQ_MASK < size)
