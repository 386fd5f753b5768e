"""``kwiresniff export``."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from struct import pack

import pyarrow.parquet
import pytest

from tests.support.capture_files import heartbeats, save
from tests.support.command import Run
from tests.support.conversation import Wire, heartbeat, heartbeat_response, request, response, string


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


def test_csv_says_of_each_exchange_what_json_lines_say(kwiresniff: Run, tmp_path: Path) -> None:
    """CSV and JSON Lines agree also on a request that does not decode, and on one with damaged records."""
    topic_not_utf8 = request(3, 1, 50, pack(">ih", 1, 3) + b"\xff\xfe\xfd")
    batch = pack(">qiib", 0, 49, 0, 9) + bytes(44)  # magic 9
    produce = pack(">hhii", -1, 1, 1000, 1) + string("t") + pack(">iii", 1, 0, len(batch)) + batch
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(topic_not_utf8).down(response(50, pack(">iii", 0, 0, 0)))
    wire.up(request(0, 3, 51, produce)).down(response(51, pack(">ii", 0, 0)))
    capture = save(tmp_path / "odd.pcap", wire.up(heartbeat(2)).down(heartbeat_response(2)).close())
    for name in ("out.csv", "out.jsonl"):
        assert kwiresniff("export", capture, "-O", str(tmp_path / name), "-q").code == 0
    told = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    expected = [
        (one["correlation_id"], one["outcome"], " ".join(problem["code"] for problem in one["problems"]))
        for one in told
        if one["kind"] == "exchange"
    ]
    assert [outcome for _, outcome, _ in expected] == ["ok", "undecoded", "ok", "ok"]
    assert [problems for _, _, problems in expected] == ["", "invalid_utf8", "unknown_magic", ""]
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(int(row["correlation_id"]), row["outcome"], row["problems"]) for row in rows] == expected


def test_parquet_has_the_bodies(kwiresniff: Run, capture: str, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    kwiresniff("export", capture, "-O", str(out), "--limit", "1")
    table = pyarrow.parquet.read_table(out)
    assert table.num_rows == 1
    assert json.loads(table["request_body"][0].as_py())["member_id"] == "member"


def test_a_failed_export_leaves_no_file(kwiresniff: Run, tmp_path: Path) -> None:
    assert kwiresniff("export", "/no/such.pcap", "-O", str(tmp_path / "out.jsonl")).code == 1
    assert list(tmp_path.iterdir()) == []
