"""Exchanges written as lines to standard output as they complete, most of them by compiled code alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from librt.strings import BytesWriter

from kwiresniff.analysis.intake import Intake
from kwiresniff.model import Exchange
from kwiresniff.render.quick_lines import QuickLines

#: Bytes of lines that are collected before they are given away.
COLLECTED_BYTES: Final = 64 << 10


class LineIntake(Intake):
    """Writes every exchange by ``lines`` but the first one, and those that are not for it, which go to ``call``.

    What it has collected goes to ``give``, before anything goes to ``call``.
    """

    def __init__(self, lines: QuickLines, give: Callable[[bytes], None], call: Callable[[Exchange], None]) -> None:
        super().__init__()
        self._lines = lines
        self._give = give
        self._call = call
        self._out = BytesWriter()
        self._begun = False

    def take(self, exchange: Exchange) -> None:
        out = self._out
        if self._begun and self._lines.write(exchange, out):
            if len(out) >= COLLECTED_BYTES:
                self.flush()
            return
        self._begun = True
        self.flush()
        self._call(exchange)

    def flush(self) -> None:
        """Give away what has been collected."""
        out = self._out
        if len(out):
            text = out.getvalue()
            out.truncate(0)
            self._give(text)
