"""Keys as they are pressed, without waiting for a line or for anybody."""

from __future__ import annotations

import os
import re
import select
import sys
from types import TracebackType
from typing import Any, Self

#: Keys typed between two looks; more is somebody leaning on the keyboard.
_MAX_BYTES = 64


#: A character, or what terminals send for keys that are none (ECMA-48, and xterm's application mode).
_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|[\s\S]")
_NAMES = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[C": "right",
    "\x1bOC": "right",
    "\x1b[D": "left",
    "\x1bOD": "left",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[Z": "back tab",
    "\x1b": "escape",
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\b": "backspace",
}


def split_keys(typed: str) -> list[str]:
    """The keys behind the characters: a character each, or a name for a key that is none; unknown ones are left out."""
    keys = [_NAMES.get(one, one) for one in _KEY.findall(typed)]
    return [key for key in keys if not key.startswith("\x1b")]


class Keyboard:
    """The terminal behind standard input, while it is entered; without one there are no keys."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        if sys.stdin.isatty():
            import termios
            import tty

            self._before = termios.tcgetattr(sys.stdin)
            # Signals still come from keys; everything else comes at once and is not shown.
            tty.setcbreak(sys.stdin)
        return self

    def keys(self) -> list[str]:
        """What was typed since the last call, key by key."""
        if self._before is None or not select.select([sys.stdin], [], [], 0)[0]:
            return []
        return split_keys(os.read(sys.stdin.fileno(), _MAX_BYTES).decode("utf-8", "replace"))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)
