"""A few hundred hostile inputs on each target; ``python -m tests.fuzz`` tries millions."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import attempt, campaign
from tests.fuzz.targets import TARGETS, Target
from tests.support.sample import sampled, slow_if

#: Inputs tried on each target. A connection takes some milliseconds, a message a tenth of one.
INPUTS = {"analysis": 60, "connection": 60, "capture": 60, "index": 60, "message": 1_500, "records": 4_000}
OTHERS = 400


@pytest.mark.parametrize("name", slow_if(sorted(TARGETS), "analysis", "connection"))
def test_every_seed_keeps_the_invariants(name: str) -> None:
    """Unchanged, what clients and brokers really sent."""
    target = TARGETS[name]
    seeds = target.seeds()
    assert seeds
    for seed in seeds[:: max(len(seeds) // 200, 1)]:
        assert attempt(target, seed, 5) == "", seed.hex()


@pytest.mark.parametrize("part", sampled([3, 1], first=1), ids=["some", "all"])
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_hostile_inputs_keep_the_invariants(name: str, part: int) -> None:
    """Some are the first third of all."""
    assert campaign(INPUTS.get(name, OTHERS) // part, [name], f"suite {name}", 5) == {}


def test_a_broken_invariant_is_reported_with_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machinery itself: a target that fails on one input in some hundred is caught."""

    def run(data: bytes) -> None:
        assert not data.startswith(b"\xff"), "a bad first byte"

    monkeypatch.setitem(TARGETS, "broken", Target("broken", lambda: (bytes(4),), run))
    ((_, (reason, data)),) = campaign(2_000, ["broken"], "", 5).items()
    assert "AssertionError" in reason and "a bad first byte" in reason
    assert data.startswith(b"\xff")
