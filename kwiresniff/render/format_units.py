"""Numbers as a person reads them: durations, sizes, times, counts.

Durations and times come in nanoseconds, sizes in bytes. Three significant digits, never more than eight characters,
so that columns stay narrow and right alignment works. ``KB`` is 1024 bytes, as Kafka's own settings count.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    pass

from kwiresniff.base.time_units import SECOND_NS

_SIZES: Final = ("KB", "MB", "GB", "TB", "PB", "EB")


def duration(nanoseconds: int | None, *, micro: str = "µ") -> str:
    """``873 µs``, ``2.31 ms``, ``1.50 s``, ``2m 05s``, ``3h 12m``; ``-`` for None."""
    if nanoseconds is None:
        return "-"
    if nanoseconds < 0:  # packet timestamps that run backwards
        return "-" + duration(-nanoseconds, micro=micro)
    if nanoseconds < 999_500:
        return f"{_three(nanoseconds / 1e3)} {micro}s"
    if nanoseconds < 999_500_000:
        return f"{_three(nanoseconds / 1e6)} ms"
    if nanoseconds < 99_950_000_000:
        return f"{_three(nanoseconds / 1e9)} s"
    seconds = (nanoseconds + SECOND_NS // 2) // SECOND_NS
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02}s"
    minutes = seconds // 60
    if minutes < 48 * 60:
        return f"{minutes // 60}h {minutes % 60:02}m"
    days = minutes // 1440
    return f"{days}d {minutes // 60 % 24:02}h" if days < 100 else f"{days} d"


def size(count: int | None) -> str:
    """``163 B``, ``3.40 KB``, ``12.5 MB``; ``-`` for None."""
    if count is None:
        return "-"
    if -1024 < count < 1024:
        return f"{count} B"
    power = 1
    while abs(count) >= 1023.5 * 1024**power and power < len(_SIZES):
        power += 1
    return f"{_three(count / 1024**power)} {_SIZES[power - 1]}"


def _three(value: float) -> str:
    """Three significant digits of a value below 1024, without an exponent."""
    if abs(value) < 9.995:
        return f"{value:.2f}"
    if abs(value) < 99.95:
        return f"{value:.1f}"
    return f"{value:.0f}"


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 record``, ``1,234 records``."""
    if number == 1:
        return f"1 {noun}"
    digits = str(number) if -1000 < number < 1000 else f"{number:,}"  # most are small, and this is ten times as fast
    return f"{digits} {plural or noun + 's'}"


def number_ranges(numbers: Iterable[int], between: str = ", ") -> str:
    """``0-3, 7``: ascending numbers, those in a row as a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] + 1 == number:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return between.join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


@lru_cache(maxsize=64)
def _second(seconds: int) -> tuple[str, str]:
    """Date and time of day of a second since the epoch, UTC."""
    # Far outside the years 1 to 9999 there is no calendar to print; record timestamps may claim anything.
    if not -62_135_596_800 <= seconds < 253_402_300_800:
        return "?", f"{seconds} s"
    parts = time.gmtime(seconds)
    return time.strftime("%Y-%m-%d", parts).zfill(10), time.strftime("%H:%M:%S", parts)


def date(timestamp_ns: int) -> str:
    """``2020-07-09``, UTC."""
    return _second(timestamp_ns // SECOND_NS)[0]


def clock(timestamp_ns: int, digits: int = 6) -> str:
    """``13:54:09.428585``, UTC, with 3, 6 or 9 digits of the second."""
    seconds, rest = divmod(timestamp_ns, SECOND_NS)
    return f"{_second(seconds)[1]}.{rest:09}"[: digits - 9 or None]


def instant(timestamp_ns: int, digits: int = 6) -> str:
    """``2020-07-09T13:54:09.428585Z``."""
    seconds, rest = divmod(timestamp_ns, SECOND_NS)
    day, clock_time = _second(seconds)
    return f"{day}T{clock_time}.{f'{rest:09}'[:digits]}Z"
