from __future__ import annotations

import copy
from typing import Any

import pytest

from kwiresniff.codec.value_reader import message_decoder
from kwiresniff.schema.types import MessageVersion
from tests.support.definitions import (
    EVERYTHING,
    EVERYTHING_BODY,
    EVERYTHING_BYTES,
    PRODUCE_RESPONSE_V8,
    PRODUCE_RESPONSE_V8_BODY,
    PRODUCE_RESPONSE_V8_BYTES,
    array,
    field,
    message,
)
from tests.support.encoding import EncodeError, compile_encoder


@pytest.mark.parametrize(
    ("definition", "raw", "body"),
    [
        pytest.param(PRODUCE_RESPONSE_V8, PRODUCE_RESPONSE_V8_BYTES, PRODUCE_RESPONSE_V8_BODY, id="produce"),
        pytest.param(EVERYTHING, EVERYTHING_BYTES, EVERYTHING_BODY, id="everything"),
    ],
)
def test_a_body_gives_its_canonical_bytes(definition: MessageVersion, raw: bytes, body: dict[str, Any]) -> None:
    assert compile_encoder(definition)(body) == raw


def test_nulls_are_written_in_the_form_of_the_version() -> None:
    fields = [field("a", "NULLABLE_STRING"), field("b", "NULLABLE_BYTES"), array("c", "INT8", nullable=True)]
    assert compile_encoder(message(*fields))({"a": None, "b": None, "c": None}) == b"\xff" * 10
    compact = [field("a", "COMPACT_NULLABLE_STRING"), array("c", "STRING", nullable=True)]
    assert compile_encoder(message(*compact, flexible=True))({"a": None, "c": None}) == b"\0\0\0"
    cursor = message(field("cursor", "STRUCT", field("x", "INT8"), nullable=True))
    assert compile_encoder(cursor)({"cursor": None}) == b"\xff"
    assert compile_encoder(cursor)({"cursor": {"x": 3}}) == b"\x01\x03"


def test_tagged_fields_equal_to_their_defaults_are_not_written() -> None:
    definition = message(field("epoch", "INT32", tag=0, default=-1), array("list", "INT8", tag=1), flexible=True)
    encode = compile_encoder(definition)
    assert encode({"epoch": -1, "list": []}) == b"\0"
    assert encode({}) == b"\0"
    assert encode({"epoch": 0, "list": []}) == bytes.fromhex("01 00 04 00000000")


def test_unknown_tags_go_back_in_order_and_may_have_come_through_json() -> None:
    definition = message(field("epoch", "INT8", tag=4, default=-1), flexible=True)
    body = {"epoch": 1, "_tagged_fields": {"9": b"z", "2": b""}}
    assert compile_encoder(definition)(body) == bytes.fromhex("03 02 00 04 01 01 09 01 7a")


@pytest.mark.parametrize("value", [0, 126, 127, 128, 16382, 16383, 70000])
def test_long_compact_strings_come_back(value: Any) -> None:
    definition = message(field("a", "COMPACT_STRING"), flexible=True)
    body = {"a": "x" * value}
    assert message_decoder(definition)(compile_encoder(definition)(body), 0, [])[0] == body


def test_floats_written_as_text_come_back() -> None:
    definition = message(array("a", "FLOAT64"))
    body = {"a": ["NaN", "Infinity", "-Infinity", 0.5]}
    assert message_decoder(definition)(compile_encoder(definition)(body), 0, [])[0] == body


def test_raw_record_sets_are_written_as_they_are() -> None:
    definition = message(field("records", "RECORDS", nullable=True), field("more", "RECORDS", nullable=True))
    assert compile_encoder(definition)({"records": b"abc", "more": None}) == b"\0\0\0\x03abc\xff\xff\xff\xff"


WRONG = [
    (("responses",), 5, "responses is int"),
    (("responses",), None, "responses is null"),
    (("responses", 0), "x", r"responses\[0\] is str"),
    (("responses", 0, "name"), None, r"responses\[0\].name is null"),
    (("responses", 0, "name"), b"x", r"responses\[0\].name is bytes"),
    (("responses", 0, "name"), "x" * 32768, r"responses\[0\].name takes 32768 bytes"),
    (("responses", 0, "name"), "\ud800", r"responses\[0\].name holds half a surrogate"),
    (("responses", 0, "partition_responses", 0, "index"), 2**31, r"partition_responses\[0\].index is 2147483648"),
    (("responses", 0, "partition_responses", 0, "error_code"), 1.5, r"error_code is float"),
    (("responses", 0, "partition_responses", 0, "base_offset"), "1", r"base_offset is str"),
    (("throttle_time_ms",), None, "throttle_time_ms is null"),
]


@pytest.mark.parametrize(("path", "value", "words"), WRONG)
def test_a_value_that_does_not_fit_is_named_by_its_path(path: tuple[Any, ...], value: Any, words: str) -> None:
    body = copy.deepcopy(PRODUCE_RESPONSE_V8_BODY)
    holder: Any = body
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    with pytest.raises(EncodeError, match=words):
        compile_encoder(PRODUCE_RESPONSE_V8)(body)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(EncodeError, match="throttle_time_ms is missing"):
        compile_encoder(PRODUCE_RESPONSE_V8)({"responses": []})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("topic_id", "no uuid", "topic_id does not fit UUID"),
        ("ratio", "much", "ratio does not fit FLOAT64"),
        ("blob", "text", "blob is str, not bytes"),
        ("port", -1, "port is -1, which does not fit UINT16"),
        ("_tagged_fields", {0: b""}, "has tag 0, which is the field epoch"),
        ("_tagged_fields", {"x": b""}, "has 'x' for a tag"),
        ("_tagged_fields", {9: "text"}, r"_tagged_fields\[9\] is str"),
        ("endpoints", [{"host": "h"}], r"endpoints\[0\].port is missing"),
    ],
)
def test_a_flexible_value_that_does_not_fit_is_named(name: str, value: Any, words: str) -> None:
    with pytest.raises(EncodeError, match=words):
        compile_encoder(EVERYTHING)(EVERYTHING_BODY | {name: value})
