"""The command on a terminal of its own, and what it writes there."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

from tests.support.paths import ROOT

#: Seconds that the screen may take to show something.
PATIENCE_S = 90.0


def started(*arguments: str, **environment: str) -> tuple[subprocess.Popen[bytes], int]:
    """The command on a terminal of its own."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kwiresniff", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30", **environment},
        start_new_session=True,
    )
    os.close(theirs)
    return process, ours


def read_until(terminal: int, text: str) -> str:
    """What a terminal gets until a text is there, or its other end is closed."""
    seen, end = "", time.monotonic() + PATIENCE_S
    while text not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                seen += os.read(terminal, 65536).decode(errors="replace")
            except OSError:  # closed
                break
    return seen
