"""What the doctor remembers of writes, batches and replicas is bounded."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from kwiresniff.analysis.doctor import replica_table
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.troubles import batches, writes
from kwiresniff.analysis.doctor.troubles.batches import Recompression, ResentBatches
from kwiresniff.analysis.doctor.troubles.writes import Writes
from kwiresniff.analysis.memory_budget import MemoryBudget
from kwiresniff.model import Exchange
from tests.support.exchanges import START_NS, connection, fetched, produced

SECOND = 1_000_000_000


def produce(number: int, *, topic: str = "orders", index: int = 0, crc: int = 0, **more: Any) -> Exchange:
    """A Produce of one batch without idempotence, on a connection of its own, that took half a second."""
    batch = {
        "magic": 2, "crc": crc or number + 1, "base_offset": 0, "last_offset_delta": 0, "records_count": 1,
        "size_bytes": 100, "producer_id": -1, "compression": "gzip",
    }  # fmt: skip
    on = connection(number + 1, f"10.0.0.5:{number + 1}", "10.0.0.1:9092")
    times = {"start_ns": START_NS + number * SECOND // 10, "latency_ns": SECOND // 2}
    return produced([batch], topic=topic, index=index, acks=1, offset=number, on=on, **{**times, **more})


def fetch(number: int, client_id: str, index: int = 0) -> Exchange:
    batch = {
        "magic": 2, "crc": 1, "base_offset": number, "last_offset_delta": 0, "records_count": 1, "size_bytes": 90,
        "producer_id": -1, "compression": "none",
    }  # fmt: skip
    return fetched([batch], index=index, client_id=client_id, start_ns=START_NS + 900 * SECOND)


def seen(observer: Any, *exchanges: Exchange) -> Any:
    """The observer after some exchanges, of which each ended its connection, closed by the client."""
    for one in exchanges:
        observer.exchange(one)
    for one in exchanges:
        one.connection.closed_by, one.connection.packets = "client", [5, 5]
        assert one.request is not None
        one.connection.closed_ns = one.request.first_ns + SECOND // 20
        observer.connection(one.connection)
    return observer


def test_late_writes_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further ones are counted among the writes."""
    monkeypatch.setattr(writes, "MAX_LATE", 10)
    (one,) = seen(Writes(Context()), *[produce(number) for number in range(30)]).observations()
    assert (one.numbers["writes"], one.numbers["late"]) == (30, 10)


def test_topics_whose_writes_are_compared_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "MAX_LOGS", 3)
    observer = seen(Writes(Context()), *[produce(number, topic=f"t-{number % 7}") for number in range(70)])
    assert [one.name("topic") for one in observer.observations()] == ["t-0", "t-1", "t-2"]


def test_nodes_of_a_write_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition with as many replicas as anybody may claim."""
    monkeypatch.setattr(writes, "MAX_NODES", 4)
    context, observer = Context(), None
    nodes = list(range(50))
    described = {"partition_index": 0, "replica_nodes": nodes, "isr_nodes": nodes, "leader_id": 0}
    body = {"brokers": [], "topics": [{"name": "orders", "partitions": [described]}]}
    context.replicas.learn("", body, context.topic_of, (1, START_NS))
    made = [produce(number) for number in range(10)]
    for one in made:
        assert one.request is not None and one.request.body is not None
        one.request.body["acks"] = -1
    observer = seen(Writes(context), *made)
    (one,) = observer.observations()
    assert len(one.numbers["nodes"]) == 4


@pytest.mark.parametrize(
    ("limit", "value", "doubled"), [("MAX_PARTITIONS", 2, 2), ("MAX_BATCHES", 6, 5), ("MAX_AGAIN", 2, 2), ("", 0, 5)]
)
def test_batches_that_are_compared_are_bounded(
    limit: str, value: int, doubled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five partitions, each of which gets a batch twice."""
    if limit:
        monkeypatch.setattr(batches, limit, value)
    made = [produce(number, index=number % 5, crc=number % 5 + 1) for number in range(10)]
    (one,) = seen(ResentBatches(Context()), *made).observations()
    assert one.numbers["records_doubled"] == doubled


def test_a_batch_behind_too_many_others_is_not_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCHES", 3)
    for between, told in ((2, 1), (3, 0)):
        made = [produce(0, crc=99), *[produce(1 + one) for one in range(between)], produce(20, crc=99)]
        assert len(list(seen(ResentBatches(Context()), *made).observations())) == told


def test_how_often_a_batch_was_sent_is_counted_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_SENT", 4)
    (one,) = seen(ResentBatches(Context()), *[produce(number, crc=5) for number in range(9)]).observations()
    assert one.numbers["sent_again"] == 3


def test_connections_that_clients_closed_are_forgotten_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that are forgotten nothing shows that the client gave up."""
    monkeypatch.setattr(batches, "MAX_CLOSED", 3)
    made = [produce(number, crc=5) for number in range(9)]
    observer = seen(ResentBatches(Context()), *made)
    (one,) = observer.observations()
    assert one.numbers["given_up_ns"] == SECOND // 20
    monkeypatch.setattr(batches, "MAX_CLOSED", 0)
    (one,) = seen(ResentBatches(Context()), *made).observations()
    assert one.numbers["given_up_ns"] == 0


def test_readers_of_a_partition_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_READERS", 2)
    made = [produce(0, crc=5), produce(5, crc=5)]
    reads = [fetch(offset, f"reader-{name}") for name in range(5) for offset in (0, 5)]
    (one,) = seen(ResentBatches(Context()), *made, *reads).observations()
    assert one.numbers["readers"] == ["reader-0 10.0.0.5", "reader-1 10.0.0.5"]


def test_ranges_of_offsets_with_a_codec_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was produced long before it is fetched is not compared."""
    monkeypatch.setattr(batches, "MAX_RANGES", 2)
    made = [produce(number) for number in range(5)]
    assert list(seen(Recompression(Context()), *made, fetch(0, "reader")).observations()) == []
    (one,) = seen(Recompression(Context()), *made, fetch(4, "reader")).observations()
    assert (one.numbers["produced"], one.numbers["fetched"]) == (["gzip"], ["none"])


@pytest.mark.parametrize("observer", [Writes, ResentBatches, Recompression])
def test_what_is_remembered_stays_within_the_budget(observer: type[Any]) -> None:
    """The budget is charged for no less than the memory that it takes, and what it refuses is not remembered."""
    made = [produce(number, topic=f"topic-{number // 3}", index=number % 3) for number in range(6_000)]
    context = Context()
    made_by = observer(context)
    tracemalloc.start()
    try:
        for one in made:
            made_by.exchange(one)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < context.budget.held_bytes
    full = Context()
    full.budget = MemoryBudget(0)
    made_by = observer(full)
    for one in made[:100]:
        made_by.exchange(one)
    assert list(made_by.observations()) == []


def test_partitions_and_clusters_whose_replicas_are_known_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_table, "MAX_PARTITIONS", 3)
    monkeypatch.setattr(replica_table, "MAX_CLUSTERS", 2)
    context = Context()
    for number in range(9):
        described = {"partition_index": number, "replica_nodes": [1], "isr_nodes": [1], "leader_id": 1}
        body = {"brokers": [{"node_id": 1}], "topics": [{"name": "orders", "partitions": [described]}]}
        context.replicas.learn(f"cluster-{number}", body, context.topic_of, (1, START_NS))
    assert len(list(context.replicas)) == 3
    assert [bool(context.replicas.brokers(f"cluster-{number}")[0]) for number in range(4)] == [True, True, False, False]
