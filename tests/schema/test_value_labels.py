from __future__ import annotations

from typing import Any

import pytest

from kwiresniff import schema
from kwiresniff.codec.dissector import dissect
from kwiresniff.schema.types import WireField
from kwiresniff.schema.value_labels import meaning_of
from tests.support.definitions import field, message


def official(api: str, direction: str, version: int, *path: str) -> WireField:
    """A field of an official definition."""
    fields = schema.message(api, version, direction).fields
    for name in path:
        (found,) = [child for child in fields if child.name == name]
        fields = found.fields
    return found


@pytest.mark.parametrize(
    ("place", "value", "meaning"),
    [
        (("Heartbeat", "response", 4, "error_code"), 0, "NONE"),
        (("Heartbeat", "response", 4, "error_code"), 6, "NOT_LEADER_OR_FOLLOWER (retriable)"),
        (("Heartbeat", "response", 4, "error_code"), 30, "GROUP_AUTHORIZATION_FAILED"),
        (("Heartbeat", "response", 4, "throttle_time_ms"), 0, ""),
        (("Heartbeat", "response", 4, "throttle_time_ms"), 1500, "1.5 s"),
        (("Produce", "request", 9, "acks"), -1, "all in-sync replicas"),
        (("Produce", "request", 9, "timeout_ms"), 30_000, "30 s"),
        (("Fetch", "request", 12, "max_bytes"), 52_428_800, "50 MiB"),
        (("Fetch", "request", 12, "max_bytes"), 2**31 - 1, "no limit"),
        (("Fetch", "request", 12, "min_bytes"), 1, ""),
        (("Fetch", "request", 12, "isolation_level"), 1, "read_committed"),
        (("Fetch", "request", 12, "session_epoch"), 7, ""),
        (("ListOffsets", "request", 7, "topics", "partitions", "timestamp"), -2, "earliest"),
        (
            ("ListOffsets", "request", 7, "topics", "partitions", "timestamp"),
            1_700_000_000_123,
            "2023-11-14 22:13:20.123 UTC",
        ),
        (("ListOffsets", "response", 7, "topics", "partitions", "timestamp"), -1, "none"),
        (("ListOffsets", "response", 7, "topics", "partitions", "offset"), 42, ""),
        (("Produce", "response", 8, "responses", "partition_responses", "log_append_time_ms"), -1, "none"),
        (("Metadata", "response", 10, "cluster_authorized_operations"), -(2**31), "not requested"),
        (("Metadata", "response", 10, "cluster_authorized_operations"), 0b100001000, "READ, DESCRIBE"),
        (
            ("CreateDelegationToken", "response", 3, "expiry_timestamp_ms"),
            951_782_400_000,
            "2000-02-29 00:00:00.000 UTC",
        ),
    ],
)
def test_official_fields(place: tuple[Any, ...], value: int, meaning: str) -> None:
    assert meaning_of(official(*place), value) == meaning


@pytest.mark.parametrize(
    ("name", "type", "value", "meaning"),
    [
        ("timeout_ms", "INT32", 999, ""),
        ("timeout_ms", "INT32", -1, ""),
        ("timeout_ms", "INT32", 300_000, "5 min"),
        ("timeout_ms", "INT32", 5_400_000, "1.5 h"),
        ("retention_time_ms", "INT64", 604_800_000, "7 days"),
        ("retention_time_ms", "INT64", 2**62, "53375995584 days"),
        ("session_lifetime_ms", "INT64", 2**63 - 1, "no limit"),
        ("max_bytes", "INT32", 1023, ""),
        ("max_bytes", "INT32", 1024, "1 KiB"),
        ("max_bytes", "INT32", 1_500_000, "1.431 MiB"),
        ("total_bytes", "INT64", 2**62, "4 EiB"),
        ("total_bytes", "INT64", -1, ""),
        ("first_timestamp", "INT64", -(2**63), ""),
        ("first_timestamp", "INT64", 2**63 - 1, ""),
        ("first_timestamp", "INT64", 253_402_300_799_999, "9999-12-31 23:59:59.999 UTC"),
        ("timestamp_ms", "STRING", "x", ""),
    ],
)
def test_units_are_known_by_the_end_of_the_name(name: str, type: str, value: int, meaning: str) -> None:
    assert meaning_of(field(name, type), value) == meaning


def test_a_topic_id_is_told_by_the_topics_name_when_it_is_known() -> None:
    names = {"AAAAAAAAAAAAAAAAAAAAAQ": "__cluster_metadata"}
    definition = message(field("topic_id", "UUID"), field("member_id", "UUID"), field("parent_topic_id", "UUID"))
    one = bytes(15) + b"\x01"
    root = dissect(definition, one + one + bytes(16), 0, topic_name=names.get).root
    assert [node.meaning for node in root.children] == ["__cluster_metadata", "", "none"]
    assert meaning_of(field("topic_id", "UUID"), "AAAAAAAAAAAAAAAAAAAAAg", names.get) == ""
    assert meaning_of(field("topic_id", "UUID"), "AAAAAAAAAAAAAAAAAAAAAg") == ""
