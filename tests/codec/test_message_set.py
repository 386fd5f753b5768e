"""Message sets that Kafka's newer classes no longer write: built by hand from the protocol guide's layout."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import Any

import pytest

from kwiresniff.codec.records import decode_record_set, dissect_record_set, plain_batches
from kwiresniff.model import Problem
from tests.support.record_vectors import all_records, vector

LOG_APPEND_TIME = 8
GZIP = 1


def message(offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
    body = bytes([magic, attributes]) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        body += b"\xff\xff\xff\xff" if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(offset: int, magic: int, timestamp: int, inner: bytes, attributes: int = GZIP) -> bytes:
    return message(offset, magic, attributes, timestamp, None, gzip.compress(inner, mtime=0))


def decode(wire: bytes) -> tuple[list[dict[str, Any]], list[Problem]]:
    issues: list[Problem] = []
    batches = decode_record_set(wire, 0, len(wire), "full", issues)
    assert isinstance(batches, list)
    nodes, problems = dissect_record_set(wire, 0, len(wire))
    assert plain_batches(nodes) == batches
    assert [(p.code, p.message, p.offset) for p in problems] == [(i.code, i.message, i.offset) for i in issues]
    return batches, issues


def three(magic: int, first: int = 0) -> bytes:
    return b"".join(message(first + i, magic, 0, 100 + i, b"k", b"%d" % i) for i in range(3))


def offsets(batches: list[dict[str, Any]]) -> list[int]:
    return [record["offset"] for batch in batches for record in batch["records"]]


def test_magic_0_holds_absolute_inner_offsets() -> None:
    batches, issues = decode(wrapper(52, 0, 0, three(0, first=50)))
    assert (offsets(batches), issues) == ([50, 51, 52], [])


def test_magic_1_counts_inner_offsets_back_from_the_outer_one() -> None:
    batches, _ = decode(wrapper(52, 1, 0, three(1)))
    assert offsets(batches) == [50, 51, 52]


def test_magic_1_counts_from_the_last_inner_offset_when_compaction_has_left_gaps() -> None:
    inner = message(0, 1, 0, 1, None, b"a") + message(7, 1, 0, 2, None, b"b")
    assert offsets(decode(wrapper(107, 1, 0, inner))[0]) == [100, 107]


def test_a_producer_that_left_the_outer_offset_at_zero_keeps_its_inner_offsets() -> None:
    assert offsets(decode(wrapper(0, 1, 0, three(1)))[0]) == [0, 1, 2]
    assert offsets(decode(wrapper(0, 0, 0, three(0)))[0]) == [0, 1, 2]


def test_log_append_time_of_the_outer_message_replaces_the_inner_ones() -> None:
    batches, _ = decode(wrapper(2, 1, 999, three(1), GZIP | LOG_APPEND_TIME))
    assert [record["timestamp"] for record in batches[0]["records"]] == [999, 999, 999]
    assert batches[0]["timestamp_type"] == "log_append_time"


def test_a_set_in_a_set_is_opened() -> None:
    batches, issues = decode(wrapper(5, 0, 0, wrapper(4, 0, 0, three(0, first=2)) + message(5, 0, 0, 0, None, None)))
    assert (offsets(batches), issues) == ([2, 3, 4, 5], [])


def test_sets_nested_without_end_are_given_up() -> None:
    wire = message(0, 0, 0, 0, None, b"core")
    for _ in range(50):
        wire = wrapper(0, 0, 0, wire)
    batches, issues = decode(wire)
    assert [issue.code for issue in issues] == ["nested_too_deep"]
    assert batches[0]["records"] == []


def test_an_inner_crc_that_is_wrong_is_told_and_the_records_kept() -> None:
    inner = bytearray(three(1))
    inner[-1] ^= 1
    batches, issues = decode(wrapper(2, 1, 0, bytes(inner)))
    assert [(issue.code, issue.offset) for issue in issues] == [("bad_crc", 0)]
    assert offsets(batches) == [0, 1, 2]


@pytest.mark.parametrize("cut", [1, 5, 20, 27])
def test_an_inner_set_that_ends_early_keeps_what_is_whole(cut: int) -> None:
    batches, issues = decode(wrapper(1, 0, 0, three(0)[:-cut]))
    assert [issue.code for issue in issues] == ["bad_record"]
    assert offsets(batches) == [0, 1]


def test_a_compressed_message_without_value_or_with_noise_is_told() -> None:
    batches, issues = decode(message(3, 1, GZIP, 0, None, None) + message(4, 1, GZIP, 0, None, b"noise") + three(1, 5))
    assert [issue.code for issue in issues] == ["bad_compressed_data", "bad_compressed_data"]
    assert [batch["uncompressed_size_bytes"] for batch in batches[:2]] == [None, None]
    assert offsets(batches) == [5, 6, 7]


def test_batches_inside_message_sets_are_unknown() -> None:
    batch = vector("3.9.1 magic2 none plain")["wire"]
    batches, issues = decode(wrapper(3, 1, 0, three(1) + batch))
    assert [issue.code for issue in issues] == ["unknown_magic"]
    assert len(offsets(batches)) == 3


def test_lengths_inside_a_message_that_do_not_fit_are_told() -> None:
    wire = bytearray(message(0, 0, 0, 0, b"key", b"value"))
    wire[18:22] = (1000).to_bytes(4, "big")
    wire[12:16] = zlib.crc32(wire[16:]).to_bytes(4, "big")
    batches, issues = decode(bytes(wire) + three(0, 1))
    assert [(issue.code, issue.offset) for issue in issues] == [("bad_record", 18)]
    assert offsets(batches) == [1, 2, 3]


def test_messages_and_batches_in_one_set_are_read_side_by_side() -> None:
    row = vector("3.9.1 mixed magics")
    batches, _ = decode(row["wire"])
    assert [batch["magic"] for batch in batches] == [0, 0, 0, 0, 1, 2, 1, 1, 1, 1]
    assert [record["value"] for batch in batches for record in batch["records"]] == [
        record["value"] for record in all_records(row)
    ]
