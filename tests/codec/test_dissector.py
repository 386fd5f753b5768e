from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwiresniff.codec import dissector, record_limits
from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.node_values import plain
from kwiresniff.codec.records import decode_record_set
from kwiresniff.codec.value_reader import message_decoder
from kwiresniff.errors import DecodeError
from kwiresniff.model import Node, Problem
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

CASES = [
    pytest.param(PRODUCE_RESPONSE_V8, PRODUCE_RESPONSE_V8_BYTES, PRODUCE_RESPONSE_V8_BODY, id="produce"),
    pytest.param(EVERYTHING, EVERYTHING_BYTES, EVERYTHING_BODY, id="everything"),
]


def at(node: Node, *path: str) -> Node:
    for name in path:
        (node,) = [child for child in node.children if child.name == name]
    return node


def leaves(node: Node) -> list[Node]:
    return [leaf for child in node.children for leaf in leaves(child)] or [node]


@pytest.mark.parametrize(("definition", "raw", "body"), CASES)
def test_nodes_and_values_are_the_body_in_wire_order_wherever_it_stands(
    definition: MessageVersion, raw: bytes, body: dict[str, Any]
) -> None:
    dissected = dissect(definition, raw, 0)
    assert (dissected.problems, dissected.end) == ([], len(raw))
    decoded, end = message_decoder(definition)(b"head" + raw + b"tail", 4, [])
    assert end == 4 + len(raw)
    for found in (plain(dissected.root), decoded):
        assert found == body
        assert list(found) == list(body)


def test_every_field_lies_where_its_bytes_are() -> None:
    dissected = dissect(PRODUCE_RESPONSE_V8, b"head" + PRODUCE_RESPONSE_V8_BYTES, 4)
    partition = ("responses", "[0]", "partition_responses", "[0]")
    places = {
        ("responses",): ("ARRAY", 4, len(PRODUCE_RESPONSE_V8_BYTES) - 4),
        ("responses", "[0]", "name"): ("STRING", 8, 3),
        partition: ("STRUCT", 15, 45),
        (*partition, "index"): ("INT32", 15, 4),
        (*partition, "error_code"): ("INT16", 19, 2),
        (*partition, "record_errors", "[0]", "batch_index_error_message"): ("NULLABLE_STRING", 53, 2),
        (*partition, "error_message"): ("NULLABLE_STRING", 55, 5),
        ("throttle_time_ms",): ("INT32", 60, 4),
    }
    for path, (type, offset, length) in places.items():
        node = at(dissected.root, *path)
        assert (path, node.type, node.offset, node.length) == (path, type, offset, length)


def test_tagged_fields_carry_their_tag_and_absent_ones_take_no_bytes() -> None:
    root = dissect(EVERYTHING, EVERYTHING_BYTES, 0).root
    tags = EVERYTHING_BYTES.index(bytes.fromhex("000400000005"))
    epoch, leader, unknown = at(root, "epoch"), at(root, "leader"), at(root, "_tagged_fields", "7")
    assert (epoch.tag, epoch.offset, epoch.length, epoch.value) == (0, tags, 6, 5)
    assert (leader.tag, leader.length, at(leader, "leader_id").value) == (3, 0, -1)
    assert (unknown.tag, unknown.offset, unknown.length, unknown.value) == (7, tags + 16, 4, b"\xca\xfe")


def test_a_null_container_is_told_from_an_empty_one() -> None:
    definition = message(array("a", "INT8", nullable=True), array("b", "INT8", nullable=True))
    root = dissect(definition, b"\xff\xff\xff\xff\0\0\0\0", 0).root
    assert (at(root, "a").null, at(root, "b").null) == (True, False)
    assert plain(root) == {"a": None, "b": []}


@pytest.mark.parametrize(("definition", "raw", "body"), CASES)
def test_a_message_cut_at_any_byte_keeps_what_was_read_and_says_where_it_stopped(
    definition: MessageVersion, raw: bytes, body: dict[str, Any]
) -> None:
    whole = dissect(definition, raw, 0)
    places = {(leaf.name, leaf.offset, leaf.length): leaf.value for leaf in leaves(whole.root)}
    for cut in range(len(raw)):
        with pytest.raises(DecodeError) as caught:
            message_decoder(definition)(raw[:cut], 0, [])
        assert caught.value.code in ("truncated", "bad_array_count")
        dissected = dissect(definition, raw[:cut], 0)
        (problem,) = dissected.problems
        assert problem.code in ("truncated", "bad_array_count")
        assert problem.offset is not None and problem.offset <= cut
        assert problem.path
        marked = [leaf for leaf in leaves(dissected.root) if leaf.problem]
        assert len(marked) <= 1
        for leaf in leaves(dissected.root):
            if leaf.value is not None:
                assert places[leaf.name, leaf.offset, leaf.length] == leaf.value
        assert len(str(plain(dissected.root))) <= len(str(body))


def test_an_array_that_counts_on_missing_bytes_is_read_as_far_as_it_is_there() -> None:
    definition = message(array("a", "STRUCT", field("x", "INT32"), field("y", "INT16")))
    raw = bytes.fromhex("00000004 00000001 0002 00000003 0004 0000")
    assert plain(dissect(definition, raw, 0).root) == {}
    dissected = dissect(definition, raw, 0, missing=10)
    assert plain(dissected.root) == {"a": [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {}]}
    assert [(problem.code, problem.path) for problem in dissected.problems] == [("truncated", "a[2].x")]
    (problem,) = dissect(definition, raw, 0, missing=9).problems
    assert (problem.code, problem.message) == ("bad_array_count", "a counts 4 entries, with 23 bytes left")


@pytest.mark.parametrize(("definition", "raw", "body"), CASES)
def test_trailing_bytes_are_a_problem_beside_the_body(
    definition: MessageVersion, raw: bytes, body: dict[str, Any]
) -> None:
    dissected = dissect(definition, raw + b"xyz", 0)
    assert [(problem.code, problem.offset) for problem in dissected.problems] == [("trailing_bytes", len(raw))]
    assert plain(dissected.root) == body


def test_a_failure_names_the_field_by_its_full_path_and_leaves_it_out_of_the_body() -> None:
    raw = PRODUCE_RESPONSE_V8_BYTES[:53]
    dissected = dissect(PRODUCE_RESPONSE_V8, raw, 0)
    (problem,) = dissected.problems
    assert problem.path == "responses[0].partition_responses[0].error_message"
    assert problem.offset == 51
    assert problem.code == "truncated"
    partition = plain(dissected.root)["responses"][0]["partition_responses"][0]
    assert partition["record_errors"] == [{"batch_index": 2, "batch_index_error_message": None}]
    assert "error_message" not in partition


def test_invalid_utf8_is_a_problem_and_the_walk_goes_on() -> None:
    definition = message(field("name", "STRING"), field("x", "INT8"))
    dissected = dissect(definition, b"\0\x03a\xc3\x28\x07", 0)
    assert plain(dissected.root) == {"name": b"a\xc3\x28", "x": 7}
    assert [(problem.code, problem.offset, problem.path) for problem in dissected.problems] == [
        ("invalid_utf8", 3, "name")
    ]
    assert at(dissected.root, "name").problem
    with pytest.raises(DecodeError) as caught:
        message_decoder(definition)(b"\0\x03a\xc3\x28\x07", 0, [])
    assert caught.value.code == "invalid_utf8"


@pytest.mark.parametrize(
    ("definition", "raw", "code", "path"),
    [
        *(
            (message(array("a", type), flexible=flexible), raw, "bad_array_count", "a")
            for type in ("INT32", "STRING", "UUID", "FLOAT64")
            for flexible, raw in ((False, "7fffffff 00"), (True, "ffffffff07 00"))
        ),
        (message(array("a", "STRING", nullable=True)), "fffffffe 00", "bad_array_count", "a"),
        (message(array("a", "INT8"), flexible=True), "00 00", "bad_length", "a"),
        (message(field("a", "STRING")), "ffff", "bad_length", "a"),
        (message(field("a", "STRING")), "0005 c3", "truncated", "a"),
        (message(field("a", "NULLABLE_STRING")), "fffe", "bad_length", "a"),
        (message(field("a", "BYTES")), "ffffffff", "bad_length", "a"),
        (message(field("a", "NULLABLE_BYTES")), "80000000", "bad_length", "a"),
        (message(field("a", "COMPACT_STRING"), flexible=True), "ffffffff0f 00", "truncated", "a"),
        (message(field("a", "COMPACT_STRING"), flexible=True), "ffffffff1f", "bad_varint", "a"),
        (message(field("a", "INT32", tag=0), flexible=True), "01 00 05 0000000000", "bad_tag_size", "a"),
        (message(array("a", "INT32")), "fffffffe 00", "bad_array_count", "a"),
        (message(array("a", "STRING")), "00000002 0001 61 fffe", "bad_length", "a[1]"),
        (message(field("a", "BYTES")), "7fffffff 00", "truncated", "a"),
        (message(field("a", "COMPACT_STRING"), flexible=True), "808080808001", "bad_varint", "a"),
        (message(field("a", "COMPACT_STRING"), flexible=True), "00", "bad_length", "a"),
        (message(field("a", "STRUCT", field("b", "INT8"), nullable=True)), "0202", "bad_struct_mark", "a"),
        (message(field("a", "INT32", tag=0), flexible=True), "01 00 03 00000000", "bad_tag_size", "a"),
        (message(flexible=True), "ff01", "bad_array_count", "_tagged_fields"),
        (message(field("a", "STRUCT"), flexible=True), "01 05 7f", "truncated", "a._tagged_fields"),
    ],
)
def test_hostile_bytes_are_told_by_code_and_path_and_refused_by_the_decoder(
    definition: MessageVersion, raw: str, code: str, path: str
) -> None:
    (problem,) = dissect(definition, bytes.fromhex(raw), 0).problems
    assert (problem.code, problem.path) == (code, path)
    with pytest.raises(DecodeError) as caught:
        message_decoder(definition)(bytes.fromhex(raw), 0, [])
    assert caught.value.code == code


def test_a_message_of_too_many_fields_is_cut_off_counted_and_still_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dissector, "MAX_NODES", 10)
    definition = message(array("a", "INT8"), field("x", "INT16"))
    dissected = dissect(definition, b"\0\0\0\x32" + bytes(50) + b"\0\x05", 0)
    assert dissected.end == 56
    assert len(leaves(dissected.root)) <= 10
    (problem,) = dissected.problems
    assert problem.code == "too_many_fields"
    assert "52 fields" in problem.message


def test_a_message_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dissector, "MAX_NODES", 10)
    monkeypatch.setattr(dissector, "MAX_COUNTED", 20)
    dissected = dissect(message(array("a", "INT8")), b"\0\0\0\x32" + bytes(50), 0)
    assert dissected.end < 30
    assert {problem.code for problem in dissected.problems} == {"too_many_fields"}


def test_a_thousand_bad_strings_are_not_a_thousand_problems() -> None:
    raw = b"\0\0\x03\xe8" + b"\0\x01\xff" * 1000
    dissected = dissect(message(array("a", "STRING")), raw, 0)
    assert dissected.end == len(raw)
    assert len(dissected.problems) == dissector.MAX_PROBLEMS
    assert plain(dissected.root) == {"a": [b"\xff"] * 1000}


def test_unopened_record_sets_give_their_size() -> None:
    definition = message(field("records", "RECORDS", nullable=True))
    assert plain(dissect(definition, b"\0\0\0\x03abc", 0, records=False).root) == {"records": {"size_bytes": 3}}
    assert plain(dissect(definition, b"\xff" * 4, 0, records=False).root) == {"records": None}


@given(st.sampled_from([EVERYTHING, PRODUCE_RESPONSE_V8]), st.binary(max_size=150))
def test_walker_and_decoder_agree_on_any_bytes(definition: MessageVersion, raw: bytes) -> None:
    dissected = dissect(definition, raw, 0)
    try:
        body, end = message_decoder(definition)(raw, 0, [])
    except DecodeError:
        assert dissected.problems
    else:
        assert (plain(dissected.root), dissected.end) == (body, end)
        assert all(problem.code == "trailing_bytes" for problem in dissected.problems)


@given(st.sampled_from([case.values[:2] for case in CASES]), st.lists(st.tuples(st.integers(0), st.integers(0, 255))))
def test_walker_and_decoder_agree_on_spoilt_messages(case: Any, changes: Any) -> None:
    definition, raw = case[0], bytearray(case[1])
    for place, value in changes:
        raw[place % len(raw)] = value
    dissected = dissect(definition, bytes(raw), 0)
    try:
        body, end = message_decoder(definition)(bytes(raw), 0, [])
    except DecodeError:
        assert dissected.problems
    else:
        assert (repr(plain(dissected.root)), dissected.end) == (repr(body), end)


#: A batch v2 of one record, key "k", value "v", written by Kafka's rules; its CRC is spoilt in the second.
BATCH = bytes.fromhex(
    "0000000000000005 0000003a 00000000 02 {crc} 0000 00000000 0000018bcfe56800 0000018bcfe56800"
    "ffffffffffffffff ffff ffffffff 00000001 10 00 00 00 02 6b 02 76 00".format(crc="00000000")
)


def test_record_sets_are_opened_and_their_problems_carry_the_whole_path() -> None:
    definition = message(array("partitions", "STRUCT", field("records", "RECORDS", nullable=True)))
    raw = b"\0\0\0\x02" + b"\xff" * 4 + len(BATCH).to_bytes(4, "big") + BATCH
    dissected = dissect(definition, raw, 0)
    (problem,) = dissected.problems
    assert problem.path.startswith("partitions[1].records[0]")
    assert problem.code == "bad_crc"
    assert problem.offset == 12 + 17
    issues: list[Problem] = []
    body, _ = message_decoder(definition, "full", lambda: decode_record_set)(raw, 0, issues)
    assert plain(dissected.root) == body
    assert body["partitions"][1]["records"][0]["records"][0]["key"] == b"k"
    assert [issue.code for issue in issues] == ["bad_crc"]


def test_the_record_sets_of_one_message_share_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_limits, "MAX_RECORDS", 1)
    definition = message(array("partitions", "STRUCT", field("records", "RECORDS")))
    raw = b"\0\0\0\x02" + (len(BATCH).to_bytes(4, "big") + BATCH) * 2
    issues: list[Problem] = []
    message_decoder(definition, "full", lambda: decode_record_set)(raw, 0, issues)
    dissected = dissect(definition, raw, 0)
    assert "too_many_records" in {issue.code for issue in issues}
    assert "partitions[1].records[0].records" in {problem.path for problem in dissected.problems}
