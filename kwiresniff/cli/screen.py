"""Standard output for lines that people read: what it can show, and how it is written to.

What it can show is found out once, before a pager takes the terminal's place.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

from kwiresniff.render.terminal import printable, use_color, width_of

#: Bytes that are collected before they are written, about a page for a pager.
HELD_BYTES = 64 << 10


class Screen:
    """Standard output; ``when`` says whether to use colours (``--color``). ``width`` is None for a pipe."""

    def __init__(self, when: str) -> None:
        self.out: TextIO = sys.stdout
        self.color = use_color(self.out, when)
        self.width = width_of(self.out)
        self.watched = self.out.isatty()
        as_it_is = self.out.encoding.lower() in ("utf-8", "utf8") and os.linesep == "\n"
        self._raw = getattr(self.out, "buffer", None) if as_it_is else None
        self._held: list[bytes] = []
        self._held_bytes = 0

    def write(self, text: bytes) -> None:
        """Lines in UTF-8; they appear with the next ``flush`` at the latest."""
        self._held.append(text)
        self._held_bytes += len(text)
        if self._held_bytes >= HELD_BYTES:
            self._give()

    def flush(self) -> None:
        """Writes what is buffered."""
        self._give()
        self.out.flush()

    def _give(self) -> None:
        text = b"".join(self._held)
        self._held, self._held_bytes = [], 0
        if self._raw is None:
            self.out.write(printable(text.decode(), self.out))
        elif text:
            self.out.flush()
            self._raw.write(text)
