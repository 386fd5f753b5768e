"""Which of many like cases a reader's test run takes; the others are left to ``.ci/run``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import pytest

Case = TypeVar("Case", str, Path)


def one_in(count: int, cases: Iterable[Case]) -> list[Case]:
    """One in ``count`` of recordings, or of their names: by a checksum of the name, the same in every run."""
    return [case for case in cases if crc32(Path(str(case)).name.encode()) % count == 0]


def third_of(ways: Iterable[str], name: str) -> list[str]:
    """Every third of the ways to look at a recording, beginning with one that depends on its name: each recording meets
    as many ways as any other, and each way a third of the recordings."""
    return [way for index, way in enumerate(ways) if (crc32(name.encode()) + index) % 3 == 0]


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
