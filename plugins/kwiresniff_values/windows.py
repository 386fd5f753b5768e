"""Keys of Kafka Streams that end in a window: of repartition and changelog topics.

A windowed key is the key and the start of the window in 8 bytes (TimeWindowedSerializer); of a session, its end and its
start in 8 bytes each (SessionWindowedSerializer). A window store's changelog has the start and a sequence number of 4
bytes (WindowKeySchema). Times are milliseconds since 1970, big endian.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

REPARTITION, CHANGELOG = "-repartition", "-changelog"
#: Keys of windows that begin in these years; what else ends in eight bytes of such a number is rare.
_EARLIEST_MS = 946_684_800_000  # 2000
_LATEST_MS = 4_102_444_800_000  # 2100
_LONGEST_SESSION_MS = 366 * 86_400_000


class Window(NamedTuple):
    """The ``key`` in front of a window and what is said of the window."""

    key: bytes
    members: dict[str, Any]


def windowed(topic: str | None, data: bytes) -> Window | None:
    """The window at the end of a key, where the topic is one of Kafka Streams' and the bytes are plausible."""
    if topic is None or not topic.endswith((REPARTITION, CHANGELOG)):
        return None
    return _session(data) or (_stored(data) if topic.endswith(CHANGELOG) else None) or of_serializer(data)


def of_serializer(data: bytes) -> Window | None:
    """The window that TimeWindowedSerializer wrote, or None where there is none."""
    start = _time(data, 8)
    return None if start is None else Window(data[:-8], {"start": _text(start), "start_ms": start})


def _session(data: bytes) -> Window | None:
    end, start = _time(data, 16), _time(data, 8)
    if end is None or start is None or not start <= end <= start + _LONGEST_SESSION_MS:
        return None
    times = {"start": _text(start), "end": _text(end), "start_ms": start, "end_ms": end}
    return Window(data[:-16], times)


def _stored(data: bytes) -> Window | None:
    start = _time(data, 12)
    if start is None:
        return None
    sequence = int.from_bytes(data[-4:], "big", signed=True)
    return Window(data[:-12], {"start": _text(start), "start_ms": start, "sequence": sequence})


def _time(data: bytes, from_end: int) -> int | None:
    if len(data) < from_end:
        return None
    begin = len(data) - from_end
    time_ms = int.from_bytes(data[begin : begin + 8], "big")
    return time_ms if _EARLIEST_MS <= time_ms < _LATEST_MS else None


def _text(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
