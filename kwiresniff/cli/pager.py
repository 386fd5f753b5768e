"""Long output through the user's pager, as git does it: a page at a time, read on demand.

``KWIRESNIFF_PAGER`` or else ``PAGER`` says which, a command line for the shell; ``less`` when neither is set. Empty or
``cat`` means none. ``LESS`` becomes ``FRX`` unless it is set: less ends by itself when everything fits the screen,
shows colours, and leaves on the screen what it showed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

DEFAULT = "less"


def pager() -> str | None:
    """The command line of the pager to use on this terminal; None when there is none."""
    if os.environ.get("TERM") == "dumb":
        return None
    command = os.environ.get("KWIRESNIFF_PAGER", os.environ.get("PAGER", DEFAULT)).strip()
    if command in ("", "cat") or (command == DEFAULT and shutil.which(DEFAULT) is None):
        return None
    with suppress(ValueError):
        words = shlex.split(command)
        program = next((word for word in words if "=" not in word), "")  # NAME=value may stand before it
        if shutil.which(program) is None:
            print(f"kwiresniff: the pager {program!r} is not there; see PAGER and KWIRESNIFF_PAGER", file=sys.stderr)
            return None
    return command


@contextmanager
def paged(command: str | None) -> Iterator[None]:
    """Standard output, and standard error when it is the terminal too, go through ``command`` for as long as this
    lasts. At the end it is waited for: the terminal is its own until it has been left."""
    if command is None:
        yield
        return
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    sys.stdout.flush()
    process = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    streams = [stream for stream in (sys.stdout, sys.stderr) if stream.isatty()]
    kept = [(stream, os.dup(stream.fileno())) for stream in streams]
    for stream in streams:
        os.dup2(process.stdin.fileno(), stream.fileno())
    process.stdin.close()
    try:
        yield
    finally:
        for stream, number in kept:
            with suppress(BrokenPipeError):
                stream.flush()
            os.dup2(number, stream.fileno())
            os.close(number)
        _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C is the pager's now: in less it ends a search."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
