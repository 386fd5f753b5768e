"""A cluster: executors are processes of their own, which know of the work only what Spark brings them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.environment import REQUIRE_SPARK
from tests.support.exported import exchanges, export
from tests.support.package import HOME
from tests.support.paths import CAPTURES

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def clean() -> Iterator[None]:
    """Without what a worker of such a cluster leaves, which is always in the folder of Spark."""
    spec = find_spec("pyspark")
    work = Path(spec.origin).parent / "work" if spec is not None and spec.origin is not None else None
    there = work is None or work.exists()
    yield
    if work is not None and not there:
        shutil.rmtree(work, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.usefixtures("clean")
@pytest.mark.skipif(not find_spec("pyspark") and not os.environ.get(REQUIRE_SPARK), reason="pyspark is not installed")
def test_executors_of_a_cluster_tell_what_export_tells(tmp_path: Path) -> None:
    """A master, a worker and its executor, on this machine, for two captures, one of them cut off."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "cut.pcap").write_bytes((CAPTURES / "franz-go.pcap").read_bytes()[:9_000])
    (tmp_path / "in" / "whole.pcap").write_bytes((CAPTURES / "first-look.pcap").read_bytes())
    command = [sys.executable, "-m", "kwiresniff", "pipeline", "run", "in", "--out", "out"]
    done = subprocess.run(
        [*command, "--master", "local-cluster[1,1,1024]", "--partitions", "2"],
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and "from 2 files, 1 problems" in done.stderr, done.stderr
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    expected = sum(len(exchanges(export(tmp_path / "x.jsonl", path))) for path in sorted((tmp_path / "in").iterdir()))
    files = [str(file) for file in (tmp_path / "out" / "exchanges").rglob("*.parquet")]
    assert sum(parquet.ParquetFile(file).metadata.num_rows for file in files) == expected > 25
    assert manifest["total"]["rows"]["exchanges"] == expected
