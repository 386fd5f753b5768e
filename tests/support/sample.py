"""Which of many like cases a reader's test run takes; the others are left to ``.ci/run``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def mostly_slow(cases: Iterable[Any], every: int = 5) -> list[Any]:
    """All cases, of which only the first and each ``every``-th after it are quick."""
    return [
        case if index % every == 0 else pytest.param(case, marks=pytest.mark.slow) for index, case in enumerate(cases)
    ]


def slow_if(cases: Iterable[Any], *slow: Any) -> list[Any]:
    """All cases, of which those named are slow."""
    return [pytest.param(case, marks=pytest.mark.slow) if case in slow else case for case in cases]
