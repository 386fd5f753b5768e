"""The events of ``follow`` as JSON-ready dicts, ``schema_version`` 1."""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.export.json_objects import SCHEMA_VERSION, Json, packet_json
from kwiresniff.export.times import rfc3339
from kwiresniff.results.follow import FollowEvent


def follow_event_json(event: FollowEvent, before_ns: int | None, files: Sequence[str] = ()) -> Json:
    """One event; ``before_ns`` is the time of the event before, None for the first. ``details`` depend on the event."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "follow_event",
        "time": rfc3339(event.timestamp_ns),
        "timestamp_ns": event.timestamp_ns,
        "delta_ns": None if before_ns is None else event.timestamp_ns - before_ns,
        "connection": event.connection,
        "client": event.client,
        "broker": event.broker,
        "from": "client" if event.from_client else "broker",
        "event": event.event,
        **packet_json(event.packet, files),
        "details": event.details,
    }
