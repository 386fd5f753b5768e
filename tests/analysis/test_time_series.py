"""Slices of time."""

from __future__ import annotations

from kwiresniff.analysis.time_series import MAX_SLICES, TimeSeries
from kwiresniff.model import Exchange
from kwiresniff.results.report import SeriesPoint
from tests.support.exchanges import START_NS, exchange

MILLISECOND = 1_000_000


def points(*given: Exchange) -> list[SeriesPoint]:
    made = TimeSeries()
    for one in given:
        made.add(one)
    return made.points()


def test_outcomes_bytes_and_latencies_fall_into_their_slice() -> None:
    errors = [("error_code", 6, "NOT_LEADER_OR_FOLLOWER", True)]
    first, second = points(
        exchange(latency_ns=2 * MILLISECOND),
        exchange(latency_ns=4 * MILLISECOND, errors=errors, outcome="error"),
        exchange(latency_ns=None, outcome="unanswered"),
        exchange(start_ns=START_NS + MILLISECOND, latency_ns=900 * MILLISECOND, waiting="long poll"),
    )
    assert (first.start_ns, first.width_ns) == (START_NS, MILLISECOND)
    assert (first.ok, first.errors, first.unanswered) == (1, 1, 1)
    assert (first.request_bytes, first.response_bytes) == (300, 4_000)
    assert first.max_ns == 4 * MILLISECOND
    assert (second.ok, second.max_ns) == (1, None)


def test_slices_grow_with_the_capture_and_nothing_is_lost() -> None:
    every_ns = 70 * MILLISECOND
    found = points(*[exchange(start_ns=START_NS + number * every_ns) for number in range(5_000)])
    assert MAX_SLICES // 2 <= len(found) <= MAX_SLICES
    assert sum(point.ok for point in found) == 5_000
    assert len({point.width_ns for point in found}) == 1
    assert found[-1].start_ns <= START_NS + 4_999 * every_ns < found[-1].start_ns + found[-1].width_ns


def test_a_clock_that_runs_backwards_counts_at_the_beginning() -> None:
    (only,) = points(exchange(), exchange(start_ns=START_NS - 10**15))
    assert only.ok == 2


def test_nothing_has_no_slices() -> None:
    assert points() == []
