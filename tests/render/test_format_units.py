from __future__ import annotations

import pytest

from kwiresniff.render import format_units


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (None, "-"),
        (0, "0.00 µs"),
        (999, "1.00 µs"),
        (873_000, "873 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (12_345_678, "12.3 ms"),
        (467_200_000, "467 ms"),
        (999_500_000, "1.00 s"),
        (45_000_000_000, "45.0 s"),
        (99_950_000_000, "1m 40s"),
        (125_000_000_000, "2m 05s"),
        (3 * 3600 * 10**9, "3h 00m"),
        (50 * 3600 * 10**9, "2d 02h"),
        (-1_500_000, "-1.50 ms"),
    ],
)
def test_a_duration_has_three_digits_and_the_unit_that_fits(nanoseconds: int | None, text: str) -> None:
    assert format_units.duration(nanoseconds) == text


def test_a_duration_in_ascii_says_us() -> None:
    assert format_units.duration(873_000, micro="u") == "873 us"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KB"),
        (3_482, "3.40 KB"),
        (1_048_063, "1023 KB"),
        (1_048_065, "1.00 MB"),
        (52_428_800, "50.0 MB"),
        (2**63 - 1, "8.00 EB"),
    ],
)
def test_a_size_counts_1024_bytes_to_the_kilobyte(count: int | None, text: str) -> None:
    assert format_units.size(count) == text


def test_columns_never_need_more_than_eight_characters() -> None:
    assert all(len(format_units.duration(int(10 ** (power / 7)))) <= 8 for power in range(120))
    assert all(len(format_units.size(int(10 ** (power / 7)))) <= 8 for power in range(133))


def test_times_are_utc_with_the_digits_asked_for() -> None:
    # date -u -d @1709626502.123456789
    timestamp_ns = 1_709_626_502_123_456_789
    assert format_units.instant(timestamp_ns) == "2024-03-05T08:15:02.123456Z"
    assert format_units.instant(timestamp_ns, 9) == "2024-03-05T08:15:02.123456789Z"
    assert format_units.clock(timestamp_ns, 3) == "08:15:02.123"
    assert format_units.clock(timestamp_ns, 9) == "08:15:02.123456789"
    assert format_units.date(timestamp_ns) == "2024-03-05"


def test_a_time_beyond_the_calendar_is_told_in_seconds() -> None:
    assert "9223372036854775 s" in format_units.instant((2**63 - 1) * 1_000_000)


def test_a_time_before_1970_is_still_a_time() -> None:
    assert format_units.instant(-1_000_000) == "1969-12-31T23:59:59.999000Z"
