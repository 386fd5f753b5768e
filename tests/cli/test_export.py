"""``kwiresniff export``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.capture_files import heartbeats, save
from tests.support.command import Run


@pytest.fixture
def capture(tmp_path: Path) -> str:
    return save(tmp_path / "a.pcap", heartbeats(3, failing=True))


def test_json_lines_are_what_read_prints(kwiresniff: Run, capture: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = kwiresniff("export", capture, "-O", str(out))
    assert (done.code, done.out) == (0, "")
    assert done.err == f"kwiresniff: {out}: 3 exchanges\n"
    assert out.read_text() == kwiresniff("read", "-o", "jsonl", capture).out


def test_a_failed_export_leaves_no_file(kwiresniff: Run, tmp_path: Path) -> None:
    assert kwiresniff("export", "/no/such.pcap", "-O", str(tmp_path / "out.jsonl")).code == 1
    assert list(tmp_path.iterdir()) == []
