"""RFC 3339 times with nine digits and Z, from nanoseconds since the epoch."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from kwiresniff.base.time_units import DAY_NS, EPOCH_ORDINAL, SECOND_NS

_DAY_S = DAY_NS // SECOND_NS


@lru_cache(maxsize=64)
def _seconds_text(seconds: int) -> str | None:
    """The part up to the decimal point. Packets come in time order, so the same second is asked for over and over."""
    day, second = divmod(seconds, _DAY_S)
    try:
        text = date.fromordinal(EPOCH_ORDINAL + day).isoformat()
    except (ValueError, OverflowError):
        return None
    return f"{text}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}."


def rfc3339(timestamp_ns: int) -> str | None:
    """``1700000000000000001`` as ``2023-11-14T22:13:20.000000001Z``; None for what lies outside years 1 to 9999."""
    seconds = timestamp_ns // SECOND_NS
    text = _seconds_text(seconds)
    return None if text is None else f"{text}{str(timestamp_ns - seconds * SECOND_NS + SECOND_NS)[1:]}Z"
