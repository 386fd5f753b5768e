from __future__ import annotations

import pytest

from kwiresniff import codec
from kwiresniff.codec.node_values import plain
from kwiresniff.errors import DecodeError, SchemaError
from tests.support.encoding import data_encoder, encoder

API_VERSIONS_V3 = bytes.fromhex("08 6c69627264 6b61 06 322e332e30 00".replace(" ", ""))


def test_a_decoder_is_made_once_for_an_api_version_and_direction() -> None:
    assert codec.decoder(18, 3, "request") is codec.decoder(18, 3, "request")
    body, end = codec.decoder(18, 3, "request")(API_VERSIONS_V3, 0, [])
    assert body == {"client_software_name": "librdka", "client_software_version": "2.3.0"}
    assert end == len(API_VERSIONS_V3)
    assert encoder(18, 3, "request")(body) == API_VERSIONS_V3


def test_messages_inside_messages_have_decoders_by_name() -> None:
    # A ConsumerProtocolSubscription v1 without its leading version: two topics, no user data, nothing owned.
    raw = bytes.fromhex("00000002 0001 61 0001 62 ffffffff 00000000")
    body, _ = codec.data_decoder("ConsumerProtocolSubscription", 1)(raw, 0, [])
    assert body == {"topics": ["a", "b"], "user_data": None, "owned_partitions": []}
    assert data_encoder("ConsumerProtocolSubscription", 1)(body) == raw


def test_what_nobody_knows_is_a_schema_error() -> None:
    for look_up in (
        lambda: codec.decoder(9999, 0, "request"),
        lambda: encoder(18, 99, "request"),
        lambda: codec.data_decoder("NoSuchThing", 0),
        lambda: codec.scanner(9999, 0, "request", frozenset()),
    ):
        with pytest.raises(SchemaError):
            look_up()


def test_heartbeat_errors_are_found() -> None:
    raw = bytes.fromhex("00000000 001b")
    scanner, errors = codec.scanner(12, 1, "response", frozenset({"error_code"})), [("left over", 1)]
    assert scanner.scan(raw, 0, 0, errors) and (scanner.found, errors) == ([], [("error_code", 27)])


def test_headers_are_walked_up_to_the_body() -> None:
    frame = bytes.fromhex("0003 0009 0000002a 0003 6b6361 01 00 02 beef") + b"body"
    dissected = codec.dissect_header("request", 2, frame)
    assert (dissected.end, dissected.problems) == (18, [])
    assert plain(dissected.root) == {
        "request_api_key": 3,
        "request_api_version": 9,
        "correlation_id": 42,
        "client_id": "kca",
        "_tagged_fields": {0: b"\xbe\xef"},
    }
    assert dissected.root.children[0].meaning == "Metadata"
    assert codec.dissect_header("response", 0, frame[:3]).problems[0].code == "truncated"


def test_records_are_opened_as_far_as_was_asked_for() -> None:
    # Produce v3 with one empty partition set aside: no transactional id, acks 1, one topic, one partition, no records.
    raw = bytes.fromhex("ffff 0001 00000064 00000001 0001 74 00000001 00000000 00000000")
    for records, value in (("full", []), ("headers", []), ("skip", {"size_bytes": 0})):
        body, _ = codec.decoder(0, 3, "request", records)(raw, 0, [])
        assert body["topic_data"][0]["partition_data"][0]["records"] == value
    with pytest.raises(DecodeError):
        codec.decoder(0, 3, "request", "full")(raw[:-1], 0, [])
