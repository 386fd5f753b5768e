"""When a lag grows and when it does not: looks at a partition over time, made by hand."""

from __future__ import annotations

import pytest

from kwiresniff.analysis.doctor.lag import Look, grows

SECOND = 1_000_000_000


def looks(*lags: int, every_ns: int = 2 * SECOND) -> list[Look]:
    """A partition that was looked at so often; what was read stays, what was written grows by the lag."""
    return [Look(1, number * every_ns, 1_000 + lag, 1_000) for number, lag in enumerate(lags)]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(looks(0, 50, 100, 150, 200, 250, 300), True, id="grows"),
        pytest.param(looks(300, 250, 200, 150, 100, 50, 0), False, id="a consumer that catches up"),
        pytest.param(looks(200, 200, 200, 200, 200, 200), False, id="stays"),
        pytest.param(looks(0, 500, 0, 500, 0, 500, 0), False, id="bursts that are read"),
        pytest.param(looks(0, 10, 20, 30, 40, 50, 60), False, id="few records"),
        pytest.param(looks(0, 50, 100, 150, 200, 250, every_ns=SECOND), False, id="too short a time"),
        pytest.param(looks(0, 500, every_ns=20 * SECOND), False, id="too few looks"),
    ],
)
def test_a_lag_grows_when_its_end_is_above_all_of_its_beginning(seen: list[Look], expected: bool) -> None:
    """The last third of the time against the first, over ten seconds and a hundred records at least."""
    assert grows(seen) is expected
