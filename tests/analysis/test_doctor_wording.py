"""Phrases that findings share."""

from __future__ import annotations

from datetime import UTC, datetime

from kwiresniff.analysis.doctor.wording import clock


def test_times_of_day_are_those_of_the_calendar_in_any_year() -> None:
    """As the standard library tells them; a damaged capture may have a year that it has no calendar for."""
    for seconds in (0, 1_794_000_000, 253_402_300_799, -1):
        told = datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S") + ".007"
        assert clock(seconds * 1_000_000_000 + 7_000_000) == told
    year_10000 = 253_402_300_800
    assert clock((year_10000 + 3661) * 1_000_000_000) == "01:01:01.000"
