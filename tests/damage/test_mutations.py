"""Recorded captures with flipped bits and wrong lengths: whatever the bytes say, the analyzer reads on to the end."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from kwiresniff.base.depths import Depth
from kwiresniff.capture import open_captures
from kwiresniff.session import Analyzer
from tests.support.damages import mutated
from tests.support.events import analyze_with
from tests.support.sample import mostly_slow

CAPTURES = Path(__file__).parents[2] / "captures"
NAMES = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name and not path.name.startswith("seed"))
#: Processor seconds for one reading of a capture of at most a few hundred packets, which takes some milliseconds.
MAX_SECONDS = 5
ROUNDS = 3
EXHAUSTIVE_ROUNDS = 100


@pytest.mark.parametrize("name", mostly_slow(NAMES, 3))
def test_mutated_captures_are_read_to_their_end_in_bounded_time(name: str, pytestconfig: pytest.Config) -> None:
    """No exception leaves the analyzer, at the shallowest and at the deepest reading."""
    segments = list(open_captures([str(CAPTURES / name)]))
    depths: tuple[Depth, ...] = ("errors", "records")
    for seed in range(EXHAUSTIVE_ROUNDS if pytestconfig.getoption("--exhaustive") else ROUNDS):
        damaged = mutated(segments, random.Random(f"{name} {seed}"))
        for depth in depths:
            begun = time.process_time()
            for _ in analyze_with(Analyzer(depth), damaged):
                pass
            assert time.process_time() - begun < MAX_SECONDS, f"seed {seed}, depth {depth}"
