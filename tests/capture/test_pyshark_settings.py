"""Which settings pyshark reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import kwiresniff

FIND = "from kwiresniff.capture.tshark_decryption import _tshark_is_there as found; print(found())"


def test_settings_in_the_current_folder_are_somebody_elses(tmp_path: Path) -> None:
    """Settings found there neither choose the tshark program nor end us when they are of another kind."""
    program = tmp_path / "run-me"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = []
    for text in (f"[tshark]\ntshark_path = {program}\n", "[web]\nport = 80\n"):
        (tmp_path / "config.ini").write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(Path(kwiresniff.__file__).parents[1]), "PATH": "/nonexistent"}
        done = subprocess.run(
            [sys.executable, "-c", FIND], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        found.append(done.stdout + done.stderr[-300:])
    assert found == ["False\n", "False\n"]
