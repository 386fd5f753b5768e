"""Looking up APIs and messages. Expected values: the protocol guide."""

from __future__ import annotations

import pytest

from kwiresniff import schema
from kwiresniff.errors import SchemaError


def test_an_api_is_found_by_key_by_name_and_by_an_older_name() -> None:
    assert schema.api_by_key(2) is schema.api_by_name("ListOffsets") is schema.api_by_name("Offsets")
    assert schema.api_by_name("GroupCoordinator").key == schema.api_by_name("CONSUMER_METADATA").key == 10
    assert schema.api_by_name("AlterIsr").name == "AlterPartition"


def test_an_unknown_name_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(SchemaError, match="did you mean Fetch"):
        schema.api_by_name("Fetsh")


def test_an_unknown_version_is_answered_with_the_known_ones() -> None:
    with pytest.raises(SchemaError, match="Metadata request has no version 99, it has 0 to "):
        schema.message("Metadata", 99, "request")


def test_a_field_has_the_wire_type_of_its_version() -> None:
    def name(version: int) -> schema.WireField:
        return schema.message("Metadata", version, "response").fields[4].fields[1]

    assert (name(8).type, name(9).type, name(12).type) == ("STRING", "COMPACT_STRING", "COMPACT_NULLABLE_STRING")


def test_versions_that_brokers_dropped_are_still_there() -> None:
    assert schema.version_range(0)[0] == schema.version_range(1)[0] == 0
    assert [field.name for field in schema.message("Produce", 0, "request").fields] == [
        "acks",
        "timeout_ms",
        "topic_data",
    ]
    assert schema.api_by_name("LeaderAndIsr").versions == (0, 7)


def test_the_client_id_of_a_flexible_header_is_not_compact() -> None:
    assert schema.header("request", 2).fields[-1].type == "NULLABLE_STRING"
