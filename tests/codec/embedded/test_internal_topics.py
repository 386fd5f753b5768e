"""Records of internal topics, as Kafka's own classes write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwiresniff.codec.embedded import open_batches
from kwiresniff.codec.embedded.internal_topics import _records
from tests.support.embedded_vectors import VECTORS, body_holder, decoded, node_holder, texts

OFFICIAL = Path(__file__).parents[2] / "schema" / "data" / "enums.txt"
METADATA_LOGS = {"__cluster_metadata", "__remote_log_metadata"}
COMMIT = {"message": "OffsetCommitKey", "version": 0, "data": {"group": "billing", "topic": "orders", "partition": 3}}


def opened(name: str, topic: str) -> dict[str, Any]:
    """What is ``decoded`` in a record of ``topic``, in a body and in a tree alike."""
    return of_record(VECTORS[name].key, VECTORS[name].value, topic, [])


def of_record(key: bytes | None, value: bytes | None, topic: str, problems: list[tuple[str, str]]) -> dict[str, Any]:
    record: dict[str, Any] = {"offset": 0, "key": key, "value": value}
    partition = {"records": [{"is_control": False, "records": [record]}]}
    tree = node_holder(partition)
    holder = body_holder(partition)
    open_batches(holder, "records", topic)
    open_batches(tree, "records", topic)
    assert (record["key"], record["value"]) == (key, value)
    assert texts(holder.problems) == texts(tree.problems) == problems
    found: dict[str, Any] = record.get("decoded", {})
    nodes = tree.node.children[0].children[0].children[1].children[0].children
    assert {node.name for node in nodes if node.children} == {name for name, each in found.items() if each["data"]}
    for node in nodes:
        if node.children and "members" not in found[node.name]["data"]:
            assert decoded(node) == found[node.name]["data"]
    return found


@pytest.mark.parametrize("version", range(5))
def test_an_offset_commit_is_read_in_every_version(version: int) -> None:
    data: dict[str, Any] = {"offset": 42}
    if version >= 3:
        data["leader_epoch"] = -1
    data |= {"metadata": "note", "commit_timestamp": 1_700_000_000_000}
    if version == 1:
        data["expire_timestamp"] = -1
    if version >= 4:
        data["topic_id"] = "AAAAAAAAAAAAAAAAAAAAAA"
    assert opened(f"offset-commit-{version}", "__consumer_offsets") == {
        "key": COMMIT,
        "value": {"message": "OffsetCommitValue", "version": version, "data": data},
    }


def test_a_tombstone_has_a_key_only() -> None:
    assert opened("offset-commit-tombstone", "__consumer_offsets") == {"key": COMMIT}


def test_the_group_of_a_classic_consumer_tells_subscriptions_and_assignments() -> None:
    found = opened("group-metadata", "__consumer_offsets")
    assert found["key"] == {"message": "GroupMetadataKey", "version": 0, "data": {"group": "billing"}}
    assert (found["value"]["message"], found["value"]["version"]) == ("GroupMetadataValue", 3)
    (member,) = found["value"]["data"].pop("members")
    assert found["value"]["data"] == {
        "protocol_type": "consumer",
        "generation": 4,
        "protocol": "range",
        "leader": "m-1",
        "current_state_timestamp": 1_700_000_000_000,
    }
    assert (member["member_id"], member["client_host"]) == ("m-1", "/10.0.0.7")
    assert member["subscription_decoded"]["data"]["topics"] == ["orders"]
    assert member["assignment_decoded"]["data"]["assigned_partitions"] == [{"topic": "orders", "partitions": [1]}]


def test_a_record_of_the_new_group_protocol_is_read() -> None:
    found = opened("consumer-group-metadata", "__consumer_offsets")
    assert found["key"]["data"] == {"group_id": "billing"}
    assert found["value"] == {
        "message": "ConsumerGroupMetadataValue",
        "version": 0,
        "data": {"epoch": 12, "metadata_hash": 0},
    }


def test_the_same_record_type_is_another_record_in_another_topic() -> None:
    transaction = opened("transaction", "__transaction_state")
    assert transaction["key"] == {"message": "TransactionLogKey", "version": 0, "data": {"transactional_id": "tx-1"}}
    assert transaction["value"]["data"] == {
        "producer_id": 77,
        "producer_epoch": 2,
        "transaction_timeout_ms": 60_000,
        "transaction_status": 1,
        "transaction_partitions": [{"topic": "orders", "partition_ids": [0, 1]}],
        "transaction_last_update_timestamp_ms": 10,
        "transaction_start_timestamp_ms": 9,
    }
    share = opened("share-update", "__share_group_state")
    assert share["key"]["message"] == "ShareUpdateKey"
    assert share["key"]["data"] == {"group_id": "workers", "topic_id": "AAAAAAAAAAEAAAAAAAAAAg", "partition": 0}
    batch = {"first_offset": 100, "last_offset": 109, "delivery_state": 2, "delivery_count": 1}
    assert (share["value"]["message"], share["value"]["data"]["state_batches"]) == ("ShareUpdateValue", [batch])


def test_records_of_the_metadata_log_have_their_type_in_the_value() -> None:
    topic = {"name": "orders", "topic_id": "AAAAAAAAAAEAAAAAAAAAAg"}
    assert opened("metadata-topic", "__cluster_metadata") == {
        "value": {"message": "TopicRecord", "version": 0, "data": topic}
    }
    scram = opened("metadata-scram", "__cluster_metadata")["value"]
    assert (scram["message"], scram["data"]["name"], scram["data"]["iterations"]) == (
        "UserScramCredentialRecord",
        "alice",
        4096,
    )


def test_control_batches_are_left_alone() -> None:
    record: dict[str, Any] = {"offset": 0, "key": b"\0\0\0\1", "value": b"\0\0\0\0\0\0"}
    holder = body_holder({"records": [{"is_control": True, "records": [record]}]})
    open_batches(holder, "records", "__consumer_offsets")
    assert "decoded" not in record


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0"),
        (b"", b""),
        (b"\0", b"\0"),
        (b"\x7f\xff\0", b"\0\0"),  # a record type nobody knows
    ],
)
def test_what_is_no_coordinators_record_stays_bytes(key: bytes | None, value: bytes | None) -> None:
    assert of_record(key, value, "__consumer_offsets", []) == {}


def test_a_value_of_a_version_nobody_knows_stays_bytes() -> None:
    key, value = VECTORS["offset-commit-4"]
    assert value is not None
    assert of_record(key, b"\0\x63" + value[2:], "__consumer_offsets", []) == {"key": COMMIT}


def test_a_value_that_does_not_fit_stays_bytes_with_a_problem() -> None:
    key, value = VECTORS["offset-commit-4"]
    assert value is not None
    path = "records[0].records[0].value"
    found = of_record(key, value[:-1], "__consumer_offsets", [("embedded_undecoded", path)])
    assert found == {"key": COMMIT}


@pytest.mark.parametrize("value", [b"", b"\1", b"\1\2", b"\xff" * 12, b"\2\2\0\0", b"\1\x7f\0"])
def test_what_is_no_metadata_record_stays_bytes(value: bytes) -> None:
    assert of_record(None, value, "__cluster_metadata", []) == {}


def official_types() -> list[tuple[str, int, str]]:
    """Topic, number and constant of every record type that the newest release has (schema/data/enums)."""
    lines = [line.split() for line in OFFICIAL.read_text("utf-8").splitlines() if line.startswith("__")]
    return [(topic, int(number), name) for topic, number, name in lines]


@pytest.mark.parametrize(("topic", "number", "name"), official_types())
def test_every_type_of_record_in_kafkas_own_topics_is_known(topic: str, number: int, name: str) -> None:
    roles = ("metadata",) if topic in METADATA_LOGS else ("coordinator-key", "coordinator-value")
    names = [_records(topic, role).get(number, "").upper() for role in roles]
    known = name.replace("_", "")
    assert names == ([known] if len(roles) == 1 else [f"{known}KEY", f"{known}VALUE"])
