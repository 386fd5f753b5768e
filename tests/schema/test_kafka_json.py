"""Kafka's own definitions. The examples are made up, their features are those of the README beside Kafka's files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwiresniff.errors import SchemaError
from kwiresniff.schema.definition import Field, Versions
from kwiresniff.schema.definition_language import parse
from kwiresniff.schema.kafka_json import read_definition, snake_case


def definition(*fields: dict[str, Any], **more: Any) -> str:
    document = {"type": "data", "name": "Sample", "validVersions": "0-2", "flexibleVersions": "1+", "fields": fields}
    return json.dumps(document | more)


def only(field: dict[str, Any], **more: Any) -> Field:
    (found,) = read_definition(definition(field, **more), "Sample.json").fields
    return found


@pytest.mark.parametrize(
    ("official", "printed"),
    [
        # As the protocol guide prints them.
        ("ThrottleTimeMs", "throttle_time_ms"),
        ("TopicId", "topic_id"),
        ("IsrNodes", "isr_nodes"),
        ("ZkVersion", "zk_version"),
        ("V0Host", "v0_host"),
        ("isKRaftController", "is_kraft_controller"),
        ("ISR", "isr"),
        ("HMAC", "hmac"),
    ],
)
def test_names_become_those_of_the_protocol_guide(official: str, printed: str) -> None:
    assert snake_case(official) == printed


def test_a_request_is_read_with_its_comments() -> None:
    text = """\
// A licence.
{
  "apiKey": 3, "type": "request", "listeners": ["broker"], "name": "SampleRequest",
  // Version 1 is new.
  /* Two lines of { "name":
     no field. */
  "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    { "name": "Url", "type": "string", "versions": "0+", "default": "http://a" }, // not a comment inside a string
    { "name": "Topics", "type": "[]Topic", "versions": "0+", "nullableVersions": "1+", "fields": [
      { "name": "TopicName", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName" }
    ]}
  ]
}
"""
    assert (
        read_definition(text, "SampleRequest.json")
        == parse(
            """\
api 3 Sample
listeners broker
request 0-1 flexible 1+
  url string = "http://a"
  topics []struct null 1+
    topic_name string entity topicName key
"""
        )[0]
    )


@pytest.mark.parametrize(
    ("type_name", "default", "expected"),
    [
        ("int32", "0x7fffffff", 2147483647),
        ("int64", "-1", -1),
        ("int8", -2, -2),
        ("bool", "true", True),
        ("bool", False, False),
        ("string", "null", None),
        ("string", "abc", "abc"),
        ("[]int32", "null", None),
        ("float64", "1.5", 1.5),
    ],
)
def test_defaults_have_the_type_of_their_field(type_name: str, default: Any, expected: Any) -> None:
    field = only({"name": "A", "type": type_name, "versions": "0+", "default": default})
    assert field.explicit_default
    assert field.default == expected
    assert type(field.default) is type(expected)


def test_a_tagged_field_without_versions_has_those_in_which_it_is_tagged() -> None:
    field = only({"name": "A", "type": "int32", "taggedVersions": "1+", "tag": 2})
    assert (field.versions, field.tagged, field.tag) == (Versions(1, 2), Versions(1, 2), 2)


def test_common_structures_are_put_where_they_are_used() -> None:
    struct = {"name": "Pair", "versions": "1+", "fields": [{"name": "A", "type": "int8", "versions": "0+"}]}
    field = only({"name": "Pairs", "type": "[]Pair", "versions": "0+"}, commonStructs=[struct])
    assert (field.type, field.array, field.fields[0].name, field.fields[0].versions) == (
        "struct",
        True,
        "a",
        Versions(1, 2),
    )


def test_a_message_without_versions_left_may_be_without_fields() -> None:
    text = json.dumps({"apiKey": 5, "type": "request", "name": "StopReplicaRequest", "validVersions": "none"})
    message = read_definition(text, "StopReplicaRequest.json")
    assert (message.name, bool(message.versions), message.fields) == ("StopReplica", False, ())


def test_what_is_stored_in_logs_is_data() -> None:
    message = read_definition(definition(type="data"), "Sample.json")
    assert (message.kind, message.record) == ("data", None)


@pytest.mark.parametrize("role", ["metadata", "coordinator-key", "coordinator-value"])
def test_a_record_of_an_internal_topic_is_data_with_its_role_and_number(role: str) -> None:
    message = read_definition(definition(type=role, apiKey=7), "Sample.json")
    assert (message.kind, message.api_key, message.record) == ("data", -1, (role, 7))


def test_the_version_of_a_coordinators_key_was_its_record_type_until_4_1() -> None:
    text = definition(
        type="data",
        name="GroupMetadataKey",
        validVersions="2",
        flexibleVersions="none",
        fields=[{"name": "group", "type": "string", "versions": "2"}],
    )
    message = read_definition(text, "GroupMetadataKey.json")
    assert (message.versions, message.record) == ((0, 0), ("coordinator-key", 2))
    assert [shape.name for shape in message.at(0)] == ["group"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "Expecting property name"),
        ("[]", "list indices"),
        ('{"type": "data"}', "'name' is missing"),
        (definition(type="song"), "unknown type song"),
        (definition(validVersions="new"), "invalid literal"),
        (definition(validVersions="0+"), "more than 256 versions"),
        (definition({"name": "A", "type": "Unknown", "versions": "0+"}), "'Unknown' is missing"),
        (definition({"name": "A", "type": "int8", "versions": "0+", "flexibleVersions": "none"}), "flexibleVersions"),
        (
            definition(
                {"name": "A", "type": "Loop", "versions": "0+"},
                commonStructs=[{"name": "Loop", "fields": [{"name": "A", "type": "Loop", "versions": "0+"}]}],
            ),
            "nested more than 16 deep",
        ),
        ("[" * 100_000, "(recursion|Stack overflow)"),  # as Python says, the latter since 3.14
    ],
)
def test_what_is_no_definition_is_refused_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=rf"^Sample\.json: not a Kafka message definition: .*{complaint}"):
        read_definition(text, "Sample.json")


def test_a_default_of_bare_null_is_none_given() -> None:
    """Kafka's generator does so, too: ConsumerGroupMemberMetadataValue starts with a structure, not with null."""
    field = only({"name": "A", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": None})
    assert not field.explicit_default
