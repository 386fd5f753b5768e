"""Tables as CSV: what Python's csv module reads is what the JSON says."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.export.csv_table import csv_lines
from tests.support.command import Run
from tests.support.sample import mostly_slow

CAPTURES = Path(__file__).resolve().parents[2] / "captures"


@pytest.mark.parametrize(
    "command", mostly_slow(["clients", "stats", "topics", "groups", "flows", "doctor", "producers"], 3)
)
def test_csv_has_the_values_of_the_json(kwiresniff: Run, command: str) -> None:
    """Each row has all the numbers and texts that stand directly in the JSON of the same thing."""
    capture = str(CAPTURES / "java-transactions.pcap")
    rows = list(csv.DictReader(io.StringIO(kwiresniff(command, "-q", "-o", "csv", capture).out)))
    objects = [json.loads(line) for line in kwiresniff(command, "-q", "-o", "jsonl", capture).out.splitlines()]
    assert len(rows) == len(objects) > 0
    for row, one in zip(rows, objects, strict=True):
        for name, value in one.items():
            if name not in ("schema_version", "kind") and isinstance(value, str | int) and not isinstance(value, bool):
                assert row[name] == str(value)


def test_members_of_structures_are_columns_and_lists_of_names_are_cells() -> None:
    objects: list[dict[str, Any]] = [
        {"kind": "x", "latency": None, "topics": ["a", "b"], "parts": []},
        {"kind": "x", "latency": {"p50_ns": 5, "histogram": [{"below_ns": 9, "count": 1}]}, "parts": [{"n": True}]},
        {"kind": "x", "waiting": {"long poll": {"count": 1}}, "negotiates": True},
    ]
    text = b"".join(csv_lines(objects)).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0] == {"topics": "a b", "parts": "", "latency_p50_ns": "", "waiting": "", "negotiates": ""}
    assert (rows[1]["latency_p50_ns"], json.loads(rows[1]["parts"])) == ("5", [{"n": True}])
    assert (json.loads(rows[2]["waiting"]), rows[2]["negotiates"]) == ({"long poll": {"count": 1}}, "true")


def test_nothing_is_no_table() -> None:
    assert list(csv_lines([])) == []


def test_names_from_the_wire_calculate_nothing_and_move_no_cursor() -> None:
    text = b"".join(csv_lines([{"client_id": "=cmd|x", "topics": ["\x1b[2J"], "by_name": {"\u202e": 1}}])).decode()
    row = next(csv.DictReader(io.StringIO(text)))
    assert row["client_id"] == "\\x3dcmd|x"
    assert "\x1b" not in text
    assert "\u202e" not in text
