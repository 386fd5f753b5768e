"""Keys as they are pressed, without waiting for a line or for anybody."""

from __future__ import annotations

import os
import select
import sys
from types import TracebackType
from typing import Any, Self

#: Keys typed between two looks; more is somebody leaning on the keyboard.
_MAX_BYTES = 64


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

    def keys(self) -> str:
        """What was typed since the last call."""
        if self._before is None or not select.select([sys.stdin], [], [], 0)[0]:
            return ""
        return os.read(sys.stdin.fileno(), _MAX_BYTES).decode("utf-8", "replace")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)
