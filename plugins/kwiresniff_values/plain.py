"""Values of libraries as what JSON knows: dates, decimals, sets and tags as text or structures, within the bounds."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values.limits import MAX_DECIMAL_BITS, MAX_DEPTH, MAX_VALUES

_TEXTS = (UUID, Fraction, ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network)
_MAX_INT64 = 2**63


def class_name(value: Any) -> str:
    """The replacement of a value that has no form in JSON."""
    return f"({type(value).__name__})"


def plain(value: Any, other: Callable[[Any], Any] = class_name) -> Any:
    """A copy of plain values, ``other`` for unknown classes; raises TooMuch beyond depth or number."""
    return _plain(value, 0, [MAX_VALUES], other)


def _plain(value: Any, depth: int, left: list[int], other: Callable[[Any], Any]) -> Any:
    left[0] -= 1
    if left[0] < 0:
        raise TooMuch(f"of more than {MAX_VALUES} values")
    if depth > MAX_DEPTH:
        raise TooMuch(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {_name(name): _plain(member, depth + 1, left, other) for name, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(member, depth + 1, left, other) for member in value]
    return scalar(value, other)


def _name(name: Any) -> str:
    if isinstance(name, bytes):
        return name.decode("utf-8", "replace")
    return name if isinstance(name, str) else str(_plain(name, 1, [MAX_DEPTH], class_name))


def scalar(value: Any, other: Callable[[Any], Any] = class_name) -> Any:
    """One value that holds no others."""
    if value is None or isinstance(value, bool | str | bytes | float):
        return value
    if isinstance(value, int):
        return whole_number(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, re.Pattern):
        return str(value.pattern)
    return str(value) if isinstance(value, _TEXTS) else other(value)


def whole_number(value: int) -> int | str:
    """An integer; as text where it takes more than 64 bits, which most readers of JSON do not keep."""
    if -_MAX_INT64 <= value < _MAX_INT64:
        return value
    return str(value) if value.bit_length() <= MAX_DECIMAL_BITS else hex(value)
