"""The progress bar: seen on a terminal, never anywhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.capture_files import heartbeats, save
from tests.support.sample import mostly_slow

#: The command with a bar for captures of any size.
PROGRAM = "import kwiresniff.cli.progress as p; p.MIN_BYTES = 0; from kwiresniff.cli.main import main; main()"


def on_terminal(*args: str, stdout_too: bool = False) -> tuple[bytes, bytes]:
    """What a terminal on stderr sees, and what stdout gets when it is no terminal."""
    ours, theirs = pty.openpty()
    with tempfile.TemporaryFile() as file:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *args],
            stderr=theirs,
            stdout=theirs if stdout_too else file,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "", "PAGER": ""},
        )
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65_536):
                seen += piece
        except OSError:  # Linux says so when the other side is closed
            pass
        os.close(ours)
        assert process.wait(timeout=60) == 0
        file.seek(0)
        return seen, file.read()


@pytest.fixture
def capture(tmp_path: Path) -> str:
    return save(tmp_path / "a.pcap", heartbeats(400))


@pytest.mark.parametrize("command", mostly_slow([("stats",), ("read", "-o", "summary"), ("read", "-o", "jsonl")], 2))
def test_a_bar_is_shown_on_stderr_and_the_output_goes_to_stdout_whole(capture: str, command: tuple[str, ...]) -> None:
    seen, out = on_terminal(*command, capture)
    assert b"kB" in seen
    plain = subprocess.run([sys.executable, "-m", "kwiresniff", *command, capture], capture_output=True, check=True)
    assert out == plain.stdout
    assert plain.stderr == b""


def test_both_readings_for_the_packets_of_exchanges_have_a_bar(capture: str, tmp_path: Path) -> None:
    """Each hides the cursor once; what is written goes to a file, so that the screen is free."""
    seen, out = on_terminal("read", "-w", str(tmp_path / "out.pcapng"), capture, stdout_too=True)
    assert (seen.count(b"\x1b[?25l"), out) == (2, b"")
    assert seen.count(b"kB") >= 2


def test_no_bar_when_it_is_not_wanted(capture: str) -> None:
    assert on_terminal("stats", "--no-progress", capture)[0] == b""


def test_no_bar_among_the_lines_of_the_same_terminal(capture: str) -> None:
    seen, _ = on_terminal("read", "-o", "summary", capture, stdout_too=True)
    assert b"\x1b[?25l" not in seen  # what a bar begins with: the cursor is hidden
    assert b"Heartbeat" in seen


def test_the_bar_has_no_colours_when_there_shall_be_none(capture: str) -> None:
    seen, _ = on_terminal("stats", "--color", "never", capture)
    assert b"kB" in seen
    assert b"\x1b[3" not in seen
