"""Histograms against exact computation on the same values."""

from __future__ import annotations

import random
from itertools import accumulate
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwiresniff.analysis.latency import DRAWN_BOUNDS_NS, MAX_NS, Histogram

FRACTIONS = (0.5, 0.9, 0.95, 0.99, 1.0)


def exact(values: list[int]) -> list[int]:
    """Nearest-rank percentiles of the values themselves."""
    ordered = sorted(values)
    return [ordered[max(ceil(fraction * len(ordered)), 1) - 1] for fraction in FRACTIONS]


def filled(values: list[int]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


def assert_within_one_percent(values: list[int]) -> None:
    for found, wanted in zip(filled(values).percentiles(FRACTIONS), exact(values), strict=True):
        assert abs(found - wanted) <= wanted * 0.01 + 0.5


@pytest.mark.parametrize("seed", range(3))
def test_percentiles_of_typical_latencies_are_within_one_percent(seed: int) -> None:
    chance = random.Random(seed)
    assert_within_one_percent([int(chance.lognormvariate(14, 2)) + 1 for _ in range(20_000)])


@given(st.lists(st.integers(1, MAX_NS), min_size=1, max_size=50))
def test_percentiles_of_any_latencies_are_within_one_percent(values: list[int]) -> None:
    assert_within_one_percent(values)


@given(st.lists(st.integers(-5, 10**12)), st.lists(st.integers(-5, 10**12), min_size=1))
def test_merging_is_the_same_as_adding_everything_to_one(one: list[int], other: list[int]) -> None:
    merged = filled(one)
    merged.merge(filled(other))
    assert merged.summary() == filled(one + other).summary()


def test_count_minimum_mean_and_maximum_are_exact() -> None:
    values = [1_234_567, 7_654_321, 3, 999_999_999]
    summary = filled(values).summary()
    assert summary is not None
    assert (summary.count, summary.min_ns, summary.mean_ns, summary.max_ns) == (
        4,
        3,
        sum(values) // 4,
        999_999_999,
    )


def test_latencies_below_zero_count_as_zero() -> None:
    summary = filled([-5, 0, 100]).summary()
    assert summary is not None
    assert (summary.min_ns, summary.p50_ns, summary.max_ns, summary.mean_ns) == (0, 0, 100, 33)


def test_an_absurd_latency_neither_fails_nor_grows_the_histogram() -> None:
    histogram = filled([10**30, MAX_NS * 2, MAX_NS])
    assert len(histogram.buckets) == 1
    assert histogram.max_ns == 10**30


@given(st.integers(1, MAX_NS))
def test_a_bucket_s_key_is_the_number_of_bits_and_the_leading_ones(value: int) -> None:
    """A value of up to seven bits is a key itself. Tables of a pipeline hold them; histograms have the same object."""
    digits = f"{value:b}"
    (key,) = filled([value]).buckets
    assert key == (value if len(digits) <= 7 else len(digits) * 128 + int(digits[:7], 2))
    (again,) = filled([value, value]).buckets
    assert again is key


def test_memory_is_bounded_whatever_is_added() -> None:
    chance = random.Random(1)
    histogram = filled([int(2 ** chance.uniform(0, 70)) for _ in range(200_000)])
    assert len(histogram.buckets) <= 127 + 64 * 41


def test_nothing_added_has_no_summary() -> None:
    assert Histogram().summary() is None
    with pytest.raises(ValueError, match="no values"):
        Histogram().percentiles((0.5,))


def test_drawn_buckets_run_from_the_lowest_to_the_highest_without_holes() -> None:
    # 1.5 us lies below 2 us, 40 us below 50 us; what is between them is empty but there.
    summary = filled([1_500, 1_500, 40_000]).summary()
    assert summary is not None
    assert summary.buckets == ((2_000, 2), (5_000, 0), (10_000, 0), (20_000, 0), (50_000, 1))


def test_what_is_longer_than_the_last_bound_is_drawn_in_the_last_bucket() -> None:
    summary = filled([DRAWN_BOUNDS_NS[-1] * 3, 0]).summary()
    assert summary is not None
    assert summary.buckets[0] == (1_000, 1)
    assert summary.buckets[-1] == (500_000_000_000, 1)


@given(st.lists(st.integers(-5, 10**13), min_size=1, max_size=50))
def test_drawn_buckets_are_bounds_one_after_another_with_every_value_in_one(values: list[int]) -> None:
    """A value may be drawn beside the bound that it is within 1 % of."""
    summary = filled(values).summary()
    assert summary is not None
    bounds, counts = [bound for bound, _ in summary.buckets], [count for _, count in summary.buckets]
    start = DRAWN_BOUNDS_NS.index(bounds[0])
    assert bounds == DRAWN_BOUNDS_NS[start : start + len(bounds)]
    assert counts[0] and counts[-1] and sum(counts) == len(values)
    for bound, reached in zip(bounds[:-1], accumulate(counts[:-1]), strict=True):
        assert (
            sum(value < bound * 0.99 for value in values) <= reached <= sum(value <= bound * 1.01 for value in values)
        )
