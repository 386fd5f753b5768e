"""What a run of the command inside the test process leaves behind."""

from __future__ import annotations

from typing import NamedTuple


class Done(NamedTuple):
    """What a run left behind."""

    code: int
    out: str
    err: str
