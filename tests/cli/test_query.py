"""``kwiresniff query``."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command import Run
from tests.support.paths import ROOT

RECORDING = str(ROOT / "captures" / "java-produce.pcap")
pytest.importorskip("duckdb")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_it_counts_what_stats_counts(kwiresniff: Run, folder: Path) -> None:
    """And leaves nothing behind."""
    counted = {row["api"]: row["count"] for row in json.loads(kwiresniff("stats", "-o", "json", RECORDING).out)}
    for sql in (
        "SELECT api, count(*) AS n FROM exchanges GROUP BY api",
        "SELECT api, CAST(sum(exchanges) AS BIGINT) AS n FROM latency GROUP BY api",
    ):
        done = kwiresniff("query", sql, RECORDING, "-o", "jsonl")
        assert (done.code, done.err) == (0, "")
        assert {row["api"]: row["n"] for row in map(json.loads, done.out.splitlines())} == counted
    assert list(folder.iterdir()) == []


def test_a_table_can_be_joined_with_itself(kwiresniff: Run) -> None:
    sql = "SELECT count(*) AS n FROM exchanges a JOIN exchanges b USING (connection_id, correlation_id)"
    counted = sum(row["count"] for row in json.loads(kwiresniff("stats", "-o", "json", RECORDING).out))
    assert kwiresniff("query", sql, RECORDING, "-o", "csv").out == f"n\n{counted}\n"


def test_a_filter_chooses_what_the_tables_hold(kwiresniff: Run) -> None:
    done = kwiresniff("query", "SELECT DISTINCT api FROM exchanges", RECORDING, "-Y", "api == Produce", "-o", "csv")
    assert list(csv.reader(io.StringIO(done.out))) == [["api"], ["Produce"]]


@pytest.mark.parametrize(
    "sql",
    [
        "COPY exchanges TO '{out}'", "ATTACH '{out}'", "INSTALL httpfs", "LOAD httpfs", "SET memory_limit = '1GB'",
        "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "SELECT * FROM glob('/etc/*')",
        "SELECT 1; SELECT 2", "SELECT * FROM query('COPY exchanges TO ''{out}''')", "", "SELECT nothing FROM exchanges",
        "CREATE TABLE mine AS SELECT 1", "DROP TABLE exchanges", "SELECT CAST(client_id AS INT) FROM exchanges",
    ],
)  # fmt: skip
def test_what_is_no_question_to_the_tables_is_refused(kwiresniff: Run, folder: Path, sql: str) -> None:
    done = kwiresniff("query", sql.format(out=folder / "out"), RECORDING)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("kwiresniff: query: ")
    assert list(folder.iterdir()) == []


def test_without_the_library_the_line_says_what_to_install(kwiresniff: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = kwiresniff("query", "SELECT 1", RECORDING)
    assert done.code == 1
    assert done.err.endswith('pip install "kwiresniff[query]"\n') and done.err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_long_question_and_removes_the_folder(folder: Path, number: signal.Signals) -> None:
    sql = "SELECT count(*) FROM exchanges, range(100000000000) a WHERE a.range % 7 = 3"
    command = [sys.executable, "-m", "kwiresniff", "query", sql, RECORDING]
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder)}, stderr=subprocess.DEVNULL)
    try:
        while not list(folder.glob("kwiresniff-*/exchanges")):
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(number)
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.wait()
    assert list(folder.iterdir()) == []
