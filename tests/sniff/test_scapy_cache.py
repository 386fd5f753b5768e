"""scapy neither reads nor writes a cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: The ways into scapy.
WAYS = (
    "from kwiresniff.capture.live import network_interfaces; network_interfaces()",
    "from kwiresniff.capture.live.bpf import compiled; compiled('tcp', 1)",
    "from kwiresniff.capture.live.packet_ring import _scapy_socket; _scapy_socket('lo', False)",
)


@pytest.mark.parametrize("way", WAYS)
def test_no_cache_of_scapy_is_used(tmp_path: Path, way: str) -> None:
    """A cache is a pickle in the home: as root, one that somebody else may have put there.

    scapy makes one when there is none, so that none is there afterwards says that it was not looked for.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    code = f"import contextlib\nwith contextlib.suppress(PermissionError):\n exec({way!r})"
    subprocess.run([sys.executable, "-c", code], env=environment | {"HOME": str(tmp_path)}, check=True)
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []
