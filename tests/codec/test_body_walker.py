"""What a scanner finds of Kafka's own bytes, of bytes by hand, and of messages that break off or are damaged."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from kwiresniff import codec, schema
from kwiresniff.codec.body_walker import BodyScanner
from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.field_layout import MAX_ENTRIES
from kwiresniff.codec.node_values import plain
from kwiresniff.codec.plan import leaf_plan
from kwiresniff.codec.value_reader import message_decoder
from kwiresniff.errors import DecodeError
from kwiresniff.schema.types import MessageVersion
from tests.support.definitions import (
    EVERYTHING,
    EVERYTHING_BYTES,
    PRODUCE_RESPONSE_V8,
    PRODUCE_RESPONSE_V8_BYTES,
    array,
    field,
    message,
)
from tests.support.encoding import encoder
from tests.support.encoding.primitives import write_uvarint
from tests.support.error_codes import error_codes
from tests.support.kafka_vectors import entries

#: Where ``PRODUCE_RESPONSE_V8_BYTES`` has its error code.
ERROR = "responses[0].partition_responses[0].error_code"


def scan(definition: MessageVersion, raw: bytes, *wanted: str) -> list[tuple[str, Any]] | None:
    """What is found in bytes that fit, error codes last; None for others."""
    scanner, errors = BodyScanner(leaf_plan(definition, frozenset(wanted))), [("left over", 1)]
    return [*scanner.found, *errors] if scanner.scan(raw, 0, 0, errors) else None


def front(definition: MessageVersion, raw: bytes, size_bytes: int, *wanted: str) -> list[tuple[str, Any]]:
    """What is found in the front of a message of ``size_bytes``."""
    scanner, errors = BodyScanner(leaf_plan(definition, frozenset(wanted))), [("left over", 1)]
    scanner.scan(raw, 0, size_bytes, errors)
    return [*scanner.found, *errors]


def test_leaves_are_found_by_name_enumeration_and_entity() -> None:
    raw = PRODUCE_RESPONSE_V8_BYTES
    assert scan(PRODUCE_RESPONSE_V8, raw, "throttle_time_ms") == [("throttle_time_ms", 100)]
    assert scan(PRODUCE_RESPONSE_V8, raw, "error_code", "topicName") == [("name", "t"), (ERROR, 6)]
    assert scan(PRODUCE_RESPONSE_V8, raw, "index", "error_message", "batch_index") == [
        ("index", 3),
        ("batch_index", 2),
        ("error_message", "no!"),
    ]


def test_every_type_is_found_or_jumped_over() -> None:
    names = {child.name for child in EVERYTHING.fields} - {"ratio", "blob"}
    found = scan(EVERYTHING, EVERYTHING_BYTES, *names, "partition", "host", "a")
    assert found == [
        ("flag", True), ("small", -1), ("port", 65535), ("crc", 2147483649),
        ("topic_id", "ABEiM0RVZneImaq7zN3u_w"), ("name", "ab"), ("replicas", 1),
        ("replicas", -1), ("partition", 1), ("partition", 2), ("a", 7), ("epoch", 5), ("host", "h"), ("port", 1),
    ]  # fmt: skip
    for name, value in found:
        assert (name, value) in (scan(EVERYTHING, EVERYTHING_BYTES, name) or ())


def test_codes_are_known_by_their_enumeration_not_by_their_name() -> None:
    """Two error codes under other names, one of them in an array, and a number called like one."""
    code = partial(field, type="INT16", enum="error_code")
    definition = message(
        code("acknowledge_error"), field("error_code", "INT16"), array("codes", "INT16", enum="error_code")
    )
    raw = b"\0\3" + b"\0\4" + b"\0\0\0\2\0\0\0\5"
    assert scan(definition, raw, "error_code") == [("acknowledge_error", 3), ("codes[1]", 5)]


def test_what_is_zero_or_empty_is_left_out() -> None:
    definition = message(
        field("a", "INT32"), field("b", "STRING"), field("c", "NULLABLE_STRING"), array("d", "INT8"), field("e", "UUID")
    )
    raw = bytes(4) + bytes(2) + b"\xff\xff" + b"\0\0\0\x02\0\x05" + bytes(16)
    assert scan(definition, raw, "a", "b", "c", "d", "e") == [("d", 5)]


def test_it_stops_after_the_last_field_that_was_asked_for() -> None:
    raw = PRODUCE_RESPONSE_V8_BYTES[:-4]
    assert scan(PRODUCE_RESPONSE_V8, raw, "error_code") == [(ERROR, 6)]
    assert scan(PRODUCE_RESPONSE_V8, b"", "nothing_of_the_kind") == []
    assert scan(PRODUCE_RESPONSE_V8, raw, "throttle_time_ms") is None


def test_a_cut_message_never_gives_a_shortened_value() -> None:
    definition = message(field("name", "STRING"), field("x", "INT8"))
    for cut in range(6):
        assert scan(definition, b"\0\x04abcd"[:cut], "name") is None


def test_what_is_there_before_a_message_breaks_off_is_found() -> None:
    wanted = ("error_code", "topicName", "batch_index")
    whole, found = PRODUCE_RESPONSE_V8_BYTES, []
    ends = {7: ("name", "t"), 17: (ERROR, 6), 49: ("batch_index", 2)}
    for cut in range(len(whole) + 1):
        found += [ends[cut]] if cut in ends else []
        assert sorted(front(PRODUCE_RESPONSE_V8, whole[:cut], len(whole), *wanted)) == sorted(found), cut


def test_the_error_codes_of_a_body_decoded_in_part_are_found() -> None:
    """The scanner and the dissector agree over Kafka's own bytes, cut anywhere."""
    rng = random.Random(3)
    told = 0
    for entry in entries():
        if entry.kind != "response":
            continue
        definition = schema.message(entry.api_key, entry.version, "response")
        for raw in (vector.raw for vector in entry.vectors):
            at = rng.randrange(len(raw) + 1)
            body = plain(dissect(definition, raw[:at], 0, missing=len(raw) - at).root)
            codes = error_codes(definition, body)
            assert front(definition, raw[:at], len(raw), "error_code") == codes, (entry.title, entry.version, at)
            told += len(codes)
    assert told > 300


@pytest.mark.parametrize("raw", ["7fffffff 0000", "ffffffff", "00000001 fffe 00000000", "00000001 0001 74 80000000"])
def test_nothing_is_found_where_nothing_fits(raw: str) -> None:
    assert front(PRODUCE_RESPONSE_V8, bytes.fromhex(raw), 1 << 20, "throttle_time_ms") == []


def test_record_sets_are_jumped_over() -> None:
    definition = message(
        array("partitions", "STRUCT", field("records", "RECORDS", nullable=True), field("index", "INT8")),
        field("acks", "INT16"),
    )
    raw = bytes.fromhex("00000003 00000002 ffff 01 ffffffff 02 00000000 03 ffff")
    assert scan(definition, raw, "records", "acks") == [("acks", -1)]


@pytest.mark.parametrize("wanted", [("x",), ("y",), ("unwanted", "last")])
def test_fixed_size_entries_with_unknown_tags_are_read_one_by_one(wanted: set[str]) -> None:
    definition = message(
        array("a", "STRUCT", field("x", "INT8"), field("y", "INT16")), field("last", "INT8"), flexible=True
    )
    raw = bytes.fromhex("03 01 0002 00  03 0004 01 05 01 aa  07 00")
    body, _ = message_decoder(definition)(raw, 0, [])
    expected = [(n, entry[n]) for entry in body["a"] for n in ("x", "y") if n in wanted]
    assert scan(definition, raw, *wanted) == expected + [("last", 7)] * ("last" in wanted)


def test_a_large_frame_gives_only_so_many_values() -> None:
    definition = message(array("topics", "COMPACT_STRING", entity="topicName"), flexible=True)
    assert scan(definition, write_uvarint(200_001) + b"\x02z" * 200_000, "topicName") == [("topics", "z")] * 200_000
    assert scan(definition, write_uvarint(MAX_ENTRIES + 2) + b"\x02z" * (MAX_ENTRIES + 1), "topicName") is None


@pytest.mark.parametrize(
    "raw",
    ["7fffffff 0000", "ffffffff", "00000001 fffe 00000000", "00000001 ffff 00000000", "00000001 0001 74 80000000"],
)
def test_hostile_counts_and_lengths_are_refused(raw: str) -> None:
    assert scan(PRODUCE_RESPONSE_V8, bytes.fromhex(raw), "throttle_time_ms") is None


@pytest.mark.parametrize("codes", [[0], [6], [-1], [0, 6, 0, -1, 32767]])
def test_the_codes_that_are_not_zero_come_in_order(codes: list[int]) -> None:
    """A Produce response v8 with a partition for each code, behind four bytes that are none of it."""
    partitions: list[dict[str, Any]] = [
        {"index": 0, "error_code": code, "base_offset": 7, "log_append_time_ms": -1, "log_start_offset": 0,
         "record_errors": [], "error_message": None}
        for code in codes
    ]  # fmt: skip
    body = {"responses": [{"name": "orders", "partition_responses": partitions}], "throttle_time_ms": 0}
    scanner, errors = codec.scanner(0, 8, "response", frozenset({"error_code"})), [("left over", 1)]
    assert scanner.scan(b"head" + encoder(0, 8, "response")(body), 4, 0, errors)
    place = "responses[0].partition_responses[{}].error_code"
    assert errors == [(place.format(at), code) for at, code in enumerate(codes) if code]


def test_damaged_bytes_fit_the_scanner_where_they_fit_the_decoder() -> None:
    """Kafka's own responses with a byte changed, some of them cut: it sees less of them, so it may only miss a fault.
    Where both are content they tell the same."""
    rng = random.Random(7)
    agreed = refused = 0
    for entry in entries():
        if entry.kind != "response":
            continue
        definition = schema.message(entry.api_key, entry.version, "response")
        decode = message_decoder(definition, "skip")
        for raw in (vector.raw for vector in entry.vectors[:2] if vector.raw):
            for _ in range(6):
                broken = bytearray(raw)
                broken[rng.randrange(len(broken))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
                cut = bytes(broken[: rng.randrange(len(broken) + 1)]) if rng.random() < 0.3 else bytes(broken)
                found = scan(definition, cut, "error_code")
                try:
                    body, _ = decode(cut, 0, [])
                except DecodeError:
                    refused += found is None
                    continue
                assert found is not None, (entry.title, entry.version, cut)
                assert found == error_codes(definition, body), (entry.title, entry.version)
                agreed += 1
    assert min(agreed, refused) > 300


def test_the_sizes_of_record_sets_are_weighed() -> None:
    """Two partitions of a Fetch response v4, one without records."""
    partition = {
        "partition_index": 0, "error_code": 0, "high_watermark": 1, "last_stable_offset": 1, "aborted_transactions": [],
    }  # fmt: skip
    body = {
        "throttle_time_ms": 0,
        "responses": [{"topic": "t", "partitions": [{**partition, "records": None}, {**partition, "records": []}]}],
    }
    raw = encoder(1, 4, "response")(body)
    at = raw.rindex(bytes(4))
    weigher = codec.record_weigher(1, 4)
    assert weigher.scan(raw, 0) and weigher.found == []
    assert weigher.scan(raw[:at] + b"\0\0\0\5bytes", 0) and weigher.found == [("records", 5)]
    assert not weigher.scan(raw[:at] + b"\0\0\0\6bytes", 0)
