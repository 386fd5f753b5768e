from __future__ import annotations

from kwiresniff.codec.error_finders import compile_error_finder
from kwiresniff.schema.types import WireField
from tests.support.definitions import PRODUCE_RESPONSE_V8, PRODUCE_RESPONSE_V8_BODY, array, field, message


def code(name: str = "error_code") -> WireField:
    return field(name, "INT16", enum="error_code")


def test_every_error_code_is_found_with_its_path() -> None:
    find = compile_error_finder(PRODUCE_RESPONSE_V8)
    assert find(PRODUCE_RESPONSE_V8_BODY) == [("responses[0].partition_responses[0].error_code", 6)]
    good = {"index": 0, "error_code": 0}
    bad = {"index": 1, "error_code": -1}
    body = {"responses": [{"partition_responses": [good]}, {"partition_responses": [good, bad]}]}
    assert find(body) == [("responses[1].partition_responses[1].error_code", -1)]


def test_codes_are_known_by_their_enumeration_not_by_their_name() -> None:
    definition = message(
        code("acknowledge_error"), field("error_code", "INT16"), array("codes", "INT16", enum="error_code")
    )
    body = {"acknowledge_error": 3, "error_code": 4, "codes": [0, 5]}
    assert compile_error_finder(definition)(body) == [("acknowledge_error", 3), ("codes[1]", 5)]


def test_null_arrays_and_structures_hold_no_errors() -> None:
    definition = message(
        array("topics", "STRUCT", code(), nullable=True), field("cursor", "STRUCT", code(), nullable=True), code()
    )
    find = compile_error_finder(definition)
    assert find({"topics": None, "cursor": None, "error_code": 7}) == [("error_code", 7)]
    assert find({"topics": [], "cursor": {"error_code": 8}, "error_code": 0}) == [("cursor.error_code", 8)]


def test_a_body_decoded_in_part_gives_the_errors_that_are_there() -> None:
    body = {"responses": [{"name": "t", "partition_responses": [{"index": 0, "error_code": 6}, {"index": 1}]}]}
    find = compile_error_finder(PRODUCE_RESPONSE_V8)
    assert find(body) == [("responses[0].partition_responses[0].error_code", 6)]
    assert find({}) == []


def test_odd_names_are_only_text() -> None:
    definition = message(array("100%d\n'", "STRUCT", code()), code("%s"))
    assert compile_error_finder(definition)({"100%d\n'": [{"error_code": 1}], "%s": 2}) == [
        ("100%d\n'[0].error_code", 1),
        ("%s", 2),
    ]
