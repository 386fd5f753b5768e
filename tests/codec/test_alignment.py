"""Pieces of a snapshot that begin and end anywhere. The batches are Kafka's own (record_vectors)."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from kwiresniff.codec.alignment import first_batch
from kwiresniff.codec.record_dissector import dissect_record_set
from kwiresniff.codec.records import decode_record_set, plain_batches
from kwiresniff.model import Problem
from tests.support.record_sets import decoded_batches
from tests.support.record_vectors import vector
from tests.support.sample import sampled

NAMES = [
    "control snapshot_header",
    "control kraft_version",
    "control kraft_voters",
    "magic2 none nulls",
    "magic2 zstd plain",
    "control snapshot_footer",
]
BATCHES = [vector(f"3.9.1 {name}")["wire"] for name in NAMES]
SNAPSHOT = b"".join(BATCHES)
STARTS = [sum(map(len, BATCHES[:index])) for index in range(len(BATCHES) + 1)]


def decode(piece: bytes) -> list[dict[str, Any]]:
    """The batches of a piece, in which nothing is wrong, as the decoder and as the dissection find them."""
    issues: list[Problem] = []
    batches = decode_record_set(piece, 0, len(piece), "full", issues, unaligned=True)
    nodes, problems = dissect_record_set(piece, 0, len(piece), unaligned=True)
    assert (issues, problems) == ([], [])
    assert plain_batches(nodes) == batches
    assert isinstance(batches, list)
    return batches


WHOLE = decode(SNAPSHOT)


def test_a_whole_snapshot_is_read_as_any_record_set() -> None:
    assert decode_record_set(SNAPSHOT, 0, len(SNAPSHOT), "full", []) == WHOLE
    types = [record["control"]["type"] for batch in WHOLE for record in batch["records"] if "control" in record]
    assert types == ["snapshot_header", "kraft_version", "kraft_voters", "snapshot_footer"]


@pytest.mark.parametrize("end", sampled([len(SNAPSHOT), STARTS[4] + 70, STARTS[4] + 5, STARTS[4]], first=2))
def test_a_piece_that_begins_at_any_byte_has_the_batches_that_are_whole_in_it(end: int) -> None:
    for start in range(end):
        found = decode(SNAPSHOT[start:end])
        inside = [batch for batch, at in zip(WHOLE, STARTS, strict=False) if start <= at and at_end(at) <= end]
        assert [batch for batch in found if "truncated" not in batch] == inside
        assert sum(batch["size_bytes"] for batch in found) == end - start


def at_end(start: int) -> int:
    return STARTS[STARTS.index(start) + 1]


def test_a_piece_inside_one_batch_is_counted_and_nothing_else() -> None:
    assert decode(BATCHES[3][20:90]) == [{"truncated": True, "size_bytes": 70}]


def test_the_first_piece_tells_the_header_of_a_batch_that_does_not_fit_in_it() -> None:
    (batch,) = decode(BATCHES[2][:100])
    assert (batch["truncated"], batch["size_bytes"], batch["records_count"]) == (True, 100, 1)


def test_in_another_record_set_such_a_beginning_hides_everything() -> None:
    (batch,) = decoded_batches(SNAPSHOT[5:], 0, len(SNAPSHOT) - 5, "full", [])
    assert batch["truncated"] is True


def test_a_batch_whose_crc_disagrees_is_not_taken_for_a_beginning() -> None:
    wrong = bytearray(SNAPSHOT[3:])
    wrong[STARTS[2] - 3 - 1] ^= 1  # in the second batch, where the first whole one begins
    assert first_batch(bytes(wrong), 0, len(wrong)) == STARTS[2] - 3


def test_what_looks_like_many_batches_takes_no_long_time() -> None:
    # An offset, a length that reaches nearly to the end, magic 2: again and again, with wrong CRCs.
    front = bytes(8) + (1 << 20).to_bytes(4, "big") + bytes(4) + b"\2" + b"\1" * 4 + bytes(40)
    hostile = b"\xff" + front * (4_000_000 // len(front))
    started = time.process_time()
    assert first_batch(hostile, 0, len(hostile)) == len(hostile)
    assert time.process_time() - started < 2


def test_noise_has_no_batch_in_it() -> None:
    noise = random.Random(7).randbytes(300_000)
    assert first_batch(noise, 0, len(noise)) == len(noise)
