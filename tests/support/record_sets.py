"""Record sets decoded in a mode that gives their batches."""

from __future__ import annotations

from typing import Any, Literal

from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.records import decode_record_set
from kwiresniff.model import Problem


def decoded_batches(
    buf: bytes,
    start: int,
    end: int,
    mode: Literal["full", "headers"],
    issues: list[Problem],
    budget: RecordBudget | None = None,
) -> list[dict[str, Any]]:
    """What ``decode_record_set`` gives in every mode but ``skip``."""
    batches = decode_record_set(buf, start, end, mode, issues, budget)
    assert isinstance(batches, list)
    return batches
