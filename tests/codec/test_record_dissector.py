"""Annotated record sets: where everything lies and what it means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kwiresniff.codec import batch_nodes
from kwiresniff.codec.record import RecordField, record_fields
from kwiresniff.codec.record_dissector import headers_of_sound
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.record_reader import RecordDicts, RecordReader
from kwiresniff.codec.records import dissect_record_set
from kwiresniff.errors import DecodeError
from kwiresniff.model import Node
from tests.support.record_vectors import vector, vectors
from tests.support.sample import sampled


def dissect(name: str) -> list[Node]:
    wire = vector(name)["wire"]
    return dissect_record_set(wire, 0, len(wire))[0]


def child(node: Node, *names: str) -> Node:
    for name in names:
        node = next(child for child in node.children if child.name == name)
    return node


def below(node: Node) -> Iterator[Node]:
    yield node
    for inner in node.children:
        yield from below(inner)


def test_the_fields_of_a_batch_lie_where_the_protocol_guide_puts_them() -> None:
    (batch,) = dissect("3.9.1 magic2 none transactional")
    places = [(node.name, node.type, node.offset, node.length) for node in batch.children]
    assert places == [
        ("base_offset", "INT64", 0, 8),
        ("batch_length", "INT32", 8, 4),
        ("partition_leader_epoch", "INT32", 12, 4),
        ("magic", "INT8", 16, 1),
        ("crc", "UINT32", 17, 4),
        ("attributes", "INT16", 21, 2),
        ("last_offset_delta", "INT32", 23, 4),
        ("base_timestamp", "INT64", 27, 8),
        ("max_timestamp", "INT64", 35, 8),
        ("producer_id", "INT64", 43, 8),
        ("producer_epoch", "INT16", 51, 2),
        ("base_sequence", "INT32", 53, 4),
        ("records_count", "INT32", 57, 4),
        ("records", "ARRAY", 61, batch.length - 61),
    ]


def test_the_header_fields_say_what_they_mean() -> None:
    (batch,) = dissect("3.9.1 magic2 lz4 transactional")
    assert child(batch, "attributes").meaning == "lz4, create time, transactional"
    assert child(batch, "crc").meaning == "ok"
    assert child(batch, "base_timestamp").meaning == "2023-11-14 22:13:20.000 UTC"
    assert child(batch, "last_offset_delta").meaning == "to offset 22"
    assert child(batch, "producer_id").meaning == ""
    (plain,) = dissect("3.9.1 magic2 none plain")
    assert child(plain, "producer_id").meaning == child(plain, "base_sequence").meaning == "none"


@pytest.mark.usefixtures("roomy")
def test_a_compressed_batch_tells_codec_ratio_and_sizes() -> None:
    (batch,) = dissect("3.9.1 magic2 gzip large")
    size = child(batch, "uncompressed_size_bytes").value
    packed = batch.length - 61
    assert child(batch, "records").meaning == f"gzip {size / packed:.1f}x, {packed:,} -> {size:,} bytes"
    assert batch.meaning == f"4 records, {child(batch, 'records').meaning}"


def test_a_record_holds_absolute_values_where_its_deltas_lie() -> None:
    (batch,) = dissect("3.9.1 magic2 none gaps")
    record = child(batch, "records", "[2]")
    assert record.meaning == f"offset {4_294_967_296 + 200}"
    assert child(record, "offset").value == 4_294_967_296 + 200
    assert child(record, "offset").meaning == "+200"
    assert child(record, "timestamp").meaning == "2023-11-14 22:13:20.002 UTC, +2 ms"
    at = record.offset
    assert [(node.name, node.offset - at, node.length) for node in record.children] == [
        ("length", 0, 1), ("attributes", 1, 1), ("timestamp", 2, 1), ("offset", 3, 2), ("key", 5, 6), ("value", 11, 8),
        ("headers", 19, 1),
    ]  # fmt: skip


def test_null_values_are_tombstones() -> None:
    for name in ("3.9.1 magic2 none nulls", "3.9.1 magic1 snappy nulls"):
        (batch,) = dissect(name)
        first = child(batch, "records", "[0]")
        assert child(first, "value").meaning == "tombstone"
        assert child(first, "key").meaning == "none"
        assert child(batch, "records", "[3]", "value").meaning == ""
    assert child(dissect("3.9.1 magic0 none nulls")[0], "value").meaning == "tombstone"


def test_log_append_time_tells_the_clients_time_too() -> None:
    (batch,) = dissect("3.9.1 magic2 zstd append_time")
    meaning = "2023-11-14 22:13:20.077 UTC, log append time, the client's was 2023-11-14 22:13:20.000 UTC"
    assert child(batch, "records", "[0]", "timestamp").meaning == meaning


def test_control_records_are_named_and_opened() -> None:
    (batch,) = dissect("3.9.1 control leader_change")
    record = child(batch, "records", "[0]")
    assert record.meaning == "offset 40, leader_change"
    assert child(record, "control", "leader_id").value == 3
    assert child(record, "control", "voters", "[1]", "voter_id").value == 3


@pytest.mark.parametrize("row", sampled(vectors()), ids=lambda row: row["name"])
def test_every_node_lies_inside_its_parent_and_decompressed_ones_are_derived(row: dict[str, Any]) -> None:
    for batch in dissect_record_set(row["wire"], 0, len(row["wire"]))[0]:
        codec = child(batch, "attributes").value & 7
        for node in below(batch):
            inside = node.name == "control" or not node.derived
            for inner in node.children:
                if node.derived == inner.derived and inside:
                    assert node.offset <= inner.offset <= inner.offset + inner.length <= node.offset + node.length
        assert not child(batch, "records").derived if codec else not any(node.derived for node in below(batch))
        if codec:
            assert all(node.derived for record in child(batch, "records").children for node in below(record))


def test_a_wrong_crc_is_a_problem_of_its_field() -> None:
    wire = bytearray(vector("3.9.1 magic2 none plain")["wire"] * 2)
    wire[-2] ^= 1
    nodes, problems = dissect_record_set(bytes(wire), 0, len(wire))
    assert [(problem.code, problem.path) for problem in problems] == [("bad_crc", "[1].crc")]
    assert child(nodes[1], "crc").meaning == "mismatch"
    assert child(nodes[1], "crc").problem == problems[0].message


def test_a_record_that_cannot_be_read_names_its_path() -> None:
    wire = bytearray(vector("3.9.1 magic2 none plain")["wire"])
    wire[61 + 19] = 0x7E
    _, problems = dissect_record_set(bytes(wire), 0, len(wire))
    assert [problem.path for problem in problems] == ["[0].crc", "[0].records[1]"]


def test_a_batch_that_is_cut_short_says_so() -> None:
    wire = vector("3.9.1 magic2 none plain")["wire"]
    (node,), problems = dissect_record_set(wire, 0, 40)
    assert (node.meaning, problems) == ("cut short", [])
    assert [part.name for part in node.children][-1] == "base_timestamp"


@pytest.mark.parametrize("name", ["3.9.1 magic2 none spread", "3.9.1 magic1 gzip spread"])
def test_there_is_an_end_to_the_nodes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_nodes, "MAX_NODES", 100)
    (batch,) = dissect(name)
    assert len(list(below(batch))) < 120
    assert "only the first" in child(batch, "records").meaning


def test_batches_beyond_the_last_node_stay_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_nodes, "MAX_NODES", 100)
    wire = vector("3.9.1 magic2 none plain")["wire"]
    nodes, problems = dissect_record_set(wire * 50, 0, 50 * len(wire))
    assert problems == []
    assert sum(len(list(below(node))) for node in nodes) < 200
    assert nodes[-1].meaning == "not shown"
    assert nodes[-1].offset + nodes[-1].length == 50 * len(wire)


def carefully(data: bytes) -> list[RecordField] | None:
    """The fields of a record as the careful reader has them; None where anything is wrong."""
    try:
        return list(record_fields(data, 0, len(data), RecordBudget(len(data))))
    except DecodeError:
        return None


#: A record with a key, a value that is null, and two headers, one of them null: each number is one byte, zigzag.
HEADED = bytes([28, 0, 2, 4, 2]) + b"k" + bytes([1, 4, 2]) + b"a" + bytes([2]) + b"b" + bytes([2]) + b"c" + bytes([1])


@given(damaged=st.binary(max_size=4), at=st.integers(0, len(HEADED)), cut=st.integers(0, 3))
@example(b"", 0, 0)
def test_a_record_is_read_quickly_where_nothing_is_wrong_with_it(damaged: bytes, at: int, cut: int) -> None:
    """The dict has what the careful reader finds; there is none where that finds anything wrong."""
    data = (HEADED[:at] + damaged + HEADED[at + len(damaged) :])[: len(HEADED) - cut]
    expected = carefully(data)
    found: list[dict[str, Any]] = []
    end = RecordDicts().read(data, 0, len(data), 100, 1000, 1, found, RecordBudget(len(data)))
    if expected is None:
        assert (found, end) == ([], 0)
    else:
        length, _, timestamp, offset, key, value, read = expected
        headers_read = [{"key": name, "value": content} for _, name, _, content, _ in read[4]]
        times = {"offset": 100 + offset[4], "timestamp": 1000 + timestamp[4]}
        assert found == [times | {"key": key[4], "value": value[4], "headers": headers_read}]
        assert end == length[3] + length[4]
    reader = RecordReader()
    headers = headers_of_sound(reader, data, 0, len(data))
    if expected is None:
        assert headers == -1
    else:
        length = expected[0]
        assert (headers, reader.stop) == (len(expected[-1][4]), length[3] + length[4])


def test_the_record_that_is_damaged_is_sound_before() -> None:
    """Its key, its value and its headers are those that the bytes were written for."""
    (*_, key, value, headers) = carefully(HEADED) or []
    assert (key[4], value[4]) == (b"k", None)
    assert [(name, content) for _, name, _, content, _ in headers[4]] == [("a", b"b"), ("c", None)]
