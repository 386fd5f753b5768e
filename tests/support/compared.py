"""Two captures compared, and captures in which a broker takes longer than in the recording that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kwiresniff.analysis.cluster_evidence import learn_cluster
from kwiresniff.analysis.comparison.compare import compare
from kwiresniff.analysis.comparison.survey import Found, Survey
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.base.flows import reverse
from kwiresniff.identity.clusters import Clusters
from kwiresniff.identity.copies import Copies
from kwiresniff.identity.held_events import HeldEvents
from kwiresniff.model import Segment
from kwiresniff.results.comparison import Comparison
from kwiresniff.session import Analyzer
from tests.support.cuts import from_clients
from tests.support.events import analyze_with


def surveyed(segments: Sequence[Segment]) -> Found:
    """What ``diff`` collects of a capture."""
    clusters = Clusters()
    analyzer = Analyzer(Survey.NEEDS)
    survey = Survey(analyzer.topics.name, (), clusters)
    held = HeldEvents(Copies(CallingSink(survey.exchange, survey.add)), clusters, partial(learn_cluster, clusters))
    analyzer.give_to(held)
    for _ in analyze_with(analyzer, segments):
        pass
    held.release()
    return survey.found()


def compared(before: Sequence[Segment], after: Sequence[Segment]) -> Comparison:
    """One capture compared with another."""
    return compare(surveyed(before), surveyed(after), ("before", "after"), ([], []))


def slowed(segments: Sequence[Segment], port: int, by_ns: int) -> list[Segment]:
    """The same, had each answer of the broker on that port taken so much longer.

    A connection goes on as much later as all its answers so far took longer, as with a client that has one request in
    flight.
    """
    clients = from_clients(segments)
    later: dict[bytes, int] = {}
    asked: dict[bytes, bool] = {}
    moved = []
    for segment in segments:
        flow, has_data = segment[2], segment[8] > segment[7]
        there = flow if flow in clients else reverse(flow)
        if int.from_bytes(there[-2:]) == port and has_data:
            if flow != there and asked.get(there):
                later[there] = later.get(there, 0) + by_ns
            asked[there] = flow == there
        moved.append((segment[0], segment[1] + later.get(there, 0), *segment[2:]))
    return sorted(moved, key=lambda one: one[1])
