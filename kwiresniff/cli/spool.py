"""Captures that come through pipes, for commands that read them twice."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from typing import IO

from kwiresniff.capture.paths import STANDARD_INPUT, expand
from kwiresniff.errors import CaptureError

#: Bytes of captures that can be read only once, which are kept in a file of ours to be read again.
MAX_SPOOL_BYTES = 4 << 30
_PIECE_BYTES = 1 << 20


def readable_twice(name: str, stack: ExitStack) -> str:
    """The name of a capture that can be read twice: a file with the same bytes for one that cannot."""
    if name == STANDARD_INPUT:
        return _spool(sys.stdin.buffer, "standard input", stack)
    found = expand([name], [])
    if len(found) == 1 and found[0].size_bytes is None:
        with open(name, "rb") as file:
            return _spool(file, name, stack)
    return name


def _spool(file: IO[bytes], name: str, stack: ExitStack) -> str:
    """Copies a stream to a file that only this user can read, and that is removed when ``stack`` closes."""
    if file.isatty():
        raise CaptureError("standard input is a terminal: pipe a capture into it, or name a file")
    named = tempfile.NamedTemporaryFile(prefix="kwiresniff-", suffix=".part")  # noqa: SIM115  closed by the stack
    spool = stack.enter_context(named)
    size = 0
    while piece := file.read(_PIECE_BYTES):
        size += len(piece)
        if size > MAX_SPOOL_BYTES:
            raise CaptureError(
                f"{name}: it has to be read twice, and no more than {MAX_SPOOL_BYTES >> 30} GB of a pipe are kept; "
                "save it to a file, and read that"
            )
        spool.write(piece)
    spool.flush()
    return spool.name
