"""The manifest and the files under ``captures/`` agree."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.raw_packets import count_packets

CAPTURES = Path(__file__).parents[2] / "captures"
ROWS: list[dict[str, Any]] = tomllib.loads((CAPTURES / "MANIFEST.toml").read_text(encoding="utf-8"))["capture"]
TOTAL_BYTES_LIMIT = 7_000_000  # the captures are part of every clone


def expected_rows(row: dict[str, Any]) -> list[dict[str, Any]]:
    text = gzip.decompress((CAPTURES / row["expected"]).read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def test_every_file_has_a_row_and_every_row_its_file() -> None:
    folders = (CAPTURES, CAPTURES / "eras")
    files = {str(path.relative_to(CAPTURES)) for folder in folders for path in folder.glob("*.pcap*")}
    expected = {f"expected/{path.name}" for path in (CAPTURES / "expected").iterdir()}
    assert files == {row["file"] for row in ROWS}
    assert expected == {row["expected"] for row in ROWS}
    assert len(ROWS) == len(files)


def test_the_folder_stays_small() -> None:
    assert sum(path.stat().st_size for path in CAPTURES.rglob("*") if path.is_file()) < TOTAL_BYTES_LIMIT


def test_the_hashes_are_those_of_the_files() -> None:
    for row in ROWS:
        for name, digest in ((row["file"], row["sha256"]), (row["expected"], row["expected_sha256"])):
            assert hashlib.sha256((CAPTURES / name).read_bytes()).hexdigest() == digest, name


def test_the_packet_count_is_that_of_the_file() -> None:
    for row in ROWS:
        data = (CAPTURES / row["file"]).read_bytes()
        data = lzma.decompress(data) if row["file"].endswith(".xz") else data
        assert count_packets(data) == row["packets"], row["file"]


def test_the_request_counts_are_those_of_the_brokers_log() -> None:
    """Of all requests, of those that were answered and of those that were not."""
    for row in ROWS:
        said = expected_rows(row)
        unanswered = [r for r in said if r["response"] is None]
        assert Counter(f"{r['api']} v{r['api_version']}" for r in said) == row["requests"], row["file"]
        assert len(said) - len(unanswered) == row["answered"], row["file"]
        assert Counter(f"{r['api']} v{r['api_version']}" for r in unanswered) == row["unanswered"], row["file"]


def test_the_recipe_a_row_names_is_kept() -> None:
    folders = (CAPTURES / "recipes" / "codec", CAPTURES / "recipes" / "session")
    modules = [path.read_text(encoding="utf-8") for folder in folders for path in folder.glob("*.py")]
    for row in ROWS:
        script, name = row["recipe"].split()
        assert (CAPTURES / script).is_file(), row["file"]
        assert any(f'"{name}"' in text for text in modules), row["file"]
        assert row["shows"] and row["client"] and row["broker"], row["file"]
