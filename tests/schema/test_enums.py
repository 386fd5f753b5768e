"""What numbers mean. Expected values: Kafka's own enumerations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kwiresniff import schema
from kwiresniff.errors import SchemaError
from kwiresniff.schema.apis import data_index, read_data
from kwiresniff.schema.definition import Field
from kwiresniff.schema.enums import enums
from kwiresniff.schema.errorcodes import error_codes
from kwiresniff.schema.registry import definitions

OFFICIAL = Path(__file__).parent / "data" / "enums.txt"


@pytest.mark.parametrize(
    ("enum", "value", "meaning"),
    [
        ("acks", -1, "all in-sync replicas"),
        ("isolation_level", 1, "read_committed"),
        ("acl_operation", 3, "READ"),
        ("config_resource_type", 2, "TOPIC"),
        ("list_offsets_timestamp", -2, "earliest"),
        ("transaction_result", True, "COMMIT"),
        ("control_record_type", 2, "LEADER_CHANGE"),
        ("error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("api_key", 18, "ApiVersions"),
        ("acks", 7, ""),
        ("no such enumeration", 0, ""),
    ],
)
def test_a_value_has_its_meaning_or_none(enum: str, value: int, meaning: str) -> None:
    assert schema.enum_value(enum, value) == meaning


def test_bits_are_named_one_by_one() -> None:
    # KIP-430's example: a topic's operations, bits 3 to 8, 10 and 11.
    assert schema.enum_value("authorized_operations", 0b1101_1111_1000) == (
        "READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS"
    )
    assert schema.enum_value("authorized_operations", -2147483648) == "not requested"
    assert schema.enum_value("authorized_operations", 1 << 30) == "bit 30"


def test_the_names_of_an_enumeration_can_be_listed() -> None:
    assert schema.enum_names("election_type") == {0: "PREFERRED", 1: "UNCLEAN"}
    assert schema.enum_names("error_code")[0] == "NONE"
    with pytest.raises(SchemaError, match="no enumeration is named 'colour'"):
        schema.enum_names("colour")


def official() -> dict[str, dict[int, str]]:
    """Kafka's own enumerations by our names for them; ``enums/regenerate.sh`` says which classes they are."""
    found: dict[str, dict[int, str]] = {}
    for line in OFFICIAL.read_text("utf-8").splitlines():
        enum, value, *names = line.split()
        found.setdefault(enum, {})[int(value)] = " ".join(names)
    return found


def test_values_and_names_are_those_of_kafkas_enumerations() -> None:
    for enum, constants in official().items():
        if enum == "errors" or enum.startswith("__"):
            continue
        ours = schema.enum_names(enum)
        assert {value: folded(ours.get(value, "")) for value in constants} == {
            value: folded(WORDED.get((enum, value), name)) for value, name in constants.items()
        }
        assert ours.keys() - constants.keys() <= ADDED.get(enum, set()), enum


def folded(name: str) -> str:
    """A constant's name, whatever separates its words, and without the explanation that may follow."""
    return name.partition(",")[0].upper().replace("_", "").replace("-", "")


#: Where the constant's name says less than what clients call the same thing.
WORDED = {
    ("config_source", 1): "DYNAMIC_TOPIC_CONFIG",
    ("config_source", 7): "DYNAMIC_CLIENT_METRICS_CONFIG",
    ("config_source", 8): "DYNAMIC_GROUP_CONFIG",
    ("leader_recovery_state", 1): "recovering from an unclean election",
}
#: Values that have a meaning and no constant.
ADDED = {"acknowledge_type": {0}, "config_source": {-1}}


def test_error_codes_are_those_of_the_newest_release_with_whether_to_try_again() -> None:
    ours = {error.code: f"{error.name}{' retriable' if error.retriable else ''}" for error in error_codes()}
    assert ours == official()["errors"]


def test_fields_know_their_enumeration() -> None:
    produce = {field.name: field.enum for field in schema.message("Produce", 9, "request").fields}
    assert produce["acks"] == "acks"
    metadata = {field.name: field.enum for field in schema.message("Metadata", 8, "response").fields}
    assert metadata["cluster_authorized_operations"] == "authorized_operations"
    (topics,) = schema.message("AddPartitionsToTxn", 0, "response").fields[1:]
    assert topics.fields[1].fields[1].enum == "error_code"
    timestamps = [
        schema.message("ListOffsets", 1, direction).fields[-1].fields[1].fields for direction in ("request", "response")
    ]
    assert [{f.name: f.enum for f in fields}["timestamp"] for fields in timestamps] == [
        "list_offsets_timestamp",
        "timestamp",
    ]


def test_every_place_in_the_table_is_a_field_that_holds_numbers() -> None:
    places = dict(all_fields())
    in_table = False
    for line in read_data("enums.txt").splitlines():
        if line == "fields":
            in_table = True
        elif in_table and line.startswith(" "):
            enum, *names = line.split()
            assert enum in enums()
            for name in names:
                assert places.get(name) in {"bool", "int8", "int16", "int32", "int64"}, name


def all_fields() -> Iterator[tuple[str, str]]:
    files = [*schema.API_NAMES.values(), *data_index().files.values(), "headers"]
    for file in files:
        for message in definitions(file):
            owners = {"*", message.name, f"{message.name}.{message.kind}"}
            for field in flat(message.fields):
                yield from ((f"{owner}.{field.name}", field.type) for owner in owners)


def flat(fields: tuple[Field, ...]) -> Iterator[Field]:
    for field in fields:
        yield field
        yield from flat(field.fields)
