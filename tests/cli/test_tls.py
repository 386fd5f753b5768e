"""Decryption needs no other program, and the keys that decrypt TLS are in no output."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.command import Run
from tests.support.paths import CAPTURES

KEYLOG = CAPTURES / "keys" / "java-tls.log"
LINES = [line for line in KEYLOG.read_text().splitlines() if line[0] != "#"]


def forms(secret: bytes) -> list[str]:
    return [secret.hex(), secret.hex().upper(), base64.b64encode(secret).decode()[:-2], repr(secret)[2:40]]


@pytest.mark.parametrize(
    "command",
    [("read", "-o", "jsonl", "--show-secrets"), ("read", "-v"), ("stats", "-v"), ("doctor",), ("clients",)],
    ids=" ".join,
)
def test_no_output_has_a_secret_of_tls(
    kwiresniff: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Neither in any of the forms in which it may be written, nor where a connection lacks one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    lacking = tmp_path / "lacking.log"
    lacking.write_text("\n".join(LINES[1:-1]) + "\n")
    secrets = [bytes.fromhex(line.split(":")[-1].split()[-1]) for line in LINES]
    for keylog in (KEYLOG, lacking):
        done = kwiresniff(*command, "--keylog", str(keylog), str(CAPTURES / "java-tls.pcap"))
        assert done.out
        said = done.out + done.err
        assert not [form for secret in secrets for form in forms(secret) if form in said]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_neither_tshark_nor_pyshark_is_needed(tmp_path: Path) -> None:
    """With both out of reach, a key log decrypts; to ask for them is answered in one line."""
    code = "import sys; sys.modules['pyshark'] = None; from kwiresniff.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "read", "-o", "summary", "--keylog", str(KEYLOG)]
    found = {}
    for engine in ("built-in", "tshark"):
        arguments = [*command, "--tls-engine", engine, str(CAPTURES / "java-tls.pcap")]
        environment = {**os.environ, "PATH": str(tmp_path)}
        found[engine] = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)
    assert (found["built-in"].returncode, found["built-in"].stdout.count("\n")) == (0, 31)
    assert (found["tshark"].returncode, found["tshark"].stderr.count("\n")) == (1, 1)
    assert "pip install pyshark" in found["tshark"].stderr


def test_a_few_connections_that_lack_keys_are_named_and_all_are_counted(kwiresniff: Run) -> None:
    """A key log of one client, and a capture of many."""
    other = CAPTURES / "keys" / "kcat-tls.log"
    done = kwiresniff("read", "-o", "summary", "--keylog", str(other), str(CAPTURES / "java-tls.pcap"))
    told = re.findall(r"TLS of ([\d.]+:\d+) to ([\d.]+:9092) is not decrypted: the keys lack \w+ of client", done.err)
    assert len(set(told)) == 5
    assert "8 TCP connections with TLS" in done.err
