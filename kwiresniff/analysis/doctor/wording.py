"""Phrases that findings share: durations, times of day, lists that do not grow."""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.base.time_units import DAY_NS, SECOND_NS

#: Names in a list that is read; what is more is counted.
MAX_LISTED = 6
#: Messages of brokers that a finding quotes.
MAX_MESSAGES = 3


def duration(ns: int) -> str:
    """``2.06 s``, ``350 ms``, ``0.33 ms``."""
    if ns >= 100_000_000_000:
        return f"{ns / 1e9:.0f} s"
    if ns >= 1_000_000_000:
        return f"{ns / 1e9:.3g} s"
    return f"{ns / 1e6:.3g} ms"


def clock(ns: int) -> str:
    """The time of day, to a millisecond, in UTC as everywhere; of any year, as a damaged capture may have it."""
    seconds, rest = divmod(ns % DAY_NS, SECOND_NS)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest // 1_000_000:03d}"


def span(first_ns: int, last_ns: int) -> str:
    """`` at 07:29:22.749`` or `` from 07:29:22.749 to 07:29:24.935``."""
    if last_ns - first_ns < 1_000_000:
        return f" at {clock(first_ns)}"
    return f" from {clock(first_ns)} to {clock(last_ns)}"


def listed(names: Sequence[str], most: int = MAX_LISTED) -> str:
    """``a, b and 7 more``."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return ", ".join(names)


def times(count: int) -> str:
    """``once``, ``twice``, ``7 times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def counted(number: int, noun: str) -> str:
    """``1 join``, ``7 joins``."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def broker_says(messages: Sequence[str]) -> list[str]:
    """Details of a finding: the first of the messages with which a broker explains itself."""
    return [f"the broker says: {message}" for message in messages[:MAX_MESSAGES]]
