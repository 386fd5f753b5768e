"""Ways to damage a capture, as lists of its segments: what networks, capture points and snap lengths do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from kwiresniff.model import Segment

#: Ethernet, IPv4 and TCP with timestamps: what a snap length takes before the payload begins.
HEADER_BYTES = 14 + 20 + 32

Damage = Callable[[Sequence[Segment], int], list[Segment]]


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


#: Damages with one place each.
PLACED: dict[str, Damage] = {
    "dropped": dropped,
    "swapped": swapped,
    "duplicated": duplicated,
    "cut": cut,
    "started": started,
}
SNAP_LENGTHS = (64, 96, 128, 256)
