"""What ``diff`` tells as a change, and what as noise, on recordings."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import pytest

from kwiresniff.analysis.comparison.latency_changes import greater_share, latency_changes
from kwiresniff.analysis.comparison.rank_test import count_test, rank_test
from kwiresniff.analysis.comparison.series import MAX_BLOCKS, LatencySeries, OutcomeSeries, RateSeries
from kwiresniff.analysis.comparison.survey import Kind
from kwiresniff.analysis.latency import Histogram
from tests.support.compared import compared, slowed, surveyed
from tests.support.cuts import CUTS
from tests.support.sample import mostly_slow
from tests.support.transformations import segments_of

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
MS = 1_000_000
#: Recordings of ordinary traffic. In two more the brokers have just been started, and answer ten times sooner later on.
ORDINARY = sorted(
    path.name
    for path in CAPTURES.glob("*.pcap*")
    if "tls" not in path.name and path.name not in ("share-4.1.pcap.xz", "streams-4.4.pcap.xz")
)


@pytest.mark.parametrize("name", mostly_slow(ORDINARY, 16))
def test_a_recording_does_not_differ_from_itself(name: str) -> None:
    """Neither from itself with every packet twice, as a mirror port makes it."""
    segments = segments_of(CAPTURES / name)
    for other in (segments, CUTS["each packet twice, late"](segments)):
        found = compared(segments, other)
        assert (found.changes, found.doubtful) == ((), ())


@pytest.mark.parametrize("name", mostly_slow(ORDINARY, 16))
def test_the_halves_of_a_recording_are_alike_in_what_is_measured(name: str) -> None:
    """Who is there and what is done is another thing in each half; how long it takes is not."""
    segments = segments_of(CAPTURES / name)
    found = compared(segments[: len(segments) // 2], segments[len(segments) // 2 :])
    measured = [one for one in found.changes if one.section in ("latency", "errors", "throughput")]
    assert measured == []


def test_an_api_that_got_slower_is_named_with_its_broker() -> None:
    """One of two brokers takes 20 ms longer for each answer; nothing is said of the other one."""
    segments = segments_of(CAPTURES / "incidents" / "listener-unresolvable-of-one.pcap.xz")
    found = compared(segments, slowed(segments, 9094, 20 * MS))
    latency = [one for one in found.changes if one.section == "latency"]
    named = {one.subject: one for change in latency for one in (change, *change.parts)}
    slow = [one for name, one in named.items() if name.endswith(":9094")]
    assert slow
    for one in slow:
        assert one.what == "slower"
        assert 19 * MS < one.after - one.before < 21 * MS
    others = [name for name in named if " at " in name and not name.endswith(":9094")]
    assert others == []


def test_a_faster_broker_is_good_news() -> None:
    segments = segments_of(CAPTURES / "seed-single.pcap.xz")
    found = compared(slowed(segments, 9092, 20 * MS), segments)
    latency = [one for one in found.changes if one.section == "latency"]
    assert {(one.what, one.severity) for one in latency} == {("faster", "info")}


def test_a_capture_may_be_much_shorter_than_the_other() -> None:
    """A fifth of the recording is like the whole, and slower when its broker is."""
    segments = segments_of(CAPTURES / "seed-single.pcap.xz")
    part = segments[: len(segments) // 3]
    alike = compared(segments, part)
    assert [one for one in alike.changes if one.section == "latency"] == []
    slower = compared(segments, slowed(part, 9092, 50 * MS))
    assert "Produce" in {one.subject for one in slower.changes if one.what == "slower"}


def test_the_rank_test_is_that_of_mann_and_whitney() -> None:
    """For values without ties that do not resemble their neighbours, against the count of all ways to order them."""
    before, after = [3.0, 9.0, 1.0, 12.0, 5.0, 8.0], [7.0, 14.0, 10.0, 15.0, 11.0, 16.0]
    pooled = sorted([*before, *after])
    seen = sum(pooled.index(value) for value in after)
    sums = [sum(ways) for ways in combinations(range(12), 6)]
    middle = sum(sums) / len(sums)
    exact = sum(abs(one - middle) >= abs(seen - middle) for one in sums) / len(sums)
    assert rank_test(before, after) == pytest.approx(exact, abs=0.01)


def test_like_samples_differ_as_seldom_as_the_test_says() -> None:
    """Of a thousand pairs of samples of one distribution, about one in twenty has a p-value below 0.05."""
    numbers = random.Random(7)
    found = [
        rank_test([numbers.random() for _ in range(20)], [numbers.random() for _ in range(30)]) for _ in range(1000)
    ]
    assert 25 <= sum(one < 0.05 for one in found) <= 70


def test_values_that_resemble_their_neighbours_count_for_fewer() -> None:
    """Two random walks of one kind nearly always differ; it is told seldom."""
    numbers = random.Random(11)

    def walk() -> list[float]:
        at, found = 0.0, []
        for _ in range(30):
            at += NormalDist().inv_cdf(numbers.uniform(0.001, 0.999))
            found.append(at)
        return found

    found = [rank_test(walk(), walk()) for _ in range(300)]
    assert sum(one < 0.0001 for one in found) < 30


@pytest.mark.parametrize(
    ("before", "after", "times", "chance"),
    [
        # By hand: all of n events on one of two equally long sides is 2 / 2 ** n.
        (0, 10, (1.0, 1.0), 2 / 2**10),
        (5, 5, (1.0, 1.0), 1.0),
        # One event in nine tenths of the time, none of it in the other tenth: as probable as can be.
        (1, 0, (9.0, 1.0), 1.0),
        (0, 1, (9.0, 1.0), 0.1),
        (0, 0, (1.0, 1.0), 1.0),
    ],
)
def test_counts_are_compared_by_how_long_was_counted(
    before: int, after: int, times: tuple[float, float], chance: float
) -> None:
    assert count_test(before, after, *times) == pytest.approx(chance)


def test_a_count_of_many_is_compared_too() -> None:
    assert count_test(20_000, 20_100, 1.0, 1.0) > 0.3
    assert count_test(20_000, 24_000, 1.0, 1.0) < 1e-6


def test_the_share_of_pairs_in_which_the_later_is_greater() -> None:
    before, after = Histogram(), Histogram()
    for value in (0, 10, 20):
        before.add(value)
    for value in (10, 30):
        after.add(value)
    # 10 is above 0, equals 10, is below 20; 30 is above all three.
    assert greater_share(before, after) == pytest.approx((1 + 0.5 + 3) / 6)


def test_a_series_never_has_more_blocks_than_it_may() -> None:
    """Ten thousand values are 32 blocks at most, and none of them is lost."""
    series, outcomes = LatencySeries(), OutcomeSeries()
    for value in range(1, 10_001):
        series.add(value * 1000)
        outcomes.add(["UNKNOWN_SERVER_ERROR"] if value > 5_000 else [])
        if value % 997 == 0:
            assert len(series.blocks(0.5)) <= MAX_BLOCKS
    assert series.whole.count == 10_000
    medians = series.blocks(0.5)
    assert medians == sorted(medians)
    shares = outcomes.shares("UNKNOWN_SERVER_ERROR")
    assert (shares[0], shares[-1], len(shares) <= MAX_BLOCKS) == (0, 1, True)


def test_an_api_has_no_more_errors_than_are_counted() -> None:
    outcomes = OutcomeSeries()
    assert all(outcomes.add([f"ERROR_{number}"]) for number in range(250))
    assert not outcomes.add(["ERROR_250"])
    assert len(outcomes.errors) == 250


def test_rates_are_of_whole_slices() -> None:
    """The first and the last slice may be cut by the capture, so they do not count."""
    rates = RateSeries()
    for second in range(100):
        rates.add(second, 10)
    assert rates.width_s == 2
    assert rates.per_second(100) == [10.0] * 49


def test_more_kinds_than_are_kept_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from kwiresniff.analysis.comparison import survey

    monkeypatch.setattr(survey, "MAX_SERIES", 3)
    found = surveyed(segments_of(CAPTURES / "first-look.pcap"))
    assert len(found.latencies) == 3
    assert found.left_out > 0


def test_the_least_used_kinds_go_when_latencies_take_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from kwiresniff.analysis.comparison import survey

    monkeypatch.setattr(survey, "MAX_SERIES_BYTES", 400_000)
    found = surveyed(segments_of(CAPTURES / "latency" / "client.pcap.xz"))
    assert sum(series.size_bytes() for series in found.latencies.values()) <= 400_000
    assert found.left_out > 0
    assert any(kind.api == "Produce" for kind in found.latencies)


def test_what_grows_within_one_side_is_a_change_when_it_is_far_from_the_other() -> None:
    """A broker that answers later and later, from 1 s on, where it took 8 ms: as one whose disk fills its queue."""
    before, after = LatencySeries(), LatencySeries()
    for number in range(64):
        before.add((6 + number % 5) * MS)
    for number in range(16):
        after.add((1_200 + 300 * number) * MS)
    changes, _, compared_kinds = latency_changes({Kind("Produce"): before}, {Kind("Produce"): after})
    assert [(one.what, one.subject) for one in changes] == [("slower", "Produce")]
    assert compared_kinds == 1


def test_what_grows_from_where_the_other_side_ends_is_none() -> None:
    """The same growth, cut in two: the second half goes on where the first one ended."""
    before, after = LatencySeries(), LatencySeries()
    for number in range(32):
        (before if number < 16 else after).add((100 + 30 * number) * MS)
    assert latency_changes({Kind("Produce"): before}, {Kind("Produce"): after})[0] == []
