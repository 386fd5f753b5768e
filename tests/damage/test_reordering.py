"""Recorded captures whose packets are in another order than on the wire, in both directions and over their openings.

A capture point with several queues does that. No byte is missing, so nothing may be lost, not even near the disorder.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.export import exchange_json
from kwiresniff.model import FIN, Connection, Exchange, Segment
from kwiresniff.session import analyze
from tests.support.comparison import Truth
from tests.support.sample import mostly_slow

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


@pytest.mark.parametrize("name", mostly_slow(NAMES, 3))
def test_reordered_packets_cost_nothing(name: str, pytestconfig: pytest.Config) -> None:
    """At a busy capture point (100,000 packets a second) the disorder lasts less than a millisecond."""
    recorded = open_captures([str(CAPTURES / name)])
    segments = [(segment[0], 10**18 + index * PACKET_NS, *segment[2:]) for index, segment in enumerate(recorded)]
    truth = Truth(segments)
    for places in PLACES:
        for seed in range(EXHAUSTIVE_ROUNDS if pytestconfig.getoption("--exhaustive") else ROUNDS):
            found = truth.differences(reordered(segments, places, random.Random(f"{places} {seed}")), tolerance=0)
            assert found == [], f"{places} places, seed {seed}"


def in_halves(segments: Sequence[Segment]) -> list[Segment]:
    """Each segment that carries more than a byte as two, the packets counted anew."""
    halves = []
    for segment in segments:
        _, ns, flow, seq, ack, flags, buffer, start, end, missing = segment
        middle = (start + end) // 2
        if start < middle:
            halves.append((0, ns, flow, seq, ack, flags & ~FIN, buffer, start, middle, 0))
            halves.append((0, ns, flow, seq + middle - start & 0xFFFFFFFF, ack, flags, buffer, middle, end, missing))
        else:
            halves.append(segment)
    return [(packet, *segment[1:]) for packet, segment in enumerate(halves, 1)]


def test_no_message_takes_less_than_no_time() -> None:
    """A message is there when both its first and its last byte are; a response before its request is shown as such."""
    segments = in_halves(list(open_captures([str(CAPTURES / "java-group-classic.pcap")])))
    backwards: Counter[str] = Counter()
    for seed in range(4):
        mixed = [  # each packet has the time at which it is captured
            (segment[0], 10**18 + index * PACKET_NS, *segment[2:])
            for index, segment in enumerate(reordered(segments, 8, random.Random(seed)))
        ]
        times = {segment[0]: segment[1] for segment in mixed}
        for event in analyze(mixed, depth="headers"):
            if isinstance(event, Connection):
                assert event.handshake_rtt_ns is None or event.handshake_rtt_ns >= 0
                assert event.first_ns <= event.last_ns
            if not isinstance(event, Exchange) or event.request is None or event.response is None:
                continue
            asked, answered = (
                (times[message.first_packet], times[message.last_packet]) for message in (event.request, event.response)
            )
            steps = {
                "request_ns": asked[1] - asked[0],
                "wait_ns": answered[0] - max(asked),
                "response_ns": answered[1] - answered[0],
            }
            expected = {name: step if name == "wait_ns" else max(step, 0) for name, step in steps.items()}
            timing = exchange_json(event)["timing"]
            assert {name: timing[name] for name in expected} == expected
            backwards.update(name for name, step in steps.items() if step < 0)
    assert len(backwards) == 3 and min(backwards.values()) > 10
