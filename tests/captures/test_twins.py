"""What is decrypted is, byte for byte, what was said in the clear: two recordings of the same minute."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.capture import open_captures, with_decryption
from kwiresniff.model import Connection, Exchange
from tests.support.events import analyze

TWINS = Path(__file__).parents[2] / "captures" / "twins"
ROWS: list[dict[str, Any]] = tomllib.loads((TWINS / "MANIFEST.toml").read_text(encoding="utf-8"))["capture"]
needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None and not os.environ.get("CI"), reason="tshark is not installed"
)


def analyzed(capture: Path, keylog: Path | None) -> tuple[list[Connection], list[list[tuple[object, ...]]]]:
    """The connections in the order of their ends, and what was said on each, in the order of their first requests."""
    source = with_decryption(open_captures([str(capture)]), None if keylog is None else str(keylog))
    connections = []
    exchanges: dict[int, list[tuple[object, ...]]] = {}
    begun: dict[int, int] = {}
    for event in analyze(source, depth="records", show_secrets=True, tls_secrets=source.tls_secrets):
        if isinstance(event, Connection):
            connections.append(event)
        elif isinstance(event, Exchange):
            request, response = event.request, event.response
            assert request is not None
            begun.setdefault(event.connection.id, request.first_ns)
            told = (event.api, event.api_version, event.correlation_id, event.client_id, event.outcome, event.errors)
            frames = (request.frame, request.body, response and response.frame, response and response.body)
            exchanges.setdefault(event.connection.id, []).append((*told, *frames, event.problems))
    return connections, [exchanges[number] for number in sorted(exchanges, key=begun.__getitem__)]


@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_file_and_row_agree(row: dict[str, Any]) -> None:
    assert hashlib.sha256((TWINS / row["file"]).read_bytes()).hexdigest() == row["sha256"]


@pytest.mark.parametrize("embedded", [True, False])
def test_an_encrypted_recording_says_what_its_twin_in_the_clear_says(embedded: bool, tmp_path: Path) -> None:
    """TLS 1.2 and 1.3, three client libraries, new sessions and resumed ones; the keys from a log, or from inside a
    pcapng file."""
    capture: Path = TWINS / "encrypted.pcap.xz"
    keylog: Path | None = TWINS / "keys.log"
    if embedded:
        plain, capture = tmp_path / "plain.pcap", tmp_path / "keys-inside.pcapng"
        plain.write_bytes(lzma.decompress((TWINS / "encrypted.pcap.xz").read_bytes()))
        if shutil.which("editcap") is None:
            pytest.skip("editcap is not installed")
        subprocess.run(["editcap", "--inject-secrets", f"tls,{keylog}", str(plain), str(capture)], check=True)
        keylog = None
    encrypted, decrypted_says = analyzed(capture, keylog)
    clear, clear_says = analyzed(TWINS / "clear.pcap.xz", None)
    assert {(one.tls or {})["version"] for one in encrypted} == {"TLSv1.2", "TLSv1.3"}
    assert all((one.tls or {})["decrypted"] for one in encrypted)
    assert all(one.tls is None for one in clear)
    assert len(clear_says) == len(encrypted) >= 8
    assert decrypted_says == clear_says


@needs_tshark
def test_sessions_of_the_recording_were_resumed(tmp_path: Path) -> None:
    """Which shows in TLS 1.3 as the server's choice of a key that both have (extension 41)."""
    plain = tmp_path / "plain.pcap"
    plain.write_bytes(lzma.decompress((TWINS / "encrypted.pcap.xz").read_bytes()))
    chosen = "tls.handshake.type == 2 && tls.handshake.extension.type == 41"
    command = [
        "tshark",
        "-r",
        str(plain),
        "-d",
        "tcp.port==9093,tls",
        "-T",
        "fields",
        "-e",
        "frame.number",
        "-Y",
        chosen,
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert len(done.stdout.split()) > 2
