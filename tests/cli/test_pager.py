"""Trees and lines on a terminal go through the user's pager."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

CAPTURE = Path(__file__).parents[2] / "captures" / "java-produce.pcap"
#: Marks what came through it.
MARKING = "sed s/^/paged:/"


def on_terminal(
    *args: str, interrupt: bool = False, stdin: IO[bytes] | None = None, **environment: str
) -> tuple[int, str]:
    """Exit code and screen of a ``read`` whose output and errors are a terminal's; with ``interrupt`` Ctrl-C is pressed
    when something is there to see."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PAGER", "KWIRESNIFF_PAGER", "LESS")}
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kwiresniff", "read", *args],
        stdin=stdin or slave, stdout=slave, stderr=slave, start_new_session=True,
        env={**inherited, "TERM": "xterm", "COLUMNS": "200", **environment},
    )  # fmt: skip
    os.close(slave)
    shown = b""
    try:
        while data := os.read(master, 65536):
            shown += data
            if interrupt:
                interrupt = False
                os.killpg(process.pid, signal.SIGINT)
    except OSError:
        pass  # Linux says so when nobody has the terminal any more
    os.close(master)
    return process.wait(60), shown.decode().replace("\r\n", "\n")


def paged(shown: str) -> bool:
    lines = shown.splitlines()
    assert lines
    assert len({line.startswith("paged:") for line in lines}) == 1, "some lines went another way"
    return lines[0].startswith("paged:")


@pytest.mark.parametrize("form", ["tree", "summary"])
def test_what_people_read_goes_through_the_pager(form: str) -> None:
    """In the width and the colours of the terminal behind it."""
    code, shown = on_terminal("-o", form, str(CAPTURE), PAGER=MARKING)
    assert code == 0
    assert paged(shown)
    assert "\x1b[1m" in shown
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert 100 < max(len(line.removeprefix("paged:")) for line in lines) <= 200


@pytest.mark.parametrize(
    ("args", "environment"),
    [
        pytest.param(["-o", "jsonl"], {"PAGER": MARKING}, id="JSON"),
        pytest.param(["--no-pager"], {"PAGER": MARKING}, id="asked not to"),
        pytest.param([], {"PAGER": ""}, id="no pager"),
        pytest.param([], {"PAGER": "cat"}, id="cat"),
        pytest.param([], {"PAGER": MARKING, "KWIRESNIFF_PAGER": "cat"}, id="none for kwiresniff"),
        pytest.param([], {"PAGER": MARKING, "TERM": "dumb"}, id="a terminal that cannot page"),
    ],
)
def test_some_output_goes_straight_to_the_terminal(args: list[str], environment: dict[str, str]) -> None:
    """What programs read, and whenever the user wants no pager."""
    code, shown = on_terminal(*args, str(CAPTURE), interrupt=False, stdin=None, **environment)
    assert (code, paged(shown)) == (0, False)


def test_what_may_be_live_goes_straight_to_the_terminal() -> None:
    """A capture from standard input is read while it is made."""
    with CAPTURE.open("rb") as capture:
        code, shown = on_terminal("-", stdin=capture, PAGER=MARKING)
    assert (code, paged(shown)) == (0, False)


def test_kwiresniff_may_have_a_pager_of_its_own() -> None:
    """``KWIRESNIFF_PAGER`` goes before ``PAGER``."""
    assert paged(on_terminal(str(CAPTURE), PAGER="false", KWIRESNIFF_PAGER=MARKING)[1])


def test_less_is_told_to_show_colours_and_to_end_by_itself() -> None:
    """Unless the user has told it something else."""
    show = "sh -c 'cat >/dev/null; echo LESS is $LESS'"
    assert on_terminal(str(CAPTURE), PAGER=show) == (0, "LESS is FRX\n")
    assert on_terminal(str(CAPTURE), PAGER=show, LESS="-S") == (0, "LESS is -S\n")


def test_a_pager_that_is_left_early_is_no_error() -> None:
    """The rest of the capture is not read."""
    code, shown = on_terminal(str(CAPTURE), "--color", "never", PAGER="head -n 1")
    assert (code, len(shown.splitlines())) == (0, 1)
    assert shown.startswith("✓ ApiVersions")


def test_a_pager_that_is_not_there_is_told_and_done_without() -> None:
    """Whatever was asked for is shown all the same."""
    code, shown = on_terminal(str(CAPTURE), "--color", "never", PAGER="no-such-pager -x")
    first, second = shown.splitlines()[:2]
    assert code == 0
    assert first.startswith("kwiresniff: the pager 'no-such-pager' is not there")
    assert second.startswith("✓ ApiVersions")


def test_ctrl_c_ends_the_reading_and_waits_for_the_pager() -> None:
    """What was read can still be looked at, and the terminal is in nobody's way after that."""
    stubborn = "sh -c 'trap \"\" INT; cat; sleep 0.3; echo; echo pager ends'"
    code, shown = on_terminal(str(CAPTURE), *[str(CAPTURE)] * 40, interrupt=True, PAGER=stubborn)
    assert code in (0, 130)  # it may have come to its end before
    assert shown.endswith("\npager ends\n")
    assert "Traceback" not in shown


def test_problems_are_shown_among_what_they_are_about(tmp_path: Path) -> None:
    """Standard error goes through the pager, too, when it is the same terminal."""
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(CAPTURE.read_bytes()[:-7])
    code, shown = on_terminal(str(cut), PAGER=MARKING)
    assert code == 0
    assert paged(shown)
    assert "paged:kwiresniff: " in shown
