"""What a row of a table of ``kwiresniff.analysis.stats`` says of itself without working out its percentiles."""

from __future__ import annotations

from typing import Protocol

from kwiresniff.analysis.latency import Histogram


class RowCounts(Protocol):
    """A row, whoever keeps it."""

    count: int
    errors: int
    unanswered: int
    request_bytes: int
    response_bytes: int
    waiting: dict[str, Histogram]

    @property
    def latency(self) -> Histogram: ...

    @property
    def broker(self) -> Histogram: ...
