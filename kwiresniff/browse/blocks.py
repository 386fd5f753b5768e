"""Lines of tabs, as other commands print them, and the exchanges that they lead to."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TextIO


class Target(NamedTuple):
    """What a line leads to: the exchanges that a filter lets through, or those in some packets."""

    filter: str = ""
    packets: tuple[int, ...] = ()
    label: str = ""


class Block(NamedTuple):
    """Some lines: ``write(out, width)`` writes them. They lead to the same, or each to one of ``targets(width)``."""

    write: Callable[[TextIO, int], None]
    target: Target | None = None
    targets: Callable[[int], list[Target | None]] | None = None
