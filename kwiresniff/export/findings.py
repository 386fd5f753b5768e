"""Findings as JSON-ready dicts, ``schema_version`` 1."""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.answers.findings import Finding
from kwiresniff.export.objects import SCHEMA_VERSION, Json, file_name
from kwiresniff.export.times import rfc3339
from kwiresniff.model import packet_number


def finding_json(finding: Finding, files: Sequence[str] = ()) -> Json:
    """One finding with the packets that show it."""
    evidence: list[Json] = []
    for packet, ns in finding.evidence:
        place: Json = {"file": file_name(packet, files)} if len(files) > 1 else {}
        evidence.append({**place, "packet": packet_number(packet), "time": rfc3339(ns), "timestamp_ns": ns})
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "finding",
        "severity": finding.severity,
        "code": finding.code,
        "subject": finding.subject,
        "title": finding.title,
        "count": finding.count,
        "numbers": finding.numbers,
        "evidence": evidence,
        "remedy": finding.remedy,
    }
