"""Recorded captures whose packets are in another order than on the wire, in both directions and over their openings.

A capture point with several queues does that. No byte is missing, so nothing may be lost, not even near the disorder.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Segment
from tests.damage.comparison import Truth

CAPTURES = Path(__file__).parents[2] / "captures"
#: Bare SASL tokens (before KIP-152) and TLS records carry no number that a response could be told by.
NAMES = sorted(
    path.name
    for path in CAPTURES.iterdir()
    if ".pcap" in path.name and not path.name.startswith(("seed", "old-sasl")) and "-tls" not in path.name
)
PLACES = (2, 4, 8, 16)
ROUNDS = 2
EXHAUSTIVE_ROUNDS = 50
PACKET_NS = 10_000


def reordered(segments: Sequence[Segment], places: int, rng: random.Random) -> list[Segment]:
    """Each segment up to ``places`` places from where it was. Segments that are the same stay in their order, since
    the first of them is the one that counts."""
    order = sorted(range(len(segments)), key=lambda index: index + rng.uniform(0, places))
    same: dict[tuple[object, ...], list[Segment]] = defaultdict(list)
    for segment in segments:
        same[segment[2:6]].append(segment)
    return [same[segments[index][2:6]].pop(0) for index in order]


@pytest.mark.parametrize("name", NAMES)
def test_reordered_packets_cost_nothing(name: str, pytestconfig: pytest.Config) -> None:
    """As at a busy capture point: 100,000 packets a second, so that the disorder lasts less than a millisecond."""
    recorded = open_captures([str(CAPTURES / name)])
    segments = [(segment[0], 10**18 + index * PACKET_NS, *segment[2:]) for index, segment in enumerate(recorded)]
    truth = Truth(segments)
    for places in PLACES:
        for seed in range(EXHAUSTIVE_ROUNDS if pytestconfig.getoption("--exhaustive") else ROUNDS):
            found = truth.differences(reordered(segments, places, random.Random(f"{places} {seed}")), tolerance=0)
            assert found == [], f"{places} places, seed {seed}"
