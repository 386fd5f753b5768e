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


def sampled(cases: Iterable[Any], every: int = 12, first: int = 4) -> list[Any]:
    """All cases of a grid of many small ones, of which the ``first`` and each ``every``-th are quick.

    Those left out are run as plain Python, too, where the quick tests of their room are.
    """
    marks = [pytest.mark.slow, pytest.mark.sampled]
    return [
        case if index < first or index % every == 0 else pytest.param(case, marks=marks)
        for index, case in enumerate(cases)
    ]


def slow_if(cases: Iterable[Any], *slow: Any) -> list[Any]:
    """All cases, of which those named are slow."""
    return [pytest.param(case, marks=pytest.mark.slow) if case in slow else case for case in cases]
