"""Findings as JSON-ready dicts, ``schema_version`` 1."""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.export.json_objects import SCHEMA_VERSION, Json, file_name
from kwiresniff.export.times import rfc3339
from kwiresniff.model import packet_number
from kwiresniff.results.findings import Finding

#: What of a finding's scope is written.
KINDS = ("client", "broker", "topic", "group")


def finding_json(finding: Finding, files: Sequence[str] = (), *, reasons: bool = False) -> Json:
    """One finding with the packets that show it, and what else it explains; with ``reasons`` also what was observed,
    and what spoke for and against the cause."""
    evidence: list[Json] = []
    for packet, ns in finding.evidence:
        place: Json = {"file": file_name(packet, files)} if len(files) > 1 else {}
        evidence.append({**place, "packet": packet_number(packet), "time": rfc3339(ns), "timestamp_ns": ns})
    why: Json = {name: list(getattr(finding, name)) for name in ("observed", "supports", "contradicts")}
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "finding",
        "severity": finding.severity,
        "code": finding.code,
        "subject": finding.subject,
        "title": finding.title,
        "details": list(finding.details),
        "count": finding.count,
        "first_time": rfc3339(finding.first_ns) if finding.first_ns else None,
        "first_timestamp_ns": finding.first_ns or None,
        "last_time": rfc3339(finding.last_ns) if finding.last_ns else None,
        "last_timestamp_ns": finding.last_ns or None,
        **{f"{kind}s": finding.named(kind) for kind in KINDS},
        "numbers": finding.numbers,
        "evidence": evidence,
        "remedy": finding.remedy,
        **(why if reasons else {}),
        "symptoms": [finding_json(one, files, reasons=reasons) for one in finding.symptoms],
    }
