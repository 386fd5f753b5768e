"""Group events as JSON-ready dicts, ``schema_version`` 1."""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.export.json_objects import SCHEMA_VERSION, Json, of_cluster, packet_json
from kwiresniff.export.times import rfc3339
from kwiresniff.results.groups import GroupEvent


def group_event_json(event: GroupEvent, files: Sequence[str] = ()) -> Json:
    """One event; what depends on its kind stands under ``details``."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "group_event",
        "group": event.group,
        **of_cluster(event.cluster),
        "protocol": event.protocol,
        "event": event.event,
        "time": rfc3339(event.timestamp_ns),
        "timestamp_ns": event.timestamp_ns,
        **packet_json(event.packet, files),
        "client_id": event.client_id,
        "client": event.client,
        "broker": event.broker,
        "member_id": event.member_id,
        "group_instance_id": event.instance_id,
        "generation": event.generation,
        "details": event.details,
    }
