"""``kwiresniff export``."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.cli.conftest import Done
from tests.cli.pcap import heartbeats, save

Run = Callable[..., Done]


@pytest.fixture
def capture(tmp_path: Path) -> str:
    return save(tmp_path / "a.pcap", heartbeats(3, failing=True))


def test_json_lines_are_what_read_prints(kwiresniff: Run, capture: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = kwiresniff("export", capture, "-O", str(out))
    assert (done.code, done.out) == (0, "")
    assert done.err == f"kwiresniff: {out}: 3 exchanges\n"
    assert out.read_text() == kwiresniff("read", "-o", "jsonl", capture).out


def test_csv_has_the_errors_without_the_bodies(kwiresniff: Run, capture: str, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    kwiresniff("export", capture, "-O", str(out), "-q")
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["api"], row["outcome"], row["errors"]) for row in rows] == [
        ("Heartbeat", "ok", ""), ("Heartbeat", "ok", ""), ("Heartbeat", "error", "REBALANCE_IN_PROGRESS"),
    ]  # fmt: skip


def test_parquet_has_the_bodies(kwiresniff: Run, capture: str, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    kwiresniff("export", capture, "-O", str(out), "--limit", "1")
    table = pyarrow.parquet.read_table(out)
    assert table.num_rows == 1
    assert json.loads(table["request_body"][0].as_py())["member_id"] == "member"


def test_a_failed_export_leaves_no_file(kwiresniff: Run, tmp_path: Path) -> None:
    assert kwiresniff("export", "/no/such.pcap", "-O", str(tmp_path / "out.jsonl")).code == 1
    assert list(tmp_path.iterdir()) == []
