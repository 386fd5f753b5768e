"""Durations, sizes and times as people write them."""

from __future__ import annotations

import pytest

from kwiresniff.analysis.parse_units import duration_ns, size_bytes, time_ns, time_of_day_ns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5ns", 5), ("10us", 10_000), ("10µs", 10_000), ("100ms", 100_000_000), ("2s", 2_000_000_000),
        ("1.5s", 1_500_000_000), ("-1s", -1_000_000_000), ("10m", 600_000_000_000), ("1h", 3_600_000_000_000),
        ("1d", 86_400_000_000_000), ("0.000000001s", 1), ("5", None), ("5 s", None), ("s", None), ("1.s", None),
        ("1e3s", None), ("", None),
    ],
)  # fmt: skip
def test_a_duration_has_a_unit(text: str, expected: int | None) -> None:
    assert duration_ns(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", 5), ("5B", 5), ("1kB", 1_000), ("1KB", 1_000), ("4KiB", 4_096), ("1MB", 1_000_000), ("1mib", 1_048_576),
        ("2GB", 2_000_000_000), ("1TiB", 1_099_511_627_776), ("1.5k", None), ("1.5kB", 1_500), ("-5", None),
        ("5s", None), ("", None),
    ],
)  # fmt: skip
def test_a_size_counts_bytes_in_powers_of_1000_or_1024(text: str, expected: int | None) -> None:
    assert size_bytes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01", 0),
        ("1970-01-01T00:01", 60_000_000_000),
        ("1970-01-01T01:00:00.000000001+01:00", 1),
        ("2009-02-13T23:31:30.123456789Z", 1_234_567_890_123_456_789),
        ("2009-02-13 23:31:30.5", 1_234_567_890_500_000_000),
        ("1969-12-31T23:59:59Z", -1_000_000_000),
        ("2026-02-30", None),
        ("2026-01-01T25:00:00Z", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_time_is_rfc_3339_and_utc_unless_it_says_otherwise(text: str, expected: int | None) -> None:
    assert time_ns(text) == expected


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("07:24:45", 26_685_000_000_000),
        ("07:24", 26_640_000_000_000),
        ("7:24:45.5", 26_685_500_000_000),
        ("23:59:59.999999999Z", 86_399_999_999_999),
        ("24:00:00", None),
        ("12:60", None),
        ("12", None),
        ("1:2:3", None),
    ],
)
def test_a_time_of_day_counts_from_midnight(text: str, ns: int | None) -> None:
    assert time_of_day_ns(text) == ns
