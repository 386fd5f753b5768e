"""Several clusters in one capture: what is counted, told and judged of each by itself."""

from __future__ import annotations

from io import StringIO
from typing import Any

from kwiresniff.analysis.clients import Inventory
from kwiresniff.analysis.doctor import Doctors
from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.analysis.producer_ledger import ProducerLedger
from kwiresniff.analysis.topic_metrics import TopicMetrics
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.export.clients import client_json
from kwiresniff.export.findings import finding_json
from kwiresniff.export.groups import group_event_json
from kwiresniff.export.producers import producer_json
from kwiresniff.export.topics import topic_json
from kwiresniff.model import Exchange
from kwiresniff.render.clients import ClientWriter
from kwiresniff.render.groups import GroupWriter
from kwiresniff.render.producer_blocks import ProducerWriter
from kwiresniff.render.topic_blocks import TopicWriter, topic_columns
from tests.support.brokers import A, C, metadata, on
from tests.support.exchanges import START_NS

MS = 1_000_000
S = 1_000 * MS
NAMED = [metadata(A, "blue", A, client_id="shop"), metadata(C, "green", C, client_id="mirror")]


def produce(broker: str, base: int, at_ms: int, **more: Any) -> Exchange:
    """One record to orders-0, appended at an offset."""
    batch = {"base_offset": 0, "last_offset_delta": 0, "records_count": 1, "size_bytes": 70, "compression": "none"}
    batch |= {"producer_id": 7, "producer_epoch": 0, "base_sequence": base % 100}
    asked = [{"name": "orders", "partition_data": [{"index": 0, "records": [batch]}]}]
    answer = [{"index": 0, "error_code": 0, "base_offset": base}]
    return on(
        broker, api="Produce", api_key=0, api_version=9,
        request={"acks": -1, "transactional_id": None, "topic_data": asked},
        response={"responses": [{"name": "orders", "partition_responses": answer}]},
        start_ns=START_NS + at_ms * MS, **more,
    )  # fmt: skip


def fetch(broker: str, offset: int, high_watermark: int, at_ms: int = 0, **more: Any) -> Exchange:
    asked = [{"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": offset}]}]
    part = {"partition_index": 0, "error_code": 0, "high_watermark": high_watermark, "records": []}
    return on(
        broker, request={"replica_id": -1, "topics": asked},
        response={"responses": [{"topic": "orders", "partitions": [part]}]}, start_ns=START_NS + at_ms * MS, **more,
    )  # fmt: skip


def leave(broker: str, at_ms: int) -> Exchange:
    return on(
        broker, api="LeaveGroup", api_key=13, api_version=1, request={"group_id": "audit", "member_id": "m"},
        response={"error_code": 0}, start_ns=START_NS + at_ms * MS,
    )  # fmt: skip


def test_topics_of_one_name_are_two_with_their_own_lag() -> None:
    """The cluster stands beside the name in the table, in the lines and in JSON, escaped."""
    traffic = TopicTraffic()
    hostile = metadata(C, "green\x1b[31m", C)
    for one in (NAMED[0], hostile, fetch(A, 5_000, 5_000), fetch(C, 40, 43)):
        traffic.exchange(one)
    topics = traffic.topics()
    assert [(topic_json(one)["cluster"], one.lag) for one in topics] == [("blue", 0), ("green\x1b[31m", 3)]
    assert [column.title for column in topic_columns(topics[0])][-1] == "cluster"
    out = StringIO()
    TopicWriter(out, None, False).topics(topics)
    assert "orders  cluster blue  1 partition" in out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_with_one_cluster_nothing_is_said_of_it() -> None:
    """Neither in JSON nor in the lines."""
    traffic = TopicTraffic()
    for one in (NAMED[0], fetch(A, 5, 5)):
        traffic.exchange(one)
    (topic,) = traffic.topics()
    assert "cluster" not in topic_json(topic)
    assert "cluster" not in [column.title for column in topic_columns(topic)]


def test_a_mirror_without_metadata_is_two_logs() -> None:
    """They are named by an address; nothing was lost in them, and no leader was elected."""
    traffic, doctor = TopicTraffic(), Doctors()
    for number in range(12):
        for one in (
            produce(A, 4_988 + number, 20 * number, client_id="app", client="10.0.0.1:1"),
            produce(C, 40 + number, 20 * number + 10, client_id="mirror", client="10.0.0.7:1"),
        ):
            traffic.exchange(one)
            doctor.exchange(one)
    found = [(topic.cluster, topic.produced.records, topic.partitions[0].high_watermark) for topic in traffic.topics()]
    assert found == [(f"cluster of {A}", 12, 5_000), (f"cluster of {C}", 12, 52)]
    assert [one.code for one in doctor.findings()] == []


def test_one_producer_id_in_two_clusters_is_two_producers() -> None:
    """Each cluster gives out the same numbers."""
    ledger = ProducerLedger()
    for one in (*NAMED, produce(A, 0, 10), produce(C, 0, 20), produce(A, 1, 30)):
        ledger.exchange(one)
    producers = ledger.producers()
    assert [(one.cluster, one.producer_id, one.batches) for one in producers] == [("blue", 7, 2), ("green", 7, 1)]
    assert [flaw for one in producers for flaw in one.flaws] == []
    assert producer_json(producers[0])["cluster"] == "blue"
    out = StringIO()
    ProducerWriter(out, None, False, []).producers(producers)
    assert "producer 7  cluster green" in out.getvalue()


def test_a_group_of_one_name_is_two_groups() -> None:
    """With a head for each."""
    timeline = GroupTimeline()
    for one in (*NAMED, leave(A, 10), leave(C, 20), leave(A, 30)):
        timeline.add(one)
    events = timeline.events()
    assert [group_event_json(one)["cluster"] for one in events] == ["blue", "blue", "green"]
    out = StringIO()
    GroupWriter(out, None, False, []).write(events)
    heads = [line for line in out.getvalue().splitlines() if line.startswith("audit")]
    assert [head.split("  ")[1] for head in heads] == ["cluster blue", "cluster green"]


def test_clients_have_the_cluster_of_their_broker_and_of_its_time() -> None:
    """One client of an address that became another cluster is two, whichever connection it used."""
    inventory = Inventory()
    for one in (
        metadata(A, "blue", A, client_id="shop", id=1), fetch(A, 5, 5, client_id="shop", id=2),
        metadata(A, "green", A, client_id="shop", id=3), fetch(A, 0, 5, client_id="shop", id=4),
    ):  # fmt: skip
        inventory.exchange(one)
    clients = inventory.clients()
    assert sorted((client_json(one)["cluster"], one.exchanges) for one in clients) == [("blue", 2), ("green", 2)]
    out = StringIO()
    ClientWriter(out, None, False, []).clients(clients)
    assert "cluster green" in out.getvalue()


def test_metrics_of_topics_have_a_label_more() -> None:
    """No two series have the same labels."""
    metrics = TopicMetrics()
    for one in (*NAMED, fetch(A, 5_000, 5_000), fetch(C, 40, 43)):
        metrics.add(one)
    metrics.sum_up()
    (lag,) = [one for one in metrics.collect() if one.name == "topic_lag_records"]
    assert lag.labels == ("topic", "cluster")
    assert dict(lag.samples) == {("orders", "blue"): 0, ("orders", "green"): 3}


def test_a_server_that_becomes_another_cluster_is_one_finding() -> None:
    """With what its clients met meanwhile beneath, and the consumer that does not fetch any more."""
    doctor = Doctors()
    unknown = ("topics[0].error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION", True)
    missing = {"cluster_id": "green", "brokers": [], "topics": [{"name": "orders", "error_code": 3, "partitions": []}]}
    doctor.exchange(metadata(A, "blue", A, client_id="reader", start_ns=START_NS, id=1))
    for number in range(20):
        doctor.exchange(fetch(A, number, number, 100 * number, client_id="reader", id=1))
    for number in range(30):
        doctor.exchange(on(
            A, api="Metadata", api_key=3, api_version=9, request={"topics": [{"name": "orders"}]}, response=missing,
            errors=[unknown], outcome="error", client_id="reader", start_ns=START_NS + 5 * S + number * S // 2, id=2,
        ))  # fmt: skip
    (finding,) = doctor.findings()
    assert (finding.code, finding.severity, finding.subject) == ("cluster_changed", "error", A)
    assert (finding.numbers["before"], finding.numbers["after"]) == ("blue", "green")
    assert list(finding.numbers["standing_still"]) == ["reader 10.0.0.5"]
    assert "unknown_topic_or_partition" in {one.code for one in finding.symptoms}


def test_findings_name_their_cluster_where_there_are_several() -> None:
    """Two clients ask two clusters for a topic that neither has."""
    doctor = Doctors()
    unknown = ("topics[0].error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION", True)
    for broker, cluster_id, client in ((A, "blue", "one"), (C, "green", "two")):
        answer = {"cluster_id": cluster_id, "brokers": [], "topics": [{"name": "gone", "error_code": 3}]}
        for number in range(5):
            doctor.exchange(on(
                broker, api="Metadata", api_key=3, api_version=9, request={"topics": [{"name": "gone"}]},
                response=answer, errors=[unknown], outcome="error", client_id=client,
                start_ns=START_NS + number * S,
            ))  # fmt: skip
    found = [(finding_json(one)["cluster"], one.subject) for one in doctor.findings()]
    assert sorted(found) == [("blue", "one 10.0.0.5"), ("green", "two 10.0.0.5")]
