"""Recorded captures with flipped bits and wrong lengths: whatever the bytes say, the analyzer reads on to the end."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from struct import pack

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Segment
from kwiresniff.session import Analyzer
from kwiresniff.session.analyzer import Depth

CAPTURES = Path(__file__).parents[2] / "captures"
NAMES = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name and not path.name.startswith("seed"))
#: Processor seconds for one reading of a capture of at most a few hundred packets, which takes some milliseconds.
MAX_SECONDS = 5
ROUNDS = 3
EXHAUSTIVE_ROUNDS = 100
#: Lengths and counts that hurt careless readers.
EVIL = (-(2**31), -2, -1, 0, 1, 2**15, 2**24, 2**30, 2**31 - 1)


def mutated(segments: Sequence[Segment], rng: random.Random) -> list[Segment]:
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


@pytest.mark.parametrize("name", NAMES)
def test_mutated_captures_are_read_to_their_end_in_bounded_time(name: str, pytestconfig: pytest.Config) -> None:
    """No exception leaves the analyzer, at the shallowest and at the deepest reading."""
    segments = list(open_captures([str(CAPTURES / name)]))
    depths: tuple[Depth, ...] = ("errors", "records")
    for seed in range(EXHAUSTIVE_ROUNDS if pytestconfig.getoption("--exhaustive") else ROUNDS):
        damaged = mutated(segments, random.Random(f"{name} {seed}"))
        for depth in depths:
            begun = time.process_time()
            for _ in Analyzer(depth).analyze(damaged):
                pass
            assert time.process_time() - begun < MAX_SECONDS, f"seed {seed}, depth {depth}"
