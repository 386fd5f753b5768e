"""Settings of clients as recordings and made-up traffic tell them.

What is expected of recordings is what their programs (captures/recipes/clients) set, or Kafka's default.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.analysis.client_settings import MAX_SAMPLED, MAX_TEXT_CHARS, MAX_VALUES, ClientSettings
from tests.support.command import Run
from tests.support.exchanges import START_NS, exchange

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
MS = 1_000_000


def settings_of(kwiresniff: Run, file: str, client_id: str) -> dict[str, tuple[Any, bool]]:
    """Value and whether it is estimated, by name, of the busiest entry with that client id."""
    done = kwiresniff("clients", "-o", "jsonl", "-Y", f"client_id == {client_id}", str(CAPTURES / file))
    client = json.loads(done.out.partition("\n")[0])
    return {one["name"]: (one["value"], one["estimated"]) for one in client["settings"]}


def test_a_consumer_tells_its_settings(kwiresniff: Run) -> None:
    """The program sets all of these but the isolation level, the minimum and the strategy."""
    found = settings_of(kwiresniff, "incidents/slow-polls-classic.pcap.xz", "packer-slow")
    assert found["max.poll.interval.ms"] == (3000, False)
    assert found["fetch.max.wait.ms"] == (400, False)
    assert found["session.timeout.ms"] == (45_000, False)
    assert found["fetch.min.bytes"] == (1, False)
    assert found["isolation.level"] == ("read_uncommitted", False)
    assert found["partition.assignment.strategy"] == ("range,cooperative-sticky", False)


@pytest.mark.parametrize(
    ("file", "client_id", "name", "least", "most"),
    [
        ("incidents/churn-classic.pcap.xz", "packer-steady", "heartbeat.interval.ms", 500, 520),  # set: 500
        ("incidents/topic-deleted.pcap.xz", "report", "heartbeat.interval.ms", 3000, 3100),  # the default: 3000
        ("incidents/offsets-set.pcap.xz", "report", "auto.commit.interval.ms", 1000, 1200),  # set: 1000
        ("incidents/hot-partition.pcap.xz", "tracker", "batch.size", 900, 1000),  # set: 1000
    ],
)
def test_what_no_request_says_is_estimated(
    kwiresniff: Run, file: str, client_id: str, name: str, least: int, most: int
) -> None:
    value, estimated = settings_of(kwiresniff, file, client_id)[name]
    assert estimated
    assert least <= value <= most


def test_requests_in_flight_are_counted(kwiresniff: Run) -> None:
    """librdkafka was given max.in.flight 60, a Java producer one request at a time."""
    pipelined = settings_of(kwiresniff, "latency/client.pcap.xz", "pipelined")
    assert 50 <= pipelined["max.in.flight.requests.per.connection"][0] <= 60
    serial = settings_of(kwiresniff, "latency/client.pcap.xz", "serial")
    assert serial["max.in.flight.requests.per.connection"] == (1, True)


def test_a_node_of_the_cluster_has_no_settings(kwiresniff: Run) -> None:
    done = kwiresniff("clients", "-o", "jsonl", str(CAPTURES / "cluster-inside.pcap.xz"))
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [one["settings"] for one in rows if one["role"] == "broker"] == [[]] * sum(
        one["role"] == "broker" for one in rows
    )


def produce(number: int, first_ms: int, last_ms: int, size: int, at_ms: int, **more: Any) -> Any:
    """A Produce with a batch of three records, sent so many milliseconds after the start."""
    batch = {
        "compression": "none", "producer_id": -1, "records_count": 3, "size_bytes": size, "base_timestamp": first_ms,
        "max_timestamp": last_ms,
    }  # fmt: skip
    body = {
        "acks": more.pop("acks", -1),
        "timeout_ms": 30_000,
        "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": [batch]}]}],
    }
    start_ns = START_NS + at_ms * MS
    return exchange("Produce", 0, 9, correlation_id=number, request=body, start_ns=start_ns, **more)


def test_a_producer_that_gathers_records_has_its_linger_estimated() -> None:
    """Each tenth of a second a batch with records of 20 ms, none of them full."""
    settings = ClientSettings()
    for number in range(20):
        settings.take(produce(number, number * 100, number * 100 + 20, 1000 + 37 * (number % 7) ** 3, number * 100))
    found = {one.name: one.value for one in settings.settings()}
    assert found["linger.ms"] == 20
    assert "batch.size" not in found


def test_records_that_gather_behind_a_slow_answer_say_nothing_of_linger() -> None:
    """Each request is sent when the answer to the one before has come."""
    settings = ClientSettings()
    for number in range(20):
        one = produce(
            number, number * 100, number * 100 + 90, 1000 + 37 * (number % 7) ** 3, number * 100, latency_ns=99 * MS
        )
        settings.take(one)
    assert "linger.ms" not in {one.name for one in settings.settings()}


def test_a_setting_that_was_changed_has_both_values_in_their_order() -> None:
    before, after = ClientSettings(), ClientSettings()
    before.take(produce(1, 0, 0, 100, 0))
    after.take(produce(1, 0, 0, 100, 5_000, acks=1))
    after.merge(before)
    acks = [(one.value, one.since_ns) for one in after.settings() if one.name == "acks"]
    assert acks == [("all", START_NS), ("1", START_NS + 5_000 * MS)]


def test_what_is_kept_is_bounded() -> None:
    """A client that gives another name each time, and thousands of heartbeats."""
    settings = ClientSettings()
    for number in range(3_000):
        body = {"session_timeout_ms": number, "group_instance_id": "x" * 5_000 + str(number), "protocols": []}
        start_ns = START_NS + number * 1_000 * MS
        settings.take(exchange("JoinGroup", 11, 9, request=body, start_ns=start_ns))
        settings.take(exchange("Heartbeat", 12, 4, request={}, start_ns=start_ns))
    found = settings.settings()
    assert sum(one.name == "session.timeout.ms" for one in found) == MAX_VALUES
    assert {len(str(one.value)) for one in found if one.name == "group.instance.id"} == {MAX_TEXT_CHARS}
    assert [one.value for one in found if one.name == "heartbeat.interval.ms"] == [1_000]
    assert len(settings._heartbeats.values) <= MAX_SAMPLED
