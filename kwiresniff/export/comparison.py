"""A comparison of two captures as a JSON-ready dict, ``schema_version`` 1."""

from __future__ import annotations

from kwiresniff.export.json_objects import SCHEMA_VERSION, Json, span_json
from kwiresniff.results.comparison import Change, Comparison, Side


def comparison_json(comparison: Comparison) -> Json:
    """Both sides, what changed, what may have changed, and how much was compared."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "diff",
        "before": _side(comparison.before),
        "after": _side(comparison.after),
        "changes": [_change(one) for one in comparison.changes],
        "doubtful": [_change(one) for one in comparison.doubtful],
        "compared": comparison.compared,
        "left_out": comparison.left_out,
    }


def _side(side: Side) -> Json:
    return {
        "name": side.name,
        "files": list(side.files),
        "exchanges": side.exchanges,
        **(span_json(side.first_ns, side.last_ns) if side.exchanges else span_json(None, None)),
    }


def _change(change: Change) -> Json:
    return {
        "section": change.section,
        "severity": change.severity,
        "what": change.what,
        "subject": change.subject,
        "measure": change.measure or None,
        "unit": change.unit,
        "before": change.before,
        "after": change.after,
        "chance": change.chance,
        "greater": change.greater,
        "counts": None if change.counts is None else {"before": change.counts[0], "after": change.counts[1]},
        "note": change.note or None,
        "parts": [_change(one) for one in change.parts],
        "same": list(change.same),
    }
