"""Looking up APIs and messages. Expected values: the protocol guide."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kwiresniff import schema
from kwiresniff.errors import SchemaError
from kwiresniff.schema.apis import data_index
from kwiresniff.schema.wire_types import FIXED


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


def test_names_and_ranges_need_no_definition_file() -> None:
    code = (
        "from kwiresniff import schema; from kwiresniff.schema.registry import definitions; "
        "schema.api_by_name('Offsets'), schema.version_range(1), schema.request_header_version(1, 12); "
        "print(definitions.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


def types_in(fields: tuple[schema.WireField, ...]) -> set[str]:
    return {field.type for field in fields}.union(*(types_in(field.fields) for field in fields))


def test_every_version_of_every_api_resolves() -> None:
    sized = ("STRING", "NULLABLE_STRING", "BYTES", "NULLABLE_BYTES", "RECORDS")  # the protocol guide's names
    known = {"STRUCT", *FIXED, *sized, *(f"COMPACT_{name}" for name in sized)}
    count = 0
    for api in schema.apis():
        for direction in ("request", "response"):
            low, high = api.request_versions if direction == "request" else api.response_versions
            for version in range(low, high + 1):
                resolved = schema.message(api.key, version, direction)
                assert (resolved.api_key, resolved.name, resolved.version) == (api.key, api.name, version)
                assert resolved.flexible == (api.flexible_from is not None and version >= api.flexible_from)
                assert types_in(resolved.fields) <= known
                count += 1
    assert count == 736


def test_what_is_stored_in_logs_is_found_by_name() -> None:
    assert set(data_index().files) >= {
        "ConsumerProtocolSubscription", "ConsumerProtocolAssignment", "EndTxnMarker", "LeaderChangeMessage",
        "SnapshotHeaderRecord", "SnapshotFooterRecord", "KRaftVersionRecord", "VotersRecord", "DefaultPrincipalData",
        "ControlRecordTypeSchema",
    }  # fmt: skip
    for name in data_index().files:
        assert schema.data_message(name, schema.data_versions(name)[0]).name == name
    with pytest.raises(SchemaError, match="did you mean EndTxnMarker"):
        schema.data_message("EndTxnMarkers", 0)


def test_a_tagged_field_has_its_default_and_its_tag() -> None:
    (partitions,) = schema.message("Fetch", 12, "response").fields[3].fields[1:]
    tagged = {field.tag: (field.name, field.default) for field in partitions.fields if field.tag is not None}
    assert tagged == {
        0: ("diverging_epoch", {"epoch": -1, "end_offset": -1}),
        1: ("current_leader", {"leader_id": -1, "leader_epoch": -1}),
        2: ("snapshot_id", {"end_offset": -1, "epoch": -1}),
    }
