"""A terminal's screen that is drawn again and again: only lines that have changed are written.

Control sequences: ECMA-48, and xterm's alternate screen (private mode 1049).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"


class Screen:
    """The alternate screen of the terminal behind ``out``, while it is entered."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown: list[str] = []
        self._size = (0, 0)

    def __enter__(self) -> Screen:
        self._write(_ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(_LEAVE)

    def show(self, lines: Sequence[str], width: int, height: int) -> None:
        """Puts ``lines``, each no wider than ``width`` and with whatever colours it has, on the screen."""
        shown = self._shown
        pieces = []
        if self._size != (width, height):
            self._size, shown = (width, height), []
            pieces.append("\x1b[2J")
        for row, line in enumerate(lines[:height]):
            if row >= len(shown) or shown[row] != line:
                pieces.append(f"\x1b[{row + 1};1H{line}\x1b[K")
        if pieces:
            self._write("".join(pieces))
        self._shown = list(lines[:height])

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
