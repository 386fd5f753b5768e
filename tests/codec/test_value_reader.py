from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from kwiresniff.codec.body_walker import BodyScanner
from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.field_layout import MAX_ENTRIES, MAX_NESTING, MAX_TAGS
from kwiresniff.codec.node_values import plain
from kwiresniff.codec.plan import leaf_plan
from kwiresniff.codec.value_reader import message_decoder
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.schema.types import MessageVersion, WireField
from tests.support.definitions import (
    EVERYTHING,
    EVERYTHING_BYTES,
    array,
    field,
    message,
)
from tests.support.encoding import encode
from tests.support.encoding.primitives import write_uvarint


def failure(definition: MessageVersion, raw: bytes) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        message_decoder(definition)(raw, 0, [])
    return caught.value


def test_absent_tagged_fields_have_their_defaults_and_nobody_shares_them() -> None:
    decode = message_decoder(EVERYTHING)
    raw = EVERYTHING_BYTES[: EVERYTHING_BYTES.index(bytes.fromhex("0007 0100 03")) + 4] + b"\0"
    body, _ = decode(raw, 0, [])
    assert (body["epoch"], body["endpoints"], body["leader"]) == (-1, [], {"leader_id": -1})
    assert "_tagged_fields" not in body
    body["endpoints"].append("spoilt")
    assert decode(raw, 0, [])[0]["endpoints"] == []


def test_tagged_defaults_of_every_type() -> None:
    definition = message(
        field("text", "COMPACT_STRING", tag=0, default=""),
        field("maybe", "COMPACT_NULLABLE_STRING", nullable=True, tag=1),
        field("blob", "COMPACT_BYTES", tag=2, default=""),
        field("flag", "BOOLEAN", tag=3),
        field("id", "UUID", tag=4),
        array("list", "INT32", nullable=True, tag=5),
        field("group", "STRUCT", field("x", "INT8"), nullable=True, tag=6),
        field("ratio", "FLOAT64", tag=7),
        flexible=True,
    )
    assert message_decoder(definition)(b"\0", 0, [])[0] == {
        "text": "", "maybe": None, "blob": b"", "flag": False, "id": "A" * 22, "list": None, "group": None,
        "ratio": 0.0,
    }  # fmt: skip


def test_null_comes_out_where_it_may_be() -> None:
    may = message(field("a", "NULLABLE_STRING"), field("b", "NULLABLE_BYTES"), array("c", "INT8", nullable=True))
    assert message_decoder(may)(b"\xff" * 10, 0, [])[0] == {"a": None, "b": None, "c": None}


def test_a_nullable_structure_starts_with_1_or_minus_1() -> None:
    definition = message(field("cursor", "STRUCT", field("offset", "INT8"), nullable=True))
    decode = message_decoder(definition)
    assert decode(b"\x01\x05", 0, [])[0] == {"cursor": {"offset": 5}}
    assert decode(b"\xff", 0, [])[0] == {"cursor": None}
    assert failure(definition, b"\x00").code == "bad_struct_mark"


def test_a_nullable_structure_in_a_tagged_field_starts_with_1_or_0() -> None:
    cursor = field("cursor", "STRUCT", field("offset", "INT8"), nullable=True, tag=0, default={"offset": 0})
    definition = message(cursor, flexible=True)
    for raw, value in (
        (b"\x01\x00\x03\x01\x05\x00", {"offset": 5}),
        (b"\x01\x00\x01\x00", None),
        (b"\x00", {"offset": 0}),
    ):
        assert message_decoder(definition)(raw, 0, []) == ({"cursor": value}, len(raw))
        assert encode(definition, {"cursor": value}) == raw
        assert plain(dissect(definition, raw, 0).root) == {"cursor": value}
    scanner = BodyScanner(leaf_plan(definition, frozenset({"offset"})))
    assert scanner.scan(b"\x01\x00\x03\x01\x05\x00", 0) and scanner.found == [("offset", 5)]
    assert scanner.scan(b"\x01\x00\x01\x00", 0) and scanner.found == []
    assert not scanner.scan(b"\x01\x00\x01\xff", 0)
    assert failure(definition, b"\x01\x00\x01\xff").code == "bad_struct_mark"


def test_a_count_is_measured_by_the_least_its_entries_take() -> None:
    definition = message(array("a", "STRUCT", field("x", "INT64"), field("y", "STRING")))
    assert failure(definition, struct.pack(">i", 3) + bytes(29)).code == "bad_array_count"
    assert message_decoder(definition)(struct.pack(">i", 3) + bytes(30), 0, [])[1] == 34


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 128, 16381, 16382, 16383, 16384, 40000])
def test_compact_lengths_of_one_two_and_three_bytes(size: int) -> None:
    length = size + 1
    prefix = []
    while length > 127:
        prefix.append(length % 128 + 128)
        length //= 128
    raw = bytes([*prefix, length]) + b"x" * size + b"\0"
    body, end = message_decoder(message(field("a", "COMPACT_STRING"), flexible=True))(raw, 0, [])
    assert (len(body["a"]), end) == (size, len(raw))


def test_floats_that_json_cannot_hold_become_text() -> None:
    definition = message(array("a", "FLOAT64"))
    raw = struct.pack(">i4d", 4, math.nan, math.inf, -math.inf, 0.25)
    assert message_decoder(definition)(raw, 0, [])[0] == {"a": ["NaN", "Infinity", "-Infinity", 0.25]}


def test_fixed_size_entries_with_unknown_tags_are_still_read() -> None:
    definition = message(array("a", "STRUCT", field("x", "INT8")), flexible=True)
    raw = bytes.fromhex("03 01 00 02 01 05 01 aa 00")
    assert message_decoder(definition)(raw, 0, [])[0] == {"a": [{"x": 1}, {"x": 2, "_tagged_fields": {5: b"\xaa"}}]}


def test_a_long_tag_section_is_read_and_a_longer_one_than_the_frame_refused() -> None:
    definition = message(field("x", "INT8", tag=200), flexible=True)
    tags = b"".join(bytes([tag, 0]) for tag in range(128)) + bytes([0xC8, 1, 1, 42])
    body, end = message_decoder(definition)(b"\x81\x01" + tags, 0, [])
    assert (body["x"], len(body["_tagged_fields"]), end) == (42, 128, len(tags) + 2)
    assert failure(definition, b"\xff\xff\x03").code == "bad_array_count"


@pytest.mark.parametrize(
    ("entry", "raw", "value"),
    [
        (array("a", "STRUCT", field("x", "COMPACT_STRING")), b"\x02z\0", {"x": "z"}),
        (array("a", "STRUCT", field("x", "INT8")), b"\x05\0", {"x": 5}),
        (array("a", "COMPACT_STRING"), b"\x02z", "z"),
        (
            array("a", "STRUCT", field("x", "INT8", tag=0)),
            b"\x01\x01\x01\x07",
            {"x": 0, "_tagged_fields": {1: b"\x07"}},
        ),
    ],
)
def test_a_large_frame_is_read_the_same_until_it_is_made_of_too_many_values(
    entry: WireField, raw: bytes, value: Any
) -> None:
    definition = message(entry, flexible=True)

    def frame(count: int) -> bytes:
        return write_uvarint(count + 1) + raw * count + b"\0"

    many = (1 << 18) // len(raw) + 1
    assert message_decoder(definition)(frame(many), 0, [])[0] == {"a": [value] * many}
    error = failure(definition, frame(MAX_ENTRIES + 1))
    assert error.code == "too_many_fields"


def test_numbers_in_an_array_weigh_little() -> None:
    definition = message(array("a", "INT16"))
    body, _ = message_decoder(definition)(struct.pack(">i", 2_000_000) + bytes(4_000_000), 0, [])
    assert len(body["a"]) == 2_000_000
    raw = struct.pack(">i", 9_000_000) + bytes(18_000_000)
    assert failure(definition, raw).code == "too_many_fields"


def test_more_tagged_fields_than_anybody_defines_are_refused() -> None:
    for definition in (message(flexible=True), message(field("x", "INT8", tag=0), flexible=True)):
        assert failure(definition, write_uvarint(MAX_TAGS + 1) + bytes([9, 0]) * 2000).code == "bad_array_count"
        assert message_decoder(definition)(write_uvarint(MAX_TAGS) + bytes([9, 0]) * MAX_TAGS, 0, [])


def test_names_from_a_definition_never_become_code() -> None:
    name = "'] + __import__('os').system('false') + ['\n\\"
    decode = message_decoder(message(field(name, "INT8"), array(name + "2", "STRUCT", field("{}", "INT16"))))
    assert decode(b"\x01\0\0\0\x01\0\x02", 0, [])[0] == {name: 1, name + "2": [{"{}": 2}]}


def test_definitions_that_nest_too_deep_are_refused() -> None:
    inner = field("x", "INT8")
    for _ in range(MAX_NESTING):
        inner = array("x", "STRUCT", inner)
    raw = b"\0\0\0\x01" * MAX_NESTING + b"\x07"
    _, end = message_decoder(message(inner))(raw, 0, [])
    assert end == len(raw)
    with pytest.raises(SchemaError, match="nests"):
        message_decoder(message(array("x", "STRUCT", inner)))


def test_the_deepest_definition_with_tags_at_every_level_compiles() -> None:
    inner = field("x", "INT8", tag=0)
    for _ in range(MAX_NESTING):
        inner = array("x", "STRUCT", inner, tag=0, default=[])
    assert message_decoder(message(inner, flexible=True))(b"\0", 0, [])[0] == {"x": []}


def test_a_decoder_of_records_that_nothing_opens_is_refused() -> None:
    """Whoever makes a decoder says what opens record sets, or that there is none to open."""
    definition = message(field("records", "RECORDS"))
    with pytest.raises(SchemaError, match="Test v0 holds record sets"):
        message_decoder(definition)


def test_records_to_be_skipped_give_their_size() -> None:
    definition = message(field("index", "INT32"), field("records", "RECORDS", nullable=True), field("z", "INT8"))
    decode = message_decoder(definition, "skip")
    assert decode(b"\0\0\0\1\0\0\0\3abc\x05", 0, [])[0] == {"index": 1, "records": {"size_bytes": 3}, "z": 5}
    assert decode(b"\0\0\0\1\xff\xff\xff\xff\x05", 0, [])[0] == {"index": 1, "records": None, "z": 5}
