"""What commands do without: modules that a capture without anything unusual does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.capture_files import heartbeats, save
from tests.support.paths import ROOT

#: Modules that take a millisecond or more, and that none of these commands uses.
HEAVY = (
    "click", "inspect", "ast", "uuid", "platform", "locale", "difflib", "dataclasses", "rich",
    "google_crc32c", "cramjam",
)  # fmt: skip
#: Modules that only trees need, and what is wrong with a message.
CAREFUL = ("threading", "datetime", "kwiresniff.codec.dissector", "kwiresniff.codec.folding")


@pytest.mark.parametrize("command", [["stats"], ["read"], ["read", "-o", "summary"]], ids=" ".join)
def test_a_short_run_imports_nothing_that_it_does_not_use(tmp_path: Path, command: list[str]) -> None:
    """In a process of its own, on a capture without records."""
    capture = save(tmp_path / "a.pcap", heartbeats(2))
    heavy = HEAVY if command == ["read"] else HEAVY + CAREFUL
    script = (
        "import sys\n"
        f"sys.argv, heavy = ['kwiresniff', *{command!r}, {capture!r}], {heavy!r}\n"
        "from kwiresniff.__main__ import main\n"
        "import kwiresniff.__main__ as start\n"
        "start._leave = lambda code: print(code, *(name for name in heavy if name in sys.modules), file=sys.stderr)\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "0")
    assert "Heartbeat" in done.stdout
