"""Ways to damage a capture, as lists of its segments: what networks, capture points and snap lengths do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from struct import pack

from kwiresniff.model import Segment

#: Ethernet, IPv4 and TCP with timestamps: what a snap length takes before the payload begins.
HEADER_BYTES = 14 + 20 + 32

DamageReporter = Callable[[Sequence[Segment], int], list[Segment]]


def dropped(segments: Sequence[Segment], at: int) -> list[Segment]:
    """Without one segment."""
    return [*segments[:at], *segments[at + 1 :]]


def thinned(segments: Sequence[Segment], share: float, rng: Random) -> list[Segment]:
    """Without a share of the segments, as they come."""
    return [segment for segment in segments if rng.random() >= share]


def swapped(segments: Sequence[Segment], at: int) -> list[Segment]:
    """With a segment and the one after it in the other order, times and all."""
    return [*segments[:at], *segments[at : at + 2][::-1], *segments[at + 2 :]]


def duplicated(segments: Sequence[Segment], at: int) -> list[Segment]:
    """With one segment twice."""
    return [*segments[: at + 1], *segments[at:]]


def cut(segments: Sequence[Segment], at: int) -> list[Segment]:
    """Ending after a segment."""
    return list(segments[: at + 1])


def started(segments: Sequence[Segment], at: int) -> list[Segment]:
    """Beginning with a segment."""
    return list(segments[at:])


def snapped(segments: Sequence[Segment], length: int) -> list[Segment]:
    """Every packet cut to ``length`` bytes."""
    room = length - HEADER_BYTES
    return [
        (*segment[:8], start + max(0, min(end - start, room)), max(0, end - start - max(room, 0)))
        for segment in segments
        for start, end in [segment[7:9]]
    ]


#: Lengths and counts that hurt careless readers.
EVIL = (-(2**31), -2, -1, 0, 1, 2**15, 2**24, 2**30, 2**31 - 1)


def mutated(segments: Sequence[Segment], rng: Random) -> list[Segment]:
    """Some segments with a few bits flipped, or four bytes replaced by an evil number."""
    damaged = list(segments)
    for index in rng.sample(range(len(segments)), max(1, len(segments) // 5)):
        *front, buffer, start, end, missing = segments[index]
        payload = bytearray(buffer[start:end])
        if len(payload) < 4:
            continue
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(payload) - 3)
            if rng.random() < 0.5:
                payload[at] ^= 1 << rng.randrange(8)
            else:
                payload[at : at + 4] = pack(">i", rng.choice(EVIL))
        damaged[index] = (*front, bytes(payload), 0, len(payload), missing)  # type: ignore[assignment]
    return damaged


#: Damages with one place each.
PLACED: dict[str, DamageReporter] = {
    "dropped": dropped,
    "swapped": swapped,
    "duplicated": duplicated,
    "cut": cut,
    "started": started,
}
SNAP_LENGTHS = (64, 96, 128, 256)
