"""Topics, groups and the like, found in bodies by Kafka's own field names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from kwiresniff import schema
from kwiresniff.analysis.body_entities import names_of, partitions_of, record_sets
from kwiresniff.errors import SchemaError
from kwiresniff.schema import WireField


def topics(body: Any, topic_name: Any = None) -> list[str]:
    return list(names_of(body, topic_name).topics)


def groups(body: Any) -> list[str]:
    return list(names_of(body).groups)


def test_a_topic_id_stands_beside_no_name_only_when_there_is_none() -> None:
    body = {"topics": [{"topic_id": "id1", "name": "a"}, {"topic_id": "id2", "name": None}, {"topic_id": "id3"}]}
    assert topics(body) == ["a", "id2", "id3"]
    assert topics(body, {"id2": "b"}.get) == ["a", "b", "id3"]


def test_the_zero_topic_id_is_no_topic() -> None:
    assert topics({"topics": [{"topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": []}]}) == []


def test_names_of_configs_and_resources_are_not_topics_unless_they_are() -> None:
    body = {
        "resources": [
            {"resource_type": 2, "resource_name": "orders", "configs": [{"name": "retention.ms"}]},
            {"resource_type": 4, "resource_name": "1", "configs": []},
        ]
    }
    assert topics(body) == ["orders"]


def test_each_name_comes_once_in_order_of_appearance() -> None:
    body = {"topic_data": [{"name": "b"}, {"name": "a"}, {"name": "b"}], "subscribed_topic_names": ["a", "c"]}
    assert topics(body) == ["b", "a", "c"]


def test_a_quota_key_is_no_group() -> None:
    assert groups({"entries": [{"ops": [{"key": "consumer_byte_rate", "value": 1.0}]}]}) == []


def test_coordinator_keys_are_groups_or_transactions_by_their_type() -> None:
    assert groups({"key_type": 0, "coordinator_keys": ["g1", "g2"]}) == ["g1", "g2"]
    assert list(names_of({"key_type": 1, "coordinator_keys": ["t1"]}).transactional_ids) == ["t1"]
    assert groups({"key": "g0"}) == ["g0"]


def test_partitions_come_as_numbers_in_lists_and_in_structures() -> None:
    body = {"topics": [{"partitions": [{"partition_index": 4}]}, {"partitions": [1, 2]}], "partition": 4}
    assert sorted(partitions_of(body)) == [1, 2, 4]
    assert partitions_of({"topic_data": [{"partition_data": [{"index": 7}]}], "nodes": [{"index": 3}]}) == [7]


def test_names_that_are_no_utf_8_are_escaped() -> None:
    assert topics({"topics": [{"name": b"a\xff"}]}) == ["a\\xff"]
    assert groups({"group_id": b"\xfe", "groups": [b"g\xfe", None]}) == ["\\xfe", "g\\xfe"]


def test_nothing_is_found_where_nothing_is() -> None:
    assert topics(None) == [] and groups({}) == []
    assert partitions_of({}) == []


def test_record_sets_come_with_their_topic() -> None:
    batches: list[dict[str, list[object]]] = [{"records": []}]
    partition = {"partition_index": 0, "records": batches}
    body = {"responses": [{"topic": "a", "partitions": [partition]}, {"topic_id": "x", "partitions": [partition]}]}
    assert sorted((topic or "", found) for topic, _, found in record_sets(body, {"x": "b"}.get)) == [
        ("a", batches),
        ("b", batches),
    ]


def sample(fields: Sequence[WireField], entity: str) -> dict[str, Any]:
    """A body of that form in which ``found`` stands in every text that names such an entity."""
    body: dict[str, Any] = {}
    for field in fields:
        value: Any = 0
        if field.type == "STRUCT":
            value = sample(field.fields, entity)
        elif "STRING" in field.type:
            value = "found" if field.entity == entity else "something else"
        elif field.type == "UUID":
            value = "AAAAAAAAAAAAAAAAAAAAAA"
        body[field.name] = [value] if field.array else value
    return body


def names(fields: Sequence[WireField], entity: str) -> bool:
    return any((one.entity == entity and "STRING" in one.type) or names(one.fields, entity) for one in fields)


#: FindCoordinator asks by a key whose type another field tells, and Kafka's definitions do not mark these groups.
UNMARKED = {
    "FindCoordinator", "DeleteShareGroupState", "InitializeShareGroupState", "ReadShareGroupState",
    "ReadShareGroupStateSummary", "WriteShareGroupState",
}  # fmt: skip


@pytest.mark.parametrize(
    ("entity", "kind"), [("topicName", "topics"), ("groupId", "groups"), ("transactionalId", "transactional_ids")]
)
def test_everything_kafka_marks_as_a_name_is_found_and_nothing_else(entity: str, kind: str) -> None:
    """In every message of every API at every version."""
    messages = 0
    for api, version, direction in product(schema.apis(), range(20), ("request", "response")):
        try:
            fields = schema.message(api.key, version, direction).fields
        except SchemaError:
            continue  # APIs do not have all of these versions
        messages += 1
        found = getattr(names_of(sample(fields, entity)), kind)
        if names(fields, entity):
            assert "found" in found, (api.name, version, direction)
        if api.name not in UNMARKED:
            assert set(found) <= {"found"}, (api.name, version, direction)
    assert messages > 700
