"""Record sets: every vector of Kafka's own clients, and everything that can be wrong with one."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.codec import decoder, record_limits
from kwiresniff.codec.dissector import count_nodes, dissect
from kwiresniff.codec.node_values import plain
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.records import decode_record_set, decode_sound, dissect_record_set, plain_batches
from kwiresniff.model import Problem
from kwiresniff.schema import message
from tests.support.encoding import encode_record_set
from tests.support.record_sets import decoded_batches
from tests.support.record_vectors import all_records, vector, vectors
from tests.support.sample import sampled

BATCH = vector("3.9.1 magic2 none plain")["wire"]
LEADING = b"\xff" * 7
#: Bytes of a message in which no record set of the vectors is too much.
LARGE = 1 << 20


def decode(wire: bytes, mode: Any = "full") -> tuple[list[dict[str, Any]], list[Problem]]:
    """Decode a set that stands in the middle of a frame; offsets of problems count from the set's start."""
    issues: list[Problem] = []
    at, stop = len(LEADING), len(LEADING) + len(wire)
    batches = decode_record_set(LEADING + wire + LEADING, at, stop, mode, issues, RecordBudget(LARGE))
    assert isinstance(batches, list)
    return batches, issues


def codes(issues: list[Problem]) -> list[tuple[str, int]]:
    return [(issue.code, (issue.offset or 0) - len(LEADING)) for issue in issues]


def as_read_by_java(record: dict[str, Any]) -> dict[str, Any]:
    whole = {"timestamp": None, "headers": [], **record}
    whole.pop("control", None)
    return whole


def patched(wire: bytes, at: int, new: bytes) -> bytes:
    return wire[:at] + new + wire[at + len(new) :]


@pytest.mark.parametrize("row", sampled(vectors()), ids=lambda row: row["name"])
def test_the_records_are_those_that_kafkas_client_reads(row: dict[str, Any]) -> None:
    batches, issues = decode(row["wire"])
    assert issues == []
    assert [as_read_by_java(record) for batch in batches for record in batch["records"]] == all_records(row)


@pytest.mark.parametrize("row", sampled(row for row in vectors() if "batches" in row), ids=lambda row: row["name"])
def test_the_batch_fields_are_those_that_kafkas_client_reads(row: dict[str, Any]) -> None:
    batches, _ = decode(row["wire"])
    assert len(batches) == len(row["batches"])
    for ours, java in zip(batches, row["batches"], strict=True):
        same = ["magic", "size_bytes", "compression", "crc"]
        if java["magic"] == 2:
            same += ["producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch", "max_timestamp"]
            same += ["is_transactional", "is_control"]
            assert ours["base_offset"] + ours["last_offset_delta"] == java["last_offset"]
        else:
            assert ours["base_offset"] == java["last_offset"]
        assert {name: ours[name] for name in same} == {name: java[name] for name in same}
        assert ours["crc_valid"] is java["valid"] is True
        types = {"CreateTime": "create_time", "LogAppendTime": "log_append_time", "NoTimestampType": None}
        assert ours.get("timestamp_type") == types[java["timestamp_type"]]


@pytest.mark.parametrize("row", [row for row in vectors() if row["control"]], ids=lambda row: row["name"])
def test_control_records_say_what_kafka_wrote(row: dict[str, Any]) -> None:
    batches, _ = decode(row["wire"])
    assert batches[0]["is_control"]
    assert [record["control"] for record in batches[0]["records"]] == [row["control"]]


@pytest.mark.parametrize("row", sampled(vectors()), ids=lambda row: row["name"])
def test_the_walk_gives_the_same_values_and_no_problems(row: dict[str, Any]) -> None:
    budgets = RecordBudget(LARGE), RecordBudget(LARGE)
    nodes, problems = dissect_record_set(row["wire"], 0, len(row["wire"]), budgets[0])
    assert problems == []
    assert plain_batches(nodes) == decode_record_set(row["wire"], 0, len(row["wire"]), "full", [], budgets[1])


@pytest.mark.parametrize("row", sampled(vectors()), ids=lambda row: row["name"])
def test_encoding_gives_back_the_bytes_or_for_a_codec_the_records(row: dict[str, Any]) -> None:
    batches, _ = decode(row["wire"])
    again = encode_record_set(batches)
    replaced = any(batch["magic"] == 2 and batch["timestamp_type"] == "log_append_time" for batch in batches)
    if all(batch["compression"] == "none" for batch in batches) and not replaced:
        assert again == row["wire"]
    reread, issues = decode(again)
    assert issues == []
    assert [batch["records"] for batch in reread] == [batch["records"] for batch in batches]


def test_the_fields_stand_in_kafkas_order() -> None:
    (batch,), _ = decode(BATCH)
    assert " ".join(batch) == (
        "base_offset batch_length partition_leader_epoch magic crc attributes last_offset_delta base_timestamp "
        "max_timestamp producer_id producer_epoch base_sequence records_count compression timestamp_type "
        "is_transactional is_control size_bytes uncompressed_size_bytes crc_valid records"
    )
    (message, *_), _ = decode(vector("3.9.1 magic1 gzip plain")["wire"])
    assert " ".join(message) == (
        "base_offset message_size crc magic attributes timestamp compression timestamp_type size_bytes "
        "uncompressed_size_bytes crc_valid records"
    )


def test_headers_mode_reads_no_records_and_no_compressed_bytes() -> None:
    for row in vectors():
        full, _ = decode(row["wire"])
        broken = row["wire"] if full[0]["magic"] < 2 else row["wire"][:61] + bytes(len(row["wire"]) - 61)
        if len(full) > 1:
            broken = row["wire"]
        headers, issues = decode(broken, "headers")
        assert issues == []
        left_out = {"records", "crc_valid", "uncompressed_size_bytes"}
        assert headers == [{name: batch[name] for name in batch if name not in left_out} for batch in full]


def test_skip_mode_tells_the_size_only() -> None:
    assert decode_record_set(BATCH, 3, 50, "skip", []) == {"size_bytes": 47}


@pytest.mark.parametrize("name", ["3.9.1 magic2 zstd headers", "3.9.1 magic1 gzip plain", "3.9.1 magic0 none nulls"])
def test_a_last_batch_cut_at_any_byte_is_no_problem(name: str) -> None:
    wire = vector(name)["wire"]
    last = decode(wire)[0][-1]["size_bytes"]
    for cut in range(1, last):
        batches, issues = decode(BATCH + wire[-last:-cut])
        assert issues == []
        assert batches[0] == decode(BATCH)[0][0]
        tail = batches[1]
        assert tail["truncated"] is True
        assert tail["size_bytes"] == last - cut
        whole = decode(wire[-last:])[0][0]
        names = {"batch_length": "message_size"} if whole["magic"] < 2 else {}  # before the magic nobody can tell
        header = {names.get(name, name): tail[name] for name in tail if name not in ("truncated", "size_bytes")}
        assert header.items() <= whole.items()
        assert plain_batches(dissect_record_set(BATCH + wire[-last:-cut], 0, len(BATCH) + last - cut)[0]) == batches
    assert encode_record_set(batches) == BATCH


def test_an_empty_set_has_no_batches() -> None:
    assert decode(b"") == ([], [])


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 13, 48, 2**31 - 1])
def test_an_absurd_length_is_a_problem_and_ends_the_set(size: int) -> None:
    batches, issues = decode(BATCH + patched(BATCH, 8, size.to_bytes(4, "big", signed=True)) + BATCH)
    assert codes(issues) == [("bad_batch_length", len(BATCH) + 8)]
    assert len(batches) == 2
    assert batches[1] == {
        "base_offset": 0, "batch_length": size, "partition_leader_epoch": -1, "magic": 2, "size_bytes": 2 * len(BATCH)
    }  # fmt: skip


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_an_unknown_magic_is_a_problem_and_the_next_batch_is_read(magic: int) -> None:
    batches, issues = decode(patched(BATCH, 16, bytes([magic])) + BATCH)
    assert codes(issues) == [("unknown_magic", 16)]
    assert batches[0]["size_bytes"] == len(BATCH)
    assert "records" not in batches[0]
    assert batches[1] == decode(BATCH)[0][0]


@pytest.mark.parametrize("name", ["3.9.1 magic2 none plain", "3.9.1 magic1 none plain", "3.9.1 magic0 gzip plain"])
def test_a_wrong_crc_is_told_and_the_records_are_read_all_the_same(name: str) -> None:
    row = vector(name)
    at = 17 if " magic2 " in name else 12
    wrong = patched(row["wire"], at, b"\xde\xad\xbe\xef")
    batches, issues = decode(wrong)
    assert codes(issues) == [("bad_crc", at)]
    assert batches[0]["crc_valid"] is False
    assert batches[0]["crc"] == 0xDEADBEEF
    assert [as_read_by_java(record) for batch in batches for record in batch["records"]] == all_records(row)
    if " none " in name:
        assert encode_record_set(batches) == row["wire"]


def test_codecs_that_no_release_has_are_a_problem_of_their_batch() -> None:
    for codec in (5, 6, 7):
        batches, issues = decode(patched(BATCH, 22, bytes([codec])) + BATCH)
        assert codes(issues) == [("bad_crc", 17), ("unknown_codec", 61)]
        assert batches[0]["compression"] == f"unknown({codec})"
        assert batches[0]["records"] == []
        assert batches[0]["uncompressed_size_bytes"] is None
        assert len(batches[1]["records"]) == 4


@pytest.mark.parametrize(("count", "kept"), [(-1, 0), (0, 0), (3, 3), (5, 4), (2**31 - 1, 4)])
def test_a_records_count_that_does_not_match_is_told(count: int, kept: int) -> None:
    batches, issues = decode(patched(BATCH, 57, count.to_bytes(4, "big", signed=True)) + BATCH)
    assert [issue.code for issue in issues] == ["bad_crc", "bad_records_count"]
    assert [record["offset"] for record in batches[0]["records"]] == list(range(kept))
    assert len(batches[1]["records"]) == 4


def test_records_before_a_broken_one_are_kept() -> None:
    third = 61 + 2 * 19
    assert BATCH[third] == 36  # 18 bytes follow
    batches, issues = decode(patched(BATCH, third, b"\x7e") + BATCH)
    assert codes(issues) == [("bad_crc", 17), ("bad_record", third)]
    assert [record["key"] for record in batches[0]["records"]] == [b"key-0", b"key-1"]
    assert len(batches[1]["records"]) == 4


def test_records_before_a_broken_one_are_kept_in_decompressed_data_too() -> None:
    (batch,), _ = decode(vector("3.9.1 magic2 zstd plain")["wire"])
    batch["records_count"] = 9
    (again,), issues = decode(encode_record_set([batch]))
    assert codes(issues) == [("bad_records_count", 61)]
    assert again["records"] == batch["records"]


def test_fields_that_are_missing_get_what_a_plain_producer_sends() -> None:
    records = [{"offset": 0, "timestamp": 1700000000000 + i, "key": f"key-{i}".encode()} for i in range(4)]
    for i, record in enumerate(records):
        record.update(offset=i, value=f"value-{i}".encode())
    assert encode_record_set([{"records": records}]) == BATCH


def assert_sound_ones_are_counted(wire: bytes) -> bool:
    """Values and nodes of a set with which nothing is wrong; nothing, of any other. Returns which it was."""
    budget, dissected = RecordBudget(LARGE), RecordBudget(LARGE)
    nodes, problems = dissect_record_set(wire, 0, len(wire), dissected)
    found = decode_sound(wire, 0, len(wire), budget)
    if found is None:
        left = RecordBudget(LARGE)
    else:
        left = dissected
        assert not problems and found == (plain_batches(nodes), sum(map(count_nodes, nodes)))
    assert budget.state() == left.state()
    return found is not None


@pytest.mark.parametrize("row", sampled(vectors()), ids=lambda row: row["name"])
def test_sound_record_sets_are_decoded_and_counted_without_a_dissection(row: dict[str, Any]) -> None:
    """Of Kafka's clients, several in a row, cut short and with a wrong checksum; old and control batches never."""
    wire = row["wire"]
    usual = wire[16] == 2 and not row["control"]
    for whole in (wire, wire * 3, wire + wire[:-1], wire + wire[:20], wire + wire[:5]):
        assert assert_sound_ones_are_counted(whole) == usual
    assert not assert_sound_ones_are_counted(patched(wire, 20, bytes([wire[20] ^ 1])))


def test_the_limits_hold_over_all_record_sets_of_a_message() -> None:
    budget = RecordBudget(LARGE)
    budget.records = 10
    issues: list[Problem] = []
    kept = []
    for _ in range(3):
        (batch,) = decoded_batches(BATCH, 0, len(BATCH), "full", issues, budget)
        kept.append(len(batch["records"]))
    assert kept == [4, 4, 2]
    assert [issue.code for issue in issues] == ["too_many_records"]
    for name in ("3.9.1 magic0 none plain", "3.9.1 magic1 gzip plain"):
        wire = vector(name)["wire"]
        last = decoded_batches(wire, 0, len(wire), "full", issues, budget)[-1]
        assert (last["records"], issues[-1].code) == ([], "too_many_records")


def test_decompressed_bytes_are_counted_over_all_record_sets_of_a_message() -> None:
    wire = vector("3.9.1 magic2 zstd large")["wire"]
    (batch,), _ = decode(wire)
    budget = RecordBudget(LARGE)
    budget.decompressed_bytes = 2 * batch["uncompressed_size_bytes"] - 1
    issues: list[Problem] = []
    kept = [len(decoded_batches(wire, 0, len(wire), "full", issues, budget)[0]["records"]) for _ in range(2)]
    assert kept == [4, 3]  # the last record lies beyond
    assert [issue.code for issue in issues] == ["decompressed_too_large"]


def test_a_response_of_many_partitions_shares_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetch v4 with two partitions, laid out by hand from the protocol guide."""
    monkeypatch.setattr(record_limits, "MAX_RECORDS", 6)
    partition = bytes(4) + bytes(2) + bytes(8) + bytes(8) + bytes(4) + len(BATCH).to_bytes(4, "big") + BATCH
    frame = bytes(4) + b"\0\0\0\x01" + b"\0\x01t" + b"\0\0\0\x02" + partition * 2
    issues: list[Problem] = []
    body, end = decoder(1, 4, "response")(frame, 0, issues)
    assert end == len(frame)
    sets = [entry["records"] for entry in body["responses"][0]["partitions"]]
    assert [len(batches[0]["records"]) for batches in sets] == [4, 2]
    assert [issue.code for issue in issues] == ["too_many_records"]
    dissected = dissect(message(1, 4, "response"), frame, 0)
    assert [problem.code for problem in dissected.problems] == ["too_many_records"]
    assert dissected.problems[0].path == "responses[0].partitions[1].records[0].records"
    assert plain(dissected.root) == body


def test_there_is_an_end_to_the_batches_of_a_message() -> None:
    budgets = RecordBudget(LARGE), RecordBudget(LARGE)
    for budget in budgets:
        budget.batches = 3
    issues: list[Problem] = []
    wire = BATCH * 5
    batches = decoded_batches(wire, 0, len(wire), "headers", issues, budgets[0])
    assert [batch["size_bytes"] for batch in batches] == [len(BATCH)] * 3 + [2 * len(BATCH)]
    assert [(issue.code, issue.offset) for issue in issues] == [("too_many_batches", 3 * len(BATCH))]
    nodes, problems = dissect_record_set(wire, 0, len(wire), budgets[1])
    assert plain_batches(nodes)[3] == batches[3]
    assert [(problem.code, problem.path) for problem in problems] == [("too_many_batches", "[3]")]
