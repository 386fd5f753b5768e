"""What is left of records after redaction."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from kwiresniff.analysis.redact import Redactor
from kwiresniff.model import Direction, Dissection, Node

PRODUCED: tuple[int, Direction] = (0, "request")


def body() -> dict[str, Any]:
    record: dict[str, Any] = {
        "offset": 5,
        "timestamp": 7,
        "key": b"alice",
        "value": b"\xffsecret",
        "headers": [{"key": "trace", "value": b"t1"}, {"key": "none", "value": None}],
        "decoded": {"value": {"plugin": "p", "data": "secret"}},
    }
    tombstone = {"offset": 6, "timestamp": 7, "key": b"alice", "value": None, "headers": []}
    return {"topic_data": [{"name": "t", "partition_data": [{"records": [{"records": [record, tombstone]}]}]}]}


def redacted(key: str | None, given: dict[str, Any]) -> list[dict[str, Any]]:
    Redactor(key).body(given)
    found: list[dict[str, Any]] = given["topic_data"][0]["partition_data"][0]["records"][0]["records"]
    return found


def stands_for(raw: bytes, key: bytes) -> dict[str, Any]:
    return {"redacted": True, "size_bytes": len(raw), "hash": blake2b(raw, digest_size=8, key=key).hexdigest()}


def test_keys_values_and_headers_become_length_and_keyed_hash() -> None:
    first, second = redacted("k", body())
    assert first == {
        "offset": 5,
        "timestamp": 7,
        "key": stands_for(b"alice", b"k"),
        "value": stands_for(b"\xffsecret", b"k"),
        "headers": [
            {"key": stands_for(b"trace", b"k"), "value": stands_for(b"t1", b"k")},
            {"key": stands_for(b"none", b"k"), "value": None},
        ],
    }
    assert second["key"] == first["key"]
    assert second["value"] is None


def test_without_a_key_every_run_hashes_differently() -> None:
    assert redacted(None, body())[0]["key"]["hash"] != redacted(None, body())[0]["key"]["hash"]


def test_a_key_of_any_length_will_do() -> None:
    assert redacted("x" * 5_000, body())[0]["key"]["size_bytes"] == 5
    assert redacted("", body())[0]["key"]["size_bytes"] == 5


def test_records_that_could_not_be_decoded_are_redacted_whole() -> None:
    raw: dict[str, Any] = {"topic_data": [{"partition_data": [{"records": b"raw"}, {"records": [{"data": b"raw"}]}]}]}
    Redactor("k").body(raw)
    partitions = raw["topic_data"][0]["partition_data"]
    assert partitions[0]["records"] == stands_for(b"raw", b"k")
    assert partitions[1]["records"] == [{"data": stands_for(b"raw", b"k")}]


def test_records_that_were_only_measured_stay_as_they_are() -> None:
    skipped: dict[str, Any] = {"responses": [{"partitions": [{"records": {"size_bytes": 9}}, {"records": None}]}]}
    Redactor("k").body(skipped)
    assert [partition["records"] for partition in skipped["responses"][0]["partitions"]] == [{"size_bytes": 9}, None]


def test_a_tree_loses_the_same_values_and_their_bytes() -> None:
    key = Node("key", "BYTES", 10, 5, b"alice", "text")
    header_key = Node("key", "STRING", 20, 3, "abc")
    record = Node("record", "RECORD", 8, 30, children=[key, Node("header", "HEADER", 20, 9, children=[header_key])])
    records = Node("records", "COMPACT_RECORDS", 4, 40, children=[record])
    unread = Node("records", "RECORDS", 44, 9, {"size_bytes": 9})
    name = Node("key", "STRING", 2, 3, "a group, not a record")
    Redactor("k").dissect(Dissection(Node("body", "STRUCT", 0, 60, children=[name, records, unread]), 60), PRODUCED, 0)
    assert (key.value, key.meaning, key.derived) == (stands_for(b"alice", b"k"), "", True)
    assert (header_key.value, header_key.derived) == (stands_for(b"abc", b"k"), True)
    assert (name.value, name.derived) == ("a group, not a record", False)
    assert (records.derived, unread.derived) == (False, True)


def test_records_of_a_snapshot_are_redacted_too() -> None:
    record: dict[str, Any] = {
        "offset": 0,
        "key": None,
        "value": b"secret",
        "headers": [],
        "decoded": {"value": {"data": {"name": "x"}}},
    }
    given: dict[str, Any] = {"topics": [{"partitions": [{"unaligned_records": [{"records": [record]}]}]}]}
    Redactor("k").body(given)
    assert record == {"offset": 0, "key": None, "value": stands_for(b"secret", b"k"), "headers": []}
    raw: dict[str, Any] = {"topics": [{"partitions": [{"unaligned_records": b"raw"}]}]}
    Redactor("k").body(raw)
    assert raw["topics"][0]["partitions"][0]["unaligned_records"] == stands_for(b"raw", b"k")


def test_a_tree_loses_what_was_decoded_of_a_value() -> None:
    group = Node("group", "STRING", 12, 5, "alice")
    key = Node("key", "BYTES", 10, 7, b"\0\1alice", "OffsetCommitKey v0", children=[group])
    record = Node("record", "RECORD", 8, 30, children=[key])
    Redactor("k").dissect(
        Dissection(Node("body", "STRUCT", 0, 60, children=[Node("records", "RECORDS", 4, 40, children=[record])]), 60),
        PRODUCED,
        0,
    )
    assert (key.value, key.meaning, key.children) == (stands_for(b"\0\1alice", b"k"), "", [])
