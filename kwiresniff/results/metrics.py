"""Metric families as a monitoring system collects them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric family with all its samples at this moment.

    ``samples`` are ``(label_values, value)``; a histogram's value is ``(counts, sum)``, its counts not yet added up,
    one for each of ``bounds`` and one for what is beyond the last.
    """

    name: str
    help: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    samples: Sequence[tuple[tuple[str, ...], Any]]
    bounds: tuple[float, ...] = ()
