"""What a monitoring system gets: totals that agree with the exchanges, in a bounded number of series."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from kwiresniff.analysis import metrics as module
from kwiresniff.analysis.metrics import BOUNDS, Metrics
from kwiresniff.analysis.top_k import TopK
from kwiresniff.base.placeholders import OTHERS
from kwiresniff.capture import open_captures
from kwiresniff.model import Connection, Event, Exchange, Message, Problem
from kwiresniff.results.metrics import Metric
from kwiresniff.session.fetch_sessions import FetchSession
from tests.support.events import analyze

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
SECOND_NS = 1_000_000_000


def events(name: str) -> list[Event]:
    return list(analyze(open_captures([str(CAPTURES / name)]), depth="errors", topics=True))


def collected(metrics: Metrics) -> dict[str, Metric]:
    return {metric.name: metric for metric in metrics.collect()}


def exchange(client_id: str, latency_ns: int = 0, at_ns: int = SECOND_NS, waiting: str = "") -> Exchange:
    request = Message(1, at_ns, 1, at_ns, 10, None)
    response = Message(2, at_ns + latency_ns, 2, at_ns + latency_ns, 20, None)
    one = Exchange(Connection(1, "10.0.0.1:1", "10.0.0.2:9092"), 3, 9, 0, client_id, request, response)
    one.api, one.waiting = "Metadata", waiting
    return one


def test_the_totals_are_the_exchanges() -> None:
    metrics, found = Metrics(), events("java-produce.pcap")
    for event in found:
        metrics.add(event)
    exchanges = [event for event in found if isinstance(event, Exchange)]
    families = collected(metrics)
    assert dict(families["exchanges"].samples) == Counter((one.api, one.outcome) for one in exchanges)
    assert dict(families["errors"].samples) == {
        ("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS"): 1,
        ("Produce", "MESSAGE_TOO_LARGE"): 1,
    }
    sizes = sum(one.request.size_bytes for one in exchanges if one.request)
    for name in ("request_bytes", "client_request_bytes", "broker_request_bytes"):
        assert sum(value for _, value in families[name].samples) == sizes
    assert families["connections_ended"].samples == [(("kafka",), sum(isinstance(one, Connection) for one in found))]
    topics = dict(families["topic_exchanges"].samples)
    assert topics == Counter((topic,) for one in exchanges for topic in one.topics)
    assert all(not topic.startswith("(") for (topic,) in topics)


@pytest.mark.parametrize(("latency_ns", "bucket"), [(0, 0), (500_000, 0), (500_001, 1), (31 * SECOND_NS, len(BOUNDS))])
def test_a_latency_counts_in_the_bucket_whose_bound_it_does_not_exceed(latency_ns: int, bucket: int) -> None:
    metrics = Metrics()
    metrics.add(exchange("a", latency_ns))
    ((labels, (counts, total)),) = collected(metrics)["latency_seconds"].samples
    assert (labels, counts.index(1), sum(counts)) == (("Metadata",), bucket, 1)
    assert total == pytest.approx(max(latency_ns, 0) / 1e9)


def test_what_a_broker_held_back_is_timed_apart() -> None:
    metrics = Metrics()
    metrics.add(exchange("a", SECOND_NS // 2, waiting="long poll"))
    families = collected(metrics)
    ((labels, (counts, total)),) = families["held_back_seconds"].samples
    assert (labels, sum(counts), total) == (("Metadata", "long poll"), 1, 0.5)
    assert sum(families["latency_seconds"].samples[0][1][0]) == 0


def test_queue_and_broker_time_are_parts_of_the_latency() -> None:
    """Of 500 ms, 300 were queued; the rest is the broker's, by API and by broker."""
    metrics = Metrics()
    one = exchange("a", SECOND_NS // 2)
    one.queued, one.held = 300_000_000, 0
    metrics.add(one)
    families = collected(metrics)
    sums = {name: families[name].samples[0][1][1] for name in ("latency_seconds", "queued_seconds")}
    assert sums == {"latency_seconds": 0.5, "queued_seconds": 0.3}
    assert families["broker_time_seconds"].samples[0][1][1] == pytest.approx(0.2)
    ((labels, (counts, total)),) = families["broker_broker_time_seconds"].samples
    assert (labels, sum(counts), total) == (("10.0.0.2:9092",), 1, pytest.approx(0.2))


def test_problems_and_the_bytes_they_cost_are_counted() -> None:
    metrics = Metrics()
    metrics.add(Problem("gap", "", details={"missing_bytes": 100, "skipped_bytes": 7}))
    metrics.add(Problem("gap", "", details={"missing_bytes": 20, "skipped_bytes": 0}))
    families = collected(metrics)
    assert families["problems"].samples == [(("gap",), 2)]
    assert dict(families["lost_bytes"].samples) == {("missing",): 120, ("skipped",): 7}


def test_clients_beyond_the_limit_share_a_series() -> None:
    metrics = Metrics(series=2)
    for client_id in ["a", "b", "c", "d", "c", OTHERS]:
        metrics.add(exchange(client_id))
    counts = dict(collected(metrics)["client_exchanges"].samples)
    assert counts == {("a", "10.0.0.1"): 1, ("b", "10.0.0.1"): 1, (OTHERS, OTHERS): 4}


def test_series_pass_to_clients_that_are_busier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a minute of the traffic's own time, and no total ever falls but that of a series that goes."""
    metrics = Metrics(series=2)
    for client_id in ["quiet", "steady", *["steady"] * 3, *["newcomer"] * 5]:
        metrics.add(exchange(client_id))
    before = dict(collected(metrics)["client_exchanges"].samples)
    metrics.add(exchange("newcomer", at_ns=SECOND_NS + module.REVIEW_NS))
    after = dict(collected(metrics)["client_exchanges"].samples)
    assert before == {("quiet", "10.0.0.1"): 1, ("steady", "10.0.0.1"): 4, (OTHERS, OTHERS): 5}
    assert after == {("steady", "10.0.0.1"): 4, ("newcomer", "10.0.0.1"): 1, (OTHERS, OTHERS): 5}


def test_error_names_are_bounded() -> None:
    metrics = Metrics()
    for code in range(module.MAX_NAMES + 10):
        one = exchange("a")
        one.errors = [("error_code", code, f"CODE_{code}", False)]
        metrics.add(one)
    errors = dict(collected(metrics)["errors"].samples)
    assert len(errors) == module.MAX_NAMES + 1
    assert errors[("Metadata", OTHERS)] == 10


def test_a_key_like_that_of_the_others_has_no_row_of_its_own() -> None:
    table = TopK(5, (OTHERS,), list[int])
    table.row((OTHERS,)).append(1)
    table.row(("a",)).append(2)
    assert table.rows() == [(("a",), [2]), ((OTHERS,), [1])]


def test_a_long_name_is_cut_and_still_tells_two_apart() -> None:
    """Names are cut before they are kept, in series and in candidates alike."""
    metrics = Metrics()
    for size in (32_000, 31_999, module.MAX_LABEL_CHARS):
        one = exchange("x" * size)
        one.topics = ("t" * size,)
        metrics.add(one)
    families = collected(metrics)
    for name in ("client_exchanges", "topic_exchanges"):
        first, second, third = [labels[0] for labels, _ in families[name].samples]
        assert [len(label) for label in (first, second, third)] == [209, 209, 200]
        assert first != second
    assert re.fullmatch("x{200}#[0-9a-f]{8}", module.label("x" * 32_000))


def test_a_fetch_counts_for_the_first_topics_of_a_large_session_and_all_that_it_names() -> None:
    """An empty fetch adds the same number of counts for any session beyond the limit."""
    session, names = FetchSession(is_whole=True), [f"t-{number}" for number in range(module.MAX_OF_SESSION + 100)]
    session.add([{"topic": name, "partitions": [0]} for name in names])
    metrics, one = Metrics(series=1_000), exchange("c")
    one.topics, one.fetched = (names[-1],), session.content()
    metrics.add(one)
    counted = dict(collected(metrics)["topic_exchanges"].samples)
    assert counted == {(name,): 1 for name in [*names[: module.MAX_OF_SESSION], names[-1]]}
