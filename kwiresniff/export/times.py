"""RFC 3339 times with nine digits and Z, from nanoseconds since the epoch."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from kwiresniff.base.time_units import DAY_NS, EPOCH_ORDINAL, SECOND_NS

_DAY_S = DAY_NS // SECOND_NS


@lru_cache(maxsize=64)
def _day_text(day: int) -> str | None:
    try:
        return date.fromordinal(EPOCH_ORDINAL + day).isoformat()
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=64)
def _seconds_text(seconds: int) -> str | None:
    """The part up to the decimal point. Packets come in time order, so the same second is asked for over and over."""
    day = seconds // _DAY_S
    text = _day_text(day)
    if text is None:
        return None
    second = seconds - day * _DAY_S
    hour, minute = second // 3600, second // 60 % 60
    # Digits with zeros before them: a third of what a format takes.
    digits = str(1_000_000 + hour * 10_000 + minute * 100 + second % 60)
    return f"{text}T{digits[1:3]}:{digits[3:5]}:{digits[5:7]}."


def rfc3339(timestamp_ns: int) -> str | None:
    """``1700000000000000001`` as ``2023-11-14T22:13:20.000000001Z``; None for what lies outside years 1 to 9999."""
    seconds = timestamp_ns // SECOND_NS
    text = _seconds_text(seconds)
    return None if text is None else f"{text}{str(timestamp_ns - seconds * SECOND_NS + SECOND_NS)[1:]}Z"
