"""Durations, sizes and times as people write them, on the command line and in filters.

Durations: ``10us``, ``100ms``, ``1.5s``, ``10m``, ``2h``. Sizes: ``100``, ``64B``, ``1kB`` and ``1MB`` (powers of
1000), ``4KiB`` and ``1MiB`` (powers of 1024); letter case does not matter. Times: RFC 3339 with up to nine digits of
a second; a time without an offset is UTC, a date alone its midnight. Times of day: ``07:24:45`` with up to nine digits
of a second, or ``07:24``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_DURATION = r"([+-]?\d{1,18}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h|d)"
_DURATION_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_SIZE = r"(\d{1,18}(?:\.\d{1,9})?)(b|[kmgt]i?b)?"
_SIZE_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
_TIME = r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?)?(Z|z|[+-]\d\d:\d\d)?"


def duration_ns(text: str) -> int | None:
    """Nanoseconds, or None when the text is not a duration with its unit."""
    match = re.fullmatch(_DURATION, text)
    if match is None:
        return None
    return _scaled(match[1], _DURATION_NS[match[2]])


def size_bytes(text: str) -> int | None:
    """Bytes, or None when the text is not a size; a number alone counts bytes."""
    match = re.fullmatch(_SIZE, text, re.IGNORECASE)
    if match is None:
        return None
    unit = (match[2] or "b").lower()
    base = 1024 if "i" in unit else 1000
    return _scaled(match[1], base ** _SIZE_POWERS.get(unit[0], 0))


def time_ns(text: str) -> int | None:
    """Nanoseconds since the epoch, or None when the text is not a time."""
    match = re.fullmatch(_TIME, text, re.ASCII)
    if match is None:
        return None
    date, clock, fraction, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{date}T{clock or '00:00:00'}{(offset or '').replace('z', 'Z')}")
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def time_of_day_ns(text: str) -> int | None:
    """Nanoseconds since midnight, or None when the text is not a time of day."""
    match = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?Z?", text, re.ASCII)
    if match is None:
        return None
    hours, minutes, seconds, fraction = match.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)
    return whole * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def _scaled(number: str, factor: int) -> int:
    """Exact for every integer; a fraction is rounded towards zero after scaling."""
    whole, _, fraction = number.partition(".")
    result = abs(int(whole)) * factor
    if fraction:
        result += int(fraction) * factor // 10 ** len(fraction)
    return -result if number.startswith("-") else result
