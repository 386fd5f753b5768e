"""Which of many like cases a reader's test run takes; the others are left to ``.ci/run``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest


def one_in(count: int, cases: Iterable[Any]) -> list[Any]:
    """One in ``count`` of the cases, chosen by a checksum of the names in each, the same in every run.

    Of a grid of recordings and what is done to them each row and each column keeps about that share.
    """

    def name(case: Any) -> str:
        return case if isinstance(case, str) else case.name if isinstance(case, Path) else " ".join(map(name, case))

    return [case for case in cases if crc32(name(case).encode()) % count == 0]


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
