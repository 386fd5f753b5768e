"""Decryption in process and by tshark say the same of every recording in TLS."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.command import Run
from tests.support.paths import CAPTURES

NAMES = sorted(path.stem for path in (CAPTURES / "keys").glob("*.log"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tshark") is None and not os.environ.get("CI"), reason="tshark is not installed"),
]


@pytest.mark.parametrize("name", [*NAMES, "twins"])
def test_both_engines_say_the_same(kwiresniff: Run, name: str) -> None:
    """Every exchange, connection and problem to the last member; only when a connection ends may differ."""
    capture: Path = CAPTURES / "twins" / "encrypted.pcap.xz" if name == "twins" else CAPTURES / f"{name}.pcap"
    keylog = CAPTURES / "twins" / "keys.log" if name == "twins" else CAPTURES / "keys" / f"{name}.log"
    said = []
    for engine in ("built-in", "tshark"):
        done = kwiresniff("read", "-o", "jsonl", "--keylog", str(keylog), "--tls-engine", engine, str(capture))
        said.append((done.code, sorted(done.out.splitlines())))
    assert said[0] == said[1]
    assert '"decrypted":true' in "".join(said[0][1])
