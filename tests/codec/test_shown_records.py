"""Record sets as a tree shows them are the beginning of what is decoded of the whole set."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kwiresniff.base.tree_sizes import BATCHES_SHOWN, HEADERS_SHOWN, RECORDS_SHOWN
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.records import decode_record_set
from kwiresniff.codec.shown_records import decode_shown
from kwiresniff.model import Problem
from tests.support.encoding import encode_record_set
from tests.support.record_vectors import vectors


def both(wire: bytes) -> tuple[list[Any], list[Any], list[Problem], RecordBudget, RecordBudget]:
    """The batches of a set as far as they are shown, all of them, what is wrong, and what is left of the budget."""
    issues: list[Problem] = []
    others: list[Problem] = []
    budgets = RecordBudget(len(wire)), RecordBudget(len(wire))
    shown = decode_shown(wire, 0, len(wire), "shown", issues, budgets[0])
    whole = decode_record_set(wire, 0, len(wire), "full", others, budgets[1])
    assert issues == others and isinstance(whole, list)
    return shown, whole, issues, *budgets


def as_shown(record: dict[str, Any]) -> dict[str, Any]:
    """A record with as many headers as are shown; an empty dict stands for each of the others."""
    headers = record["headers"]
    return {**record, "headers": headers[:HEADERS_SHOWN] + [{}] * (len(headers) - HEADERS_SHOWN)}


@pytest.mark.usefixtures("roomy")
@pytest.mark.parametrize("row", vectors(), ids=lambda row: row["name"])
@pytest.mark.parametrize("times", [1, BATCHES_SHOWN + 3])
def test_records_of_kafkas_clients_are_decoded_as_far_as_they_are_shown(row: dict[str, Any], times: int) -> None:
    """Each batch as it is, or for all that are not shown their number and their bytes."""
    shown, whole, _, budget, other = both(row["wire"] * times)
    assert budget.state() == other.state()
    if shown == whole:
        return
    last = shown.pop() if len(whole) > BATCHES_SHOWN else None
    for batch, full in zip(shown, whole, strict=last is None):
        assert batch["records"] == [as_shown(record) for record in full["records"][:RECORDS_SHOWN]]
        for name in batch.keys() - {"records", "uncompressed_size_bytes"}:
            assert batch[name] == full[name], name
    if last is not None:
        hidden = whole[BATCHES_SHOWN:]
        assert last == {"folded_batches": len(hidden), "size_bytes": sum(batch["size_bytes"] for batch in hidden)}


def test_headers_beyond_those_that_are_shown_are_only_counted() -> None:
    """A record of a megabyte may have as many headers as bytes."""
    headers = [{"key": f"k{index}", "value": b"v"} for index in range(HEADERS_SHOWN + 5)]
    record = {"offset": 0, "timestamp": 0, "key": None, "value": b"", "headers": headers}
    shown, _, _, _, _ = both(encode_record_set([{"base_offset": 0, "records": [record]}]))
    (found,) = shown[0]["records"]
    assert found["headers"] == headers[:HEADERS_SHOWN] + [{}] * 5


def test_what_is_wrong_with_a_damaged_set_is_what_the_decoder_says() -> None:
    """A changed byte, a set that is cut, and a record that is not shown."""
    rng = random.Random("damaged sets")
    rows = [row["wire"] for row in vectors()]
    for _ in range(300):
        wire = bytearray(rng.choice(rows) * rng.choice((1, 2)))
        wire[rng.randrange(len(wire))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        both(bytes(wire[: rng.choice((len(wire), rng.randrange(len(wire))))]))
