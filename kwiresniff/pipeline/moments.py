"""Moments as the tables have them: the day and the microseconds since 1970, of times that Spark's calendar holds."""

from __future__ import annotations

from typing import Final

from kwiresniff.base.time_units import DAY_NS
from kwiresniff.model import Exchange

#: Spark and Python have years 1 to 9999, and a column 64 bits of nanoseconds; a capture may claim any time. Year 1 is
#: before what 64 bits hold.
LEAST_NS: Final = -(1 << 63) + 1
MOST_NS: Final = (1 << 63) - 1


def seen_ns(exchange: Exchange) -> int:
    """The moment an exchange counts for: its request's first byte, its response's when the request is missing."""
    message = exchange.request or exchange.response
    return message.first_ns if message is not None else 0


def day_of(ns: int) -> int | None:
    """The UTC day of a moment, counted from 1970; None for what no calendar here can hold."""
    return ns // DAY_NS if LEAST_NS <= ns <= MOST_NS else None


def micros_of(ns: int) -> int | None:
    """Microseconds since 1970, None for what no calendar here can hold."""
    return ns // 1000 if LEAST_NS <= ns <= MOST_NS else None


def nanos_of(ns: int) -> int | None:
    """The nanoseconds themselves, None for what a column cannot hold."""
    return ns if LEAST_NS <= ns <= MOST_NS else None
