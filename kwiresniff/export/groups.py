"""Group events as JSON-ready dicts, ``schema_version`` 1."""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.export.json_objects import SCHEMA_VERSION, Json, file_name, of_cluster
from kwiresniff.export.times import rfc3339
from kwiresniff.model import packet_number
from kwiresniff.results.groups import GroupEvent


def group_event_json(event: GroupEvent, files: Sequence[str] = ()) -> Json:
    """One event; what depends on its kind stands under ``details``."""
    result: Json = {
        "schema_version": SCHEMA_VERSION,
        "kind": "group_event",
        "group": event.group,
        **of_cluster(event.cluster),
        "protocol": event.protocol,
        "event": event.event,
        "time": rfc3339(event.timestamp_ns),
        "timestamp_ns": event.timestamp_ns,
    }
    if len(files) > 1:
        result["file"] = file_name(event.packet, files)
    result["packet"] = packet_number(event.packet)
    result["client_id"] = event.client_id
    result["client"] = event.client
    result["broker"] = event.broker
    result["member_id"] = event.member_id
    result["group_instance_id"] = event.instance_id
    result["generation"] = event.generation
    result["details"] = event.details
    return result
