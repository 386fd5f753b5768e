"""RFC 3339 times with nine digits and Z, from nanoseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from kwiresniff.base.time_units import SECOND_NS


@lru_cache(maxsize=64)
def _seconds_text(seconds: int) -> str | None:
    """The part up to the decimal point. Packets come in time order, so the same second is asked for over and over."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    except (ValueError, OverflowError, OSError):
        return None


def rfc3339(timestamp_ns: int) -> str | None:
    """``1700000000000000001`` as ``2023-11-14T22:13:20.000000001Z``; None for what lies outside years 1 to 9999."""
    seconds, fraction = divmod(timestamp_ns, SECOND_NS)
    text = _seconds_text(seconds)
    return None if text is None else f"{text}.{fraction:09d}Z"


class TimeTexts:
    """Times one after another: the text of the second that the last one lay in is kept."""

    def __init__(self) -> None:
        self._second = 0
        self._text = ""
        self._begin(0)

    def text(self, timestamp_ns: int) -> str:
        """What ``rfc3339`` gives, empty for None."""
        second = timestamp_ns // SECOND_NS
        if second != self._second:
            self._begin(second)
        if not self._text:
            return ""
        return f"{self._text}{str(timestamp_ns - second * SECOND_NS + SECOND_NS)[1:]}Z"

    def _begin(self, second: int) -> None:
        self._second = second
        text = _seconds_text(second)
        self._text = "" if text is None else f"{text}."
