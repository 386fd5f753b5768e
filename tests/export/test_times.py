"""Times as RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from kwiresniff.export.times import rfc3339


@pytest.mark.parametrize(
    ("timestamp_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000000000Z"),
        (1_234_567_890_123_456_789, "2009-02-13T23:31:30.123456789Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (253_402_300_799_999_999_999, "9999-12-31T23:59:59.999999999Z"),
        (253_402_300_800_000_000_000, None),
        (-(2**80), None),
    ],
)
def test_a_time_has_nine_digits_and_is_null_outside_the_calendar(timestamp_ns: int, text: str | None) -> None:
    assert rfc3339(timestamp_ns) == text


def test_a_time_of_any_day_is_that_of_the_calendar() -> None:
    """From year 1 on, leap years included, on both sides of 1970."""
    rng, first = Random(9999), datetime(1, 1, 1, tzinfo=UTC)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for _ in range(2_000):
        at = first + timedelta(days=rng.randrange(3_652_059), seconds=rng.randrange(86_400))
        nanoseconds = (at - epoch) // timedelta(seconds=1) * 10**9 + 7
        assert rfc3339(nanoseconds) == f"{at.isoformat()[:19]}.000000007Z"
