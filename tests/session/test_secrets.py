"""Credentials in the metadata log, which brokers fetch from each other."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.node_values import plain
from kwiresniff.model import Body, Message
from kwiresniff.schema import message
from kwiresniff.session.secrets import MAX_COMPARED_BYTES, MAX_EXPLANATION_CHARS, conceal, conceal_dissection
from kwiresniff.session.withheld import all_nodes
from tests.support.encoding import encoder

METADATA_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
SECRET = b"not-to-be-seen"
#: Frame version, record type and version, then compact strings (KIP-631).
SCRAM = b"\x01\x0b\x00\x06alice\x02\x0f" + SECRET + b"\x0f" + SECRET + b"\x0f" + SECRET + b"\x00\x00\x10\x00\x00"
CONFIG = b"\x01\x04\x00\x04\x021\x11sasl.jaas.config\x0f" + SECRET + b"\x00"


def batches(value: bytes) -> list[dict[str, Any]]:
    record: dict[str, Any] = {"offset": 0, "timestamp": 0, "key": None, "value": value, "headers": []}
    return [{"base_offset": 0, "magic": 2, "partition_leader_epoch": 0, "compression": "none", "base_timestamp": 0,
             "max_timestamp": 0, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1, "attributes": 0,
             "last_offset_delta": 0, "records": [record]}]  # fmt: skip


def fetch(topic: dict[str, str], value: bytes) -> dict[str, Any]:
    partition = {"partition_index": 0, "error_code": 0, "high_watermark": 1, "last_stable_offset": 1,
                 "log_start_offset": 0, "aborted_transactions": [], "preferred_read_replica": -1,
                 "records": batches(value)}  # fmt: skip
    return {
        "throttle_time_ms": 0,
        "error_code": 0,
        "session_id": 0,
        "responses": [{**topic, "partitions": [partition]}],
    }


def snapshot(topic: dict[str, str], value: bytes) -> dict[str, Any]:
    partition = {"index": 0, "error_code": 0, "snapshot_id": {"end_offset": 1, "epoch": 1}, "size": 1, "position": 0,
                 "unaligned_records": batches(value)}  # fmt: skip
    return {"throttle_time_ms": 0, "error_code": 0, "topics": [{**topic, "partitions": [partition]}]}


CARRIERS = [
    pytest.param(1, 12, fetch, {"topic": "__cluster_metadata"}, id="fetch by name"),
    pytest.param(1, 17, fetch, {"topic_id": METADATA_ID}, id="fetch by id"),
    pytest.param(59, 0, snapshot, {"name": "__cluster_metadata"}, id="snapshot"),
]


@pytest.mark.parametrize(("api_key", "version", "carrier", "topic"), CARRIERS)
@pytest.mark.parametrize("value", [SCRAM, CONFIG])
def test_credentials_in_the_metadata_log_are_withheld(
    api_key: int, version: int, carrier: Any, topic: dict[str, str], value: bytes
) -> None:
    """In bodies and in trees alike."""
    frame = encoder(api_key, version, "response")(carrier(topic, value))
    dissected = dissect(message(api_key, version, "response"), frame, 0)
    assert not dissected.problems
    body = plain(dissected.root)
    assert SECRET in repr(body).encode()
    conceal(api_key, "response", body)
    conceal_dissection(api_key, "response", dissected)
    assert SECRET not in repr(body).encode()
    assert SECRET not in repr(plain(dissected.root)).encode()


@pytest.mark.parametrize(("api_key", "version", "carrier", "topic"), CARRIERS)
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(SCRAM[:-6], id="cut"),
        pytest.param(b"\x01\x7e\x00" + SCRAM[3:], id="of a type nobody knows"),
        pytest.param(b"\x02" + SCRAM[1:], id="in a frame nobody knows"),
        pytest.param(SECRET, id="anything"),
    ],
)
def test_what_cannot_be_read_in_the_metadata_log_is_withheld(
    api_key: int, version: int, carrier: Any, topic: dict[str, str], value: bytes
) -> None:
    """A wrong type or length makes no secret harmless; the tree's bytes go as well."""
    frame = encoder(api_key, version, "response")(carrier(topic, value))
    dissected = dissect(message(api_key, version, "response"), frame, 0)
    body = plain(dissected.root)
    conceal(api_key, "response", body)
    conceal_dissection(api_key, "response", dissected)
    assert SECRET not in repr(body).encode()
    assert SECRET not in repr(plain(dissected.root)).encode()
    assert all(node.derived for node in all_nodes(dissected.root) if node.name == "value")


def explained(said: str, asked: bytes) -> Any:
    """What is left of the explanation of an AlterUserScramCredentials, after a request with these bytes."""
    body: Body = {"throttle_time_ms": 0, "results": [{"user": "alice", "error_code": 93, "error_message": said}]}
    conceal(51, "response", body, request=Message(0, 0, 0, 0, len(asked), asked))
    return body["results"][0]["error_message"]


def test_an_explanation_is_shown_unless_it_quotes_the_credentials() -> None:
    """The first is Kafka's own (ScramControlManager); the others have a salt as text, in hex and in base64."""
    assert explained("Too few iterations", b"hunter2salt") == "Too few iterations"
    for said in ("bad salt hunter2!", "bad: 68756e74657232", "salt aHVudGVyMg== is short"):
        assert explained(said, b"hunter2salt") == {"withheld": True, "size_bytes": len(said)}


def test_what_is_too_long_to_be_compared_is_withheld() -> None:
    """One character, or one byte, beyond the limits."""
    assert explained("x" * MAX_EXPLANATION_CHARS, b"") == "x" * MAX_EXPLANATION_CHARS
    assert explained("x" * (MAX_EXPLANATION_CHARS + 1), b"") != "x" * (MAX_EXPLANATION_CHARS + 1)
    assert explained("refused", bytes(MAX_COMPARED_BYTES)) == "refused"
    assert explained("refused", bytes(MAX_COMPARED_BYTES + 1)) != "refused"
