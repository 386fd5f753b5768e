"""Few bytes that become many: what is read of a message follows from its size, counted in steps of its readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.codec.compression import GZIP, LZ4, SNAPPY, ZSTD
from kwiresniff.codec.dissector import count_nodes
from kwiresniff.codec.record_limits import (
    ALWAYS_DECOMPRESSED_BYTES,
    HEADERS_A_RECORD,
    LEAST_RECORD_BYTES,
    MAX_DENSE_BYTES,
    MAX_DENSE_RECORDS,
    MAX_EXPANSION,
    MAX_MESSAGE_DECOMPRESSED_BYTES,
    MAX_RECORDS,
    ORDINARY_EXPANSION,
    RECORDS_A_BYTE,
    RecordBudget,
)
from kwiresniff.codec.records import decode_record_set, dissect_record_set, plain_batches
from kwiresniff.model import Problem
from tests.support.bombs import LEAST, batch, bombs, lines, packed, record, wire_of
from tests.support.capture_files import save
from tests.support.command import Run
from tests.support.record_vectors import vector

BOMBS = bombs()
ORDINARY = vector("3.9.1 magic2 none plain")["wire"]
TOLD = {"decompressed_too_large", "too_many_records"}


def read(wire: bytes) -> tuple[list[dict[str, Any]], list[Problem], RecordBudget]:
    issues: list[Problem] = []
    budget = RecordBudget(len(wire))
    batches = decode_record_set(wire, 0, len(wire), "full", issues, budget)
    assert isinstance(batches, list)
    return batches, issues, budget


def codes(issues: list[Problem]) -> set[str]:
    return {issue.code for issue in issues}


@pytest.mark.parametrize("size", [0, 1, 100, 655, 656, 10_000, 3_000_000, 9_000_000, 40_000_000, 1 << 30])
def test_what_a_message_may_hold_follows_from_its_size(size: int) -> None:
    """No less than the floor of decompressed bytes, no more than a message may have."""
    budget = RecordBudget(size)
    dense = min(MAX_EXPANSION * size, MAX_DENSE_BYTES)
    ordinary = min(ORDINARY_EXPANSION * size, MAX_MESSAGE_DECOMPRESSED_BYTES)
    assert budget.decompressed_bytes == max(ALWAYS_DECOMPRESSED_BYTES, dense, ordinary)
    records = size // LEAST_RECORD_BYTES
    assert budget.records == max(min(RECORDS_A_BYTE * size, MAX_DENSE_RECORDS), min(records, MAX_RECORDS))
    assert budget.headers == HEADERS_A_RECORD * budget.records


@pytest.mark.parametrize("name", BOMBS)
def test_the_steps_of_a_reader_stay_within_the_budget_of_a_message(name: str) -> None:
    """Records and headers that are there, bytes that were decompressed: all in proportion to the bytes on the wire."""
    wire = BOMBS[name]
    batches, _, left = read(wire)
    whole = RecordBudget(len(wire))
    records = [one for found in batches for one in found.get("records", ())]
    assert len(records) <= whole.records - left.records <= RECORDS_A_BYTE * len(wire)
    headers = sum(len(one.get("headers", ())) for one in records)
    assert headers <= whole.headers - left.headers <= HEADERS_A_RECORD * RECORDS_A_BYTE * len(wire)
    made = whole.decompressed_bytes - left.decompressed_bytes
    assert made <= max(ALWAYS_DECOMPRESSED_BYTES, MAX_EXPANSION * len(wire))
    assert sum(found.get("uncompressed_size_bytes") or 0 for found in batches) <= made + len(wire)


@pytest.mark.parametrize("name", BOMBS)
def test_all_readers_stop_at_the_same_place(name: str) -> None:
    """Dicts and nodes, and what is wrong. A byte that was read or decompressed has at most ten times as many nodes as
    one of an ordinary batch.
    """
    wire = BOMBS[name]
    batches, issues, left = read(wire)
    budget = RecordBudget(len(wire))
    nodes, problems = dissect_record_set(wire, 0, len(wire), budget)
    count = sum(map(count_nodes, nodes))
    made = RecordBudget(len(wire)).decompressed_bytes - left.decompressed_bytes
    (ordinary,), _ = dissect_record_set(ORDINARY, 0, len(ORDINARY))
    assert count / (len(wire) + made) <= 10 * count_nodes(ordinary) / len(ORDINARY)
    if count < 200_000:
        assert plain_batches(nodes) == batches
        assert [(one.code, one.message, one.offset) for one in problems] == [
            (one.code, one.message, one.offset) for one in issues
        ]
        assert budget.state() == left.state()


@pytest.mark.parametrize("name", BOMBS)
def test_every_output_tells_what_was_not_read(name: str, kwiresniff: Run, tmp_path: Path) -> None:
    """The same of a message in JSON, with and without a filter, in CSV, and in a tree."""
    wire = BOMBS[name]
    told = codes(read(wire)[1]) & TOLD
    capture = save(tmp_path / "bomb.pcap", wire_of(wire))
    lines = kwiresniff("read", "-o", "jsonl", capture).out
    sent = json.loads(next(line for line in lines.splitlines() if '"Produce"' in line))
    assert {one["code"] for one in sent["problems"]} & TOLD >= told
    assert kwiresniff("read", "-o", "jsonl", "-Y", "api == Produce and size > 0", capture).out in lines
    tree = kwiresniff("read", capture).out
    assert bool(told) == ("--max-decompressed reads more" in tree)
    assert len(kwiresniff("export", "-O", "-", "--format", "csv", capture).out) < 100 * (len(wire) + 100_000)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_the_logs_of_a_producer_are_read_whole(codec: int) -> None:
    """A batch alone, as densely as its codec packs it: what comes again and again becomes 60 times as long."""
    plain_batch = lines(8_000)
    wire = batch(codec, packed(codec, plain_batch[61:]), 8_000)
    (found,), issues, _ = read(wire)
    assert issues == []
    assert len(found["records"]) == 8_000
    assert codec in (SNAPPY, LZ4) or len(plain_batch) > 30 * len(wire)


def test_equal_records_are_as_many_as_a_codec_can_pack() -> None:
    """All with the same timestamp, and their own offsets: zstd needs nearly a byte for each."""
    body = b"".join(b"\x0e\0\0" + varint + b"\1\1\0" if len(varint) == 2 else b"\x0c\0\0" + varint + b"\1\1\0"
                    for varint in map(delta, range(8_000)))  # fmt: skip
    wire = batch(ZSTD, packed(ZSTD, body), 8_000)
    (found,), issues, _ = read(wire)
    assert (issues, len(found["records"])) == ([], 8_000)


def delta(offset: int) -> bytes:
    number = 2 * offset
    return bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])


def test_of_a_batch_that_is_too_large_the_first_records_are_read() -> None:
    """As many as lie in the bytes that may be decompressed. Of batches behind it those that are not compressed are."""
    value = bytes(10_000)
    bomb = batch(GZIP, packed(GZIP, record(value) * 100), 100)
    small = batch(GZIP, packed(GZIP, record(b"small")), 1)
    plain_batch = batch(0, record(b"plain"), 1)
    batches, issues, left = read(small + bomb + small + plain_batch)
    assert [len(found["records"]) for found in batches[:1] + batches[2:]] == [1, 0, 1]
    room = RecordBudget(len(small + bomb + small + plain_batch)).decompressed_bytes
    assert len(batches[1]["records"]) == (room - len(record(b"small"))) // len(record(value))
    assert batches[1]["uncompressed_size_bytes"] is None
    assert [issue.code for issue in issues] == ["decompressed_too_large"] * 2
    assert left.decompressed_bytes == 0


@pytest.mark.parametrize("more", [0, 1])
def test_the_last_byte_that_may_be_decompressed_is(more: int) -> None:
    """64 KiB of a message of a few hundred bytes; of one byte more the record is not there."""
    value = bytes(ALWAYS_DECOMPRESSED_BYTES - len(record(bytes(50_000))) + 50_000 + more)
    assert len(record(value)) == ALWAYS_DECOMPRESSED_BYTES + more
    (found,), issues, _ = read(batch(ZSTD, packed(ZSTD, record(value)), 1))
    assert len(found["records"]) == 1 - more
    assert codes(issues) == ({"decompressed_too_large"} if more else set())


@pytest.mark.parametrize("more", [0, 1])
def test_there_is_an_end_to_the_headers_of_a_message(more: int) -> None:
    """In one record or in several, which are read then up to the one that has too many."""
    raw = packed(ZSTD, record(b"", 20) * 40)
    size = len(batch(ZSTD, raw, 40))
    count = RecordBudget(size).headers // 20 + more
    raw = packed(ZSTD, record(b"", 20) * count)
    wire = batch(ZSTD, raw, count)
    wire += batch(0, b"", 0) * ((size - len(wire)) // 61) if len(wire) < size else b""
    batches, issues, left = read(wire)
    fits = RecordBudget(len(wire)).headers // 20
    assert len(batches[0]["records"]) == min(count, fits)
    assert codes(issues) == ({"too_many_records"} if count > fits else set())
    assert left.headers == RecordBudget(len(wire)).headers - 20 * min(count, fits)


def test_the_pipeline_reads_as_much_of_a_message(tmp_path: Path, kwiresniff: Run) -> None:
    """Its rows have the body and the problems of ``read``, and with a setting the whole."""
    pytest.importorskip("pyarrow")
    from kwiresniff.pipeline.batches import table_batches
    from kwiresniff.pipeline.plan import WorkUnit, find_sources
    from kwiresniff.pipeline.unit_reader import Settings

    count = 20_000
    wire = batch(ZSTD, packed(ZSTD, LEAST * count), count)
    capture = save(tmp_path / "bomb.pcap", wire_of(wire))
    (source,) = find_sources([capture])

    def rows(table: str, settings: Settings) -> list[dict[str, Any]]:
        return [row for found in table_batches(table, WorkUnit(source), settings) for row in found.to_pylist()]

    sent = next(row for row in rows("exchanges", Settings()) if row["api"] == "Produce")
    line = next(line for line in kwiresniff("read", "-o", "jsonl", capture).out.splitlines() if '"Produce"' in line)
    assert json.loads(sent["request_body"]) == json.loads(line)["request"]["body"]
    assert "too_many_records" in sent["problem_codes"]
    read_of_it = len(rows("records", Settings()))
    assert 0 < read_of_it < count
    assert len(rows("records", Settings(max_decompressed=1_000_000))) == count
    assert len(rows("records", Settings())) == read_of_it  # it holds for one run


def test_an_option_reads_what_was_left_out(kwiresniff: Run, tmp_path: Path) -> None:
    """Of a message whose records are too many for its size, in all outputs; a size that is none is a mistake."""
    count = 20_000
    wire = batch(ZSTD, packed(ZSTD, LEAST * count), count)
    capture = save(tmp_path / "bomb.pcap", wire_of(wire))
    assert kwiresniff("read", "--strict", capture).code == 1
    whole = kwiresniff("read", "--strict", "-o", "jsonl", "--max-decompressed", "1MB", capture)
    assert (whole.code, whole.err) == (0, "")
    assert whole.out.count('"headers":[]') == count
    assert "19,990 more records" in kwiresniff("read", "--max-decompressed", "1MB", capture).out
    assert kwiresniff("read", "--strict", capture).code == 1  # it holds for one run
    wrong = kwiresniff("read", "--max-decompressed", "much", capture)
    assert wrong.code == 2 and "no size like 64KiB or 10MB" in wrong.err
    frame = next(bytes(segment[6][segment[7] : segment[8]]) for segment in wire_of(wire).segments if wire in segment[6])
    assert kwiresniff("decode", "--max-decompressed", "1MB", frame.hex()).code == 0
    assert kwiresniff("decode", frame.hex()).code == 1
