"""Meanings of values, shown beside them: names of codes, times, durations, sizes, topics behind their ids.

The enumeration that the definitions name for a field comes first; a value it does not list, and a field without
one, follows from what the field's name says about its unit. A meaning is one short phrase, or empty when the value
speaks for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from kwiresniff import schema
from kwiresniff.base.known_ids import ZERO_UUID
from kwiresniff.model import TopicNames
from kwiresniff.schema.types import WireField

Meaning = Callable[[Any], str]

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

#: Sizes below this read well enough in bytes.
SMALLEST_READABLE_SIZE = 1024
#: Unit, its milliseconds, and from how many milliseconds on it is used; less than a second reads well as the value.
_DURATION_UNITS = (
    ("days", 86_400_000, 2 * 86_400_000),
    ("h", 3_600_000, 3_600_000),
    ("min", 60_000, 60_000),
    ("s", 1000, 1000),
)
_SHORTEST_MS = min(least for _, _, least in _DURATION_UNITS)
_SIZE_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The end of the year 9999, the last a calendar can name.
_LAST_TIMESTAMP_MS = 253_402_300_799_999

#: Points in time whose names do not contain "timestamp".
_TIMES = frozenset({"log_append_time_ms", "transaction_start_time_ms", "next_rebalance_ms"})
#: Sizes whose names do not end in "_bytes".
_SIZES = frozenset({"size", "partition_size"})

#: Error codes whose meaning is kept: Kafka has some hundred and thirty.
_CODES = 256
#: Fields with a meaning of their own, kept ready; all definitions together have about a thousand.
_KINDS_OF_FIELD = 4096


def meaning_of(field: WireField, value: Any, topic_name: TopicNames | None = None) -> str:
    """The meaning of one value of a field; ``topic_name`` knows what topic ids the capture has shown."""
    if field.type == "UUID":
        return _uuid_meaning(field.name, value, topic_name)
    find = _meaning_by(field.name, field.type, field.enum)
    return find(value) if find else ""


def has_meaning(field: WireField) -> bool:
    """Whether values of a field may have a meaning."""
    return field.type == "UUID" or _meaning_by(field.name, field.type, field.enum) is not None


@lru_cache(_KINDS_OF_FIELD)
def _meaning_by(name: str, wire_type: str, enum: str) -> Meaning | None:
    """The function for the meaning of a field's values, or None when they have none."""
    if enum == "error_code":
        return error_meaning
    unit = _unit(name, wire_type)
    if not enum:
        return unit
    return lambda value: schema.enum_value(enum, value) or (unit(value) if unit else "")


def _unit(name: str, wire_type: str) -> Meaning | None:
    if wire_type not in ("INT32", "INT64"):
        return None
    if wire_type == "INT64" and ("timestamp" in name or name in _TIMES):
        return time_meaning
    if name.endswith("_ms"):
        return duration_meaning
    if name.endswith("_bytes") or name in _SIZES:
        return size_meaning
    return None


def _uuid_meaning(name: str, value: str, topic_name: TopicNames | None) -> str:
    if value == ZERO_UUID:
        return "none"
    return (topic_name(value) or "") if topic_name and "topic" in name else ""


@lru_cache(_CODES)
def error_meaning(code: int) -> str:
    """The name of an error code and whether it is retriable: ``NOT_LEADER_OR_FOLLOWER (retriable)``."""
    error = schema.error(code)
    return f"{error.name} (retriable)" if error.retriable else error.name


def time_meaning(milliseconds: int) -> str:
    """``milliseconds`` since 1970 as a time in UTC; empty for what is before it or no calendar holds."""
    if not 0 <= milliseconds <= _LAST_TIMESTAMP_MS:
        return ""
    # Without the offset from UTC; strftime would take three times as long.
    return f"{(_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(' ', 'milliseconds')[:-6]} UTC"


def duration_meaning(milliseconds: int) -> str:
    """``milliseconds``, a second or more, in the largest unit that suits it: ``1.5 s``, ``5 min``, ``7 days``."""
    if milliseconds < _SHORTEST_MS:
        return ""
    if milliseconds in (INT32_MAX, INT64_MAX):
        return "no limit"
    for unit, size, least in _DURATION_UNITS:
        if milliseconds >= least:
            number = milliseconds / size
            return f"{number:.4g} {unit}" if number < 1000 else f"{number:.0f} {unit}"
    return ""


def size_meaning(size: int) -> str:
    """A size of a kibibyte or more: ``50 MiB``."""
    if size in (INT32_MAX, INT64_MAX):
        return "no limit"
    if size < SMALLEST_READABLE_SIZE:
        return ""
    power = min(len(_SIZE_UNITS), (size.bit_length() - 1) // 10)
    return f"{size / 1024**power:.4g} {_SIZE_UNITS[power - 1]}"
