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

import pytest

from tests.support.raw_packets import count_packets

CAPTURES = Path(__file__).parents[2] / "captures"
ROWS: list[dict[str, Any]] = tomllib.loads((CAPTURES / "MANIFEST.toml").read_text(encoding="utf-8"))["capture"]
TOTAL_BYTES_LIMIT = 6_000_000  # the captures are part of every clone


def each_row() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])


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


@each_row()
def test_the_hashes_are_those_of_the_files(row: dict[str, Any]) -> None:
    for name, digest in ((row["file"], row["sha256"]), (row["expected"], row["expected_sha256"])):
        assert hashlib.sha256((CAPTURES / name).read_bytes()).hexdigest() == digest


@each_row()
def test_the_packet_count_is_that_of_the_file(row: dict[str, Any]) -> None:
    data = (CAPTURES / row["file"]).read_bytes()
    assert count_packets(lzma.decompress(data) if row["file"].endswith(".xz") else data) == row["packets"]


@each_row()
def test_the_request_counts_are_those_of_the_brokers_log(row: dict[str, Any]) -> None:
    said = expected_rows(row)
    assert Counter(f"{r['api']} v{r['api_version']}" for r in said) == row["requests"]
    assert sum(r["response"] is not None for r in said) == row["answered"]
    assert Counter(f"{r['api']} v{r['api_version']}" for r in said if r["response"] is None) == row["unanswered"]


@each_row()
def test_the_recipe_a_row_names_is_kept(row: dict[str, Any]) -> None:
    script, name = row["recipe"].split()
    assert (CAPTURES / script).is_file()
    modules = [path.read_text(encoding="utf-8") for path in (CAPTURES / "recipes" / "codec").glob("*.py")]
    modules += [path.read_text(encoding="utf-8") for path in (CAPTURES / "recipes" / "session").glob("*.py")]
    assert any(f'"{name}"' in text for text in modules)
    assert row["shows"] and row["client"] and row["broker"]
