"""Findings as JSON-ready dicts, ``schema_version`` 1."""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.export.json_objects import SCHEMA_VERSION, Json, of_cluster, packet_json, span_json
from kwiresniff.export.times import rfc3339
from kwiresniff.results.findings import Finding

#: The members of a finding's scope that are written.
KINDS = ("client", "broker", "topic", "group")


def finding_json(finding: Finding, files: Sequence[str] = (), *, reasons: bool = False) -> Json:
    """One finding with the packets that show it, and what else it explains; with ``reasons`` also what was observed,
    and what spoke for and against the cause."""
    evidence = [
        {**packet_json(packet, files), "time": rfc3339(ns), "timestamp_ns": ns} for packet, ns in finding.evidence
    ]
    why: Json = {name: list(getattr(finding, name)) for name in ("observed", "supports", "contradicts")}
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "finding",
        "severity": finding.severity,
        "code": finding.code,
        "subject": finding.subject,
        "title": finding.title,
        **of_cluster(finding.cluster),
        "details": list(finding.details),
        "count": finding.count,
        **span_json(finding.first_ns or None, finding.last_ns or None),
        **{f"{kind}s": finding.named(kind) for kind in KINDS},
        "numbers": finding.numbers,
        "evidence": evidence,
        "remedy": finding.remedy,
        **(why if reasons else {}),
        "symptoms": [finding_json(one, files, reasons=reasons) for one in finding.symptoms],
    }
