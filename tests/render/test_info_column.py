from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.model import Connection, Exchange, Message
from kwiresniff.render.info_column import facts

BATCH = {"records_count": 12, "size_bytes": 3_482, "compression": "zstd"}


def about(api: str, request: dict[str, Any] | None, response: dict[str, Any] | None = None, *, version: int = 0) -> str:
    def message(body: dict[str, Any] | None) -> Message:
        made = Message(1, 0, 1, 0, 10, None)
        made.body = body
        return made

    exchange = Exchange(Connection(1, "a:1", "b:2"), 0, version, 0, None, message(request), message(response))
    exchange.api = api
    return " ".join(facts(exchange))


@pytest.mark.parametrize(
    ("api", "request_body", "response_body", "text"),
    [
        (
            "Produce",
            {"acks": -1, "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": [BATCH]}]}]},
            None,
            "orders-0 12 records 3.40 KB zstd",
        ),
        (
            "Produce",
            {"acks": 0, "topic_data": [{"name": "a", "partition_data": [{"index": 1, "records": {"size_bytes": 99}}]}]},
            None,
            "a-1 1 record 99 B acks 0",
        ),
        ("Fetch", {"topics": []}, {"responses": [], "session_id": 9}, "session 9 nothing new"),
        ("Metadata", {"topics": None}, {"brokers": [{}, {}, {}]}, "all topics 3 brokers"),
        ("Metadata", {"topics": []}, {}, "all topics"),
        ("Metadata", {"topics": ["a", "b"]}, {}, "a b"),
        (
            "AddPartitionsToTxn",
            {
                "v3_and_below_transactional_id": "t",
                "v3_and_below_producer_id": 4,
                "v3_and_below_topics": [{"name": "orders", "partitions": [0, 1]}],
            },
            {"results_by_topic_v3_and_below": [{"name": "orders"}]},
            "transaction t orders-0,1",
        ),
        (
            "AddPartitionsToTxn",
            {"transactions": [{"transactional_id": "t", "topics": [{"name": "orders", "partitions": [2]}]}]},
            {"results_by_transaction": []},
            "transaction t orders-2",
        ),
        ("EndTxn", {"transactional_id": "t", "committed": True}, {"error_code": 0}, "COMMIT transaction t"),
        ("EndTxn", {"transactional_id": "t", "committed": False}, {"error_code": 0}, "ABORT transaction t"),
        (
            "FindCoordinator",
            {"key": "g1", "key_type": 0},
            {"host": "kafka-1", "port": 9092},
            "group g1 at kafka-1:9092",
        ),
        ("FindCoordinator", {"coordinator_keys": ["t1"], "key_type": 1}, {"coordinators": []}, "transaction t1"),
        (
            "InitProducerId",
            {"transactional_id": "t"},
            {"producer_id": 5, "producer_epoch": 1},
            "transaction t producer 5 epoch 1",
        ),
        (
            "ApiVersions",
            {"client_software_name": "java", "client_software_version": "4.0"},
            {"api_keys": [1]},
            "java 4.0 1 API",
        ),
        ("SaslHandshake", {"mechanism": "PLAIN"}, {}, "mechanism PLAIN"),
        (
            "JoinGroup",
            {"group_id": "g", "member_id": ""},
            {"member_id": "client-0d1c9e2c-5a0a-4a2b-9a53-8f3f1f4c9b11", "generation_id": 5},
            "group g generation 5 member …8f3f1f4c9b11",
        ),
        (
            "OffsetCommit",
            {"group_id": "g", "topics": [{"name": "a", "partitions": [{"partition_index": at} for at in range(9)]}]},
            {},
            "group g a-0,1,2,+6",
        ),
        ("OffsetFetch", {"group_id": "g", "topics": [{"name": "a", "partition_indexes": [0, 1]}]}, {}, "group g a-0,1"),
        ("CreateTopics", {"topics": [{"name": name} for name in "abcdef"]}, {}, "a b c +3 topics"),
        ("DescribeConfigs", {"resources": [{"resource_name": "a"}, {"resource_name": "b"}]}, {}, "resources a,b"),
        ("DescribeGroups", {"groups": ["g1", "g2", "g3", "g4"]}, {}, "groups g1,g2,g3,+1"),
        ("IncrementalAlterConfigs", {"resources": []}, {"responses": [{"error_code": 0}]}, ""),
        ("OffsetFetch", {"groups": [{"group_id": "g", "topics": []}]}, {}, "groups g"),
        (
            "ShareFetch",
            {"group_id": "g", "topics": []},
            {"responses": [{"topic_id": "x", "partitions": [{"partition_index": 0, "records": [BATCH]}]}]},
            "group g x-0 12 records 3.40 KB zstd",
        ),
        ("Heartbeat", {}, {}, ""),
    ],
)
def test_an_exchange_is_told_in_a_few_words(
    api: str, request_body: dict[str, Any], response_body: dict[str, Any] | None, text: str
) -> None:
    assert about(api, request_body, response_body) == text


def test_from_version_1_on_an_empty_list_of_metadata_asks_for_no_topic() -> None:
    """The protocol guide on MetadataRequest: in version 0 an empty array, later a null one, indicates all topics."""
    assert about("Metadata", {"topics": []}, {}, version=1) == "no topics"


def test_without_bodies_there_is_nothing_to_tell() -> None:
    assert about("Produce", None, None) == ""


@pytest.mark.parametrize(
    "api", ["Produce", "Fetch", "Metadata", "FindCoordinator", "ApiVersions", "OffsetCommit", "AddPartitionsToTxn"]
)
def test_a_body_of_another_shape_is_no_reason_to_fail(api: str) -> None:
    names = (
        "topics",
        "topic_data",
        "responses",
        "coordinator_keys",
        "coordinators",
        "group_id",
        "member_id",
        "transactions",
    )
    shapes: tuple[object, ...] = (None, 7, "x", b"x", [], {}, [None], [[]], [{}], [7])
    for odd in shapes:
        assert isinstance(about(api, dict.fromkeys(names, odd), dict.fromkeys(names, odd)), str), odd
