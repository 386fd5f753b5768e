"""Records of Kafka Connect's internal topics, in the shapes that KafkaConfigBackingStore and its like write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwiresniff.codec.embedded.connect import MAX_CONNECT_BYTES, read_connect_record
from kwiresniff.session.secrets import conceal


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (b"connector-a", {"properties": {"name": "a"}}, "ConnectorConfig"),
        (b"connector-a", {"schema": {"type": "struct"}, "payload": {"properties": {"name": "a"}}}, "ConnectorConfig"),
        (b"task-a-0", {"properties": {"task.class": "x"}}, "TaskConfig"),
        (b"commit-a", {"tasks": 1}, "TasksCommit"),
        (b"target-state-a", {"state": "PAUSED", "state.v2": "PAUSED"}, "TargetState"),
        (b"session-key", {"key": "a", "algorithm": "HmacSHA256", "creation-timestamp": 1}, "SessionKey"),
        (b"status-task-a-0", {"state": "RUNNING", "trace": None, "worker_id": "w", "generation": 1}, "TaskStatus"),
        (b'["a",{"filename":"f"}]', {"position": 7}, "SourceOffset"),
        (b"anything", {"properties": {"name": "a"}}, "ConnectorConfig"),
    ],
)
def test_a_record_is_told_by_its_key_and_its_fields(key: bytes, value: dict[str, Any], message: str) -> None:
    found = read_connect_record(key, json.dumps(value).encode())
    assert found is not None and found.message == message
    assert found.value == value.get("payload", value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"task-1", b'{"title":"write","done":false}'),
        (b"connector-a", b'{"properties":{"a":"b"},"event":"click"}'),
        (b"anything", b'{"properties":{"a":1}}'),
        (b"order", b'{"id":1}'),
        (b"connector-a", b"[" * 10_000),
        (b"connector-a", b'{"properties":{"a":"' + b"x" * MAX_CONNECT_BYTES + b'"}}'),
    ],
)
def test_records_of_others_and_what_cannot_be_read_are_none_of_connects(key: bytes, value: bytes) -> None:
    assert read_connect_record(key, value) is None


def test_a_config_that_is_too_long_to_be_read_is_withheld() -> None:
    value = b'{"properties":{"db.password":"' + b"x" * MAX_CONNECT_BYTES + b'"}}'
    record: dict[str, Any] = {"key": b"connector-a", "value": value, "headers": []}
    conceal(0, "request", {"topic_data": [{"name": "t", "partition_data": [{"records": [{"records": [record]}]}]}]})
    assert record["value"] == {"withheld": True, "size_bytes": len(value)}
