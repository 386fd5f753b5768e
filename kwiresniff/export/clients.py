"""Clients and audit rows as JSON-ready dicts, ``schema_version`` 1."""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.export.json_objects import (
    SCHEMA_VERSION,
    Json,
    names_json,
    of_cluster,
    packet_json,
    software_json,
    span_json,
)
from kwiresniff.export.times import rfc3339
from kwiresniff.results.clients import ApiUse, AuditFinding, AuditRow, Client


def client_json(client: Client, files: Sequence[str] = ()) -> Json:
    """A client of the inventory."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "client",
        **_identity(client),
        "connections": client.connections,
        "exchanges": client.exchanges,
        "errors": client.errors,
        "unanswered": client.unanswered,
        "bytes": {"to_broker": client.request_bytes, "to_client": client.response_bytes},
        "apis": [_use(use, files) for use in client.uses],
        "settings": [
            {"name": one.name, "value": one.value, "estimated": one.estimated, "since": rfc3339(one.since_ns)}
            for one in client.settings
        ],
        "topics": list(client.topics),
        "groups": list(client.groups),
        "transactional_ids": list(client.transactional_ids),
        **span_json(client.first_ns, client.last_ns),
    }


def audit_json(row: AuditRow, target: str, files: Sequence[str] = ()) -> Json:
    """A client with the verdict on it."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "audit",
        "target": target,
        "verdict": row.verdict,
        "reason": row.reason,
        **_identity(row.client),
        "findings": [_finding(finding, files) for finding in row.findings],
    }


def _identity(client: Client) -> Json:
    return {
        "role": client.kind,
        "client_id": client.client_id,
        "address": client.address,
        "broker": client.broker,
        **({} if client.node_id is None else {"node_id": client.node_id}),
        **({"address_names": names_json(client.address_names)} if client.address_names else {}),
        **({"broker_names": names_json(client.broker_names)} if client.broker_names else {}),
        **of_cluster(client.cluster),
        **({} if client.proxied is None else {"proxied": client.proxied}),
        **software_json(client.software),
        "negotiates": client.negotiates,
        "sasl": client.sasl,
        "tls": client.tls,
    }


def _use(use: ApiUse, files: Sequence[str]) -> Json:
    return {
        "api_key": use.api_key,
        "api": use.api,
        "api_version": use.version,
        "count": use.count,
        "errors": use.errors,
        **packet_json(use.packet, files, "first_packet"),
        "first_time": rfc3339(use.first_ns),
    }


def _finding(finding: AuditFinding, files: Sequence[str]) -> Json:
    return {
        "breaks": finding.breaks,
        "reason": finding.reason,
        **_use(finding.use, files),
        "target_versions": None if finding.offered is None else list(finding.offered),
    }
