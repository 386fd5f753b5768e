"""Metrics of topics: totals that never fall, in a bounded number of series."""

from __future__ import annotations

from typing import Any

from kwiresniff.analysis.topic_metrics import TopicMetrics
from kwiresniff.base.placeholders import OTHERS
from tests.support.exchanges import START_NS, fetched, produced

SECOND_NS = 1_000_000_000
RECORDS = "topic_produced_records"


def produce(topic: str, records: int, at: int) -> Any:
    batch = {"records_count": records, "size_bytes": 10 * records, "base_offset": 0, "compression": "none"}
    return produced([batch], topic=topic, acks=1, start_ns=START_NS + at * SECOND_NS)


def fetch(offset: int, high_watermark: int, at: int) -> Any:
    start_ns = START_NS + at * SECOND_NS
    return fetched([], topic="a", offset=offset, high_watermark=high_watermark, start_ns=start_ns)


def samples(metrics: TopicMetrics, name: str) -> dict[tuple[str, ...], Any]:
    return next(dict(one.samples) for one in metrics.collect() if one.name == name)


def test_counters_never_fall_when_a_topic_gets_a_series_of_its_own() -> None:
    """What was counted of it before stays with the others."""
    metrics = TopicMetrics(series=2)
    metrics.add(produce("a", 5, 0))
    metrics.add(produce("b", 4, 10))
    metrics.add(produce("c", 3, 20))
    assert samples(metrics, RECORDS) == {("a",): 5, ("b",): 4, (OTHERS,): 3}
    metrics.add(produce("c", 100, 30))
    assert samples(metrics, RECORDS) == {("a",): 5, ("b",): 4, (OTHERS,): 103}
    later = TopicMetrics(series=1)
    later.add(produce("a", 1, 0))
    later._own.clear()  # as if its place had been free again
    later.add(produce("b", 50, 10))
    assert samples(later, RECORDS) == {("b",): 50, (OTHERS,): 1}


def test_lag_is_a_gauge_of_those_that_have_one() -> None:
    """High watermark less what is fetched next; nothing of a topic that nobody reads."""
    metrics = TopicMetrics()
    metrics.add(fetch(3, 10, 0))
    metrics.add(produce("b", 1, 10))
    assert samples(metrics, "topic_lag_records") == {("a",): 7}
    assert samples(metrics, "topic_consumers") == {("a",): 1, ("b",): 0}
    assert samples(metrics, "topic_producers") == {("a",): 0, ("b",): 1}


def test_nothing_is_worked_out_before_it_is_time() -> None:
    """Every five seconds by the clock of the packets, which is how old a sample may be."""
    metrics = TopicMetrics()
    metrics.add(produce("a", 1, 0))
    metrics.add(produce("a", 1, 4))
    assert samples(metrics, RECORDS)["a",] == 1
    metrics.add(produce("a", 1, 5))
    assert samples(metrics, RECORDS)["a",] == 3
