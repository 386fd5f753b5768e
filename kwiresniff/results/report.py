"""The content of a report."""

from __future__ import annotations

from dataclasses import dataclass

from kwiresniff.model import Problem
from kwiresniff.results.clients import Client
from kwiresniff.results.findings import Finding
from kwiresniff.results.flows import FlowPicture
from kwiresniff.results.groups import GroupEvent
from kwiresniff.results.stats import StatRow
from kwiresniff.results.topics import Topic


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A slice of time of ``width_ns`` from ``start_ns`` on, and what was counted of the requests that began in it.

    Percentiles are those of the broker's own time, None when there were no answers. Bytes are frame sizes.
    """

    start_ns: int
    width_ns: int
    ok: int
    errors: int
    unanswered: int
    request_bytes: int
    response_bytes: int
    p50_ns: int | None
    p99_ns: int | None
    max_ns: int | None


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a report. What was too much for a page is counted in ``left_out`` by what it is."""

    title: str
    files: tuple[str, ...]
    exchanges: int
    errors: int
    negotiation: int
    unanswered: int
    connections: int
    first_ns: int | None
    last_ns: int | None
    series: tuple[SeriesPoint, ...]
    findings: tuple[Finding, ...]
    stats: tuple[tuple[str, tuple[StatRow, ...]], ...]
    topics: tuple[Topic, ...]
    flows: FlowPicture
    clients: tuple[Client, ...]
    group_events: tuple[GroupEvent, ...]
    problems: tuple[Problem, ...]
    left_out: dict[str, int]
