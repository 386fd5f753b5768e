"""``browse`` from the outside: where it refuses, and in a terminal that is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command import Run
from tests.support.paths import CAPTURES, ROOT
from tests.support.terminals import PATIENCE_S, read_until, started

CAPTURE = str(CAPTURES / "incidents" / "fenced.pcap.xz")


def test_without_a_terminal_it_says_what_to_use_instead(kwiresniff: Run) -> None:
    """In one line, as a mistake of usage."""
    done = kwiresniff("browse", CAPTURE)
    assert done.code == 2
    assert done.err.splitlines() == [
        "kwiresniff: browse: browse needs a terminal that can move the cursor; without one, use read or stats; "
        "see 'kwiresniff browse --help'"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        ((CAPTURE,), {"TERM": "dumb"}, "needs a terminal that can move the cursor"),
        (("-",), {}, "standard input is a terminal: pipe a capture into it"),
        ((CAPTURE, "-Y", "api =="), {}, "filter: at column 7"),
        (("nothing.pcap",), {}, "nothing.pcap"),
    ],
)
def test_what_cannot_be_browsed_is_refused_before_the_screen_changes(
    arguments: tuple[str, ...], environment: dict[str, str], said: str
) -> None:
    """In one line."""
    process, terminal = started("browse", *arguments, **environment)
    shown = read_until(terminal, "\0")
    os.close(terminal)
    assert process.wait(PATIENCE_S) in (1, 2)
    assert said in shown
    assert len(shown.splitlines()) == 1
    assert "\x1b" not in shown


@pytest.mark.slow
def test_without_the_library_of_its_screen_it_names_the_extra(tmp_path: Path) -> None:
    """A package that cannot be imported stands in its place."""
    (tmp_path / "textual").mkdir()
    (tmp_path / "textual" / "__init__.py").write_text("raise ImportError('No module named textual')\n")
    process, terminal = started("browse", CAPTURE, PYTHONPATH=str(tmp_path))
    shown = read_until(terminal, "\0")
    os.close(terminal)
    assert process.wait(PATIENCE_S) == 1
    assert 'pip install "kwiresniff[browse]"' in shown


@pytest.mark.slow
def test_it_ends_when_its_terminal_is_gone() -> None:
    """Also where no signal tells it."""
    process, terminal = started("browse", CAPTURE)
    assert "exchanges" in read_until(terminal, "exchanges")
    os.close(terminal)
    try:
        process.wait(PATIENCE_S)
    finally:
        process.kill()


@pytest.mark.slow
def test_it_ends_when_its_terminal_is_gone_while_it_has_much_to_draw() -> None:
    """Nobody reads what it draws, until it waits for that."""
    process, terminal = started("browse", CAPTURE)
    read_until(terminal, "exchanges")
    for _ in range(300):
        os.write(terminal, b"3d1d")
        time.sleep(0.03)
    time.sleep(1)
    os.close(terminal)
    try:
        assert process.wait(PATIENCE_S) == 129
    finally:
        process.kill()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
def test_in_a_terminal_keys_lead_from_a_finding_to_its_exchange(piped: bool, tmp_path: Path) -> None:
    """With tmux, which draws what a terminal would; q ends the program and its processes."""
    socket = str(tmp_path / "tmux")

    def tmux(*arguments: str) -> str:
        done = subprocess.run(["tmux", "-S", socket, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def wait_for(text: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while text not in tmux("capture-pane", "-p") and time.monotonic() < end:
            time.sleep(0.3)
        assert text in tmux("capture-pane", "-p")

    browse = f"{sys.executable} -m kwiresniff browse"
    browse = f"cat {CAPTURE} | {browse} -" if piped else f"{browse} {CAPTURE}"
    command = f"cd {ROOT}; {browse}; echo ended with $?; sleep {PATIENCE_S}"
    tmux("new-session", "-d", "-x", "100", "-y", "30", command)
    try:
        wait_for("19 exchanges")
        wait_for("Doctor 3!")
        tmux("send-keys", "6")
        wait_for("was fenced by")
        tmux("send-keys", "Enter")
        wait_for("1 of 19 exchanges")
        wait_for("INVALID_PRODUCER_EPOCH")
        tmux("send-keys", "q")
        wait_for("ended with 0")
    finally:
        tmux("kill-server")
