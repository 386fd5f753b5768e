"""What a run of the command inside the test process leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Done(NamedTuple):
    """What a run left behind."""

    code: int
    out: str
    err: str


#: Runs the command with these arguments: the fixture ``kwiresniff``.
Run: TypeAlias = Callable[..., Done]
