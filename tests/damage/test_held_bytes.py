"""What connections hold back is bounded in bytes of memory, whatever it is and however many connections there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.hoarding import KINDS, MEGABYTE
from tests.support.package import ENVIRONMENT

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def grown() -> dict[str, int]:
    """The bytes by which each kind of traffic raised what is resident, at most."""
    command = [sys.executable, "-m", "tests.support.hoarding"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    return {kind: int(size) for kind, size in (line.split(": ") for line in done.stdout.splitlines())}


@pytest.mark.parametrize("kind", KINDS)
def test_hoarding_traffic_stays_within_the_limit(kind: str, grown: dict[str, int]) -> None:
    """The limit is 4 MB here, or that of one connection; each kind sends several times as much."""
    assert grown[kind] < KINDS[kind][2] * MEGABYTE
