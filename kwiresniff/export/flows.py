"""Flows as JSON-ready dicts, ``schema_version`` 1."""

from __future__ import annotations

from kwiresniff.export.json_objects import SCHEMA_VERSION, Json, names_json, of_cluster, software_json, span_json
from kwiresniff.export.topics import flow_json, not_taken_json
from kwiresniff.results.flows import Flow


def record_flow_json(flow: Flow) -> Json:
    """A flow: a client or a group at a topic."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "flow",
        "role": flow.role,
        "topic": flow.topic,
        **of_cluster(flow.cluster),
        "client_id": flow.client_id,
        "address": flow.address or None,
        **({"names": names_json(flow.names)} if flow.names else {}),
        **software_json(flow.software),
        "principal": flow.principal,
        "groups": list(flow.groups),
        **flow_json(flow.records, flow.seconds),
        "refused": not_taken_json(flow.refused),
        "repeated": not_taken_json(flow.repeated),
        "errors": flow.errors,
        "unanswered": flow.unanswered,
        "lag": flow.lag,
        "zone": flow.zone,
        "brokers": [
            {
                "broker": one.broker,
                **({"names": names_json(one.names)} if one.names else {}),
                "node_id": one.node_id,
                "zone": one.zone,
                "bytes": one.size_bytes,
            }
            for one in flow.brokers
        ],
        "bytes_across_zones": flow.across_zones,
        **span_json(flow.first_ns, flow.last_ns),
    }
