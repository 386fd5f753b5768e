"""Exchanges written as lines to standard output as they complete, most of them by compiled code alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from librt.strings import BytesWriter

from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.model import Event, Exchange, Problem
from kwiresniff.render.quick_lines import QuickLines

#: Bytes of lines that are collected before they are given away.
COLLECTED_BYTES: Final = 64 << 10


class LineSink(CallingSink):
    """Writes every exchange by ``lines`` but the first one, and those that are not for it, which go to ``exchange``.

    What it has collected goes to ``give``, before anything goes to ``exchange``, or a problem to ``other``.
    """

    def __init__(
        self,
        lines: QuickLines,
        give: Callable[[bytes], None],
        exchange: Callable[[Exchange], None],
        other: Callable[[Event], None],
    ) -> None:
        super().__init__(exchange, other)
        self._lines = lines
        self._give = give
        self._out = BytesWriter()
        self._begun = False

    def on_exchange(self, exchange: Exchange) -> None:
        out = self._out
        if self._begun and self._lines.write(exchange, out):
            if len(out) >= COLLECTED_BYTES:
                self.flush()
            return
        self._begun = True
        self.flush()
        super().on_exchange(exchange)

    def on_problem(self, problem: Problem) -> None:
        self.flush()
        super().on_problem(problem)

    def flush(self) -> None:
        """Give away what has been collected."""
        out = self._out
        if len(out):
            text = out.getvalue()
            out.truncate(0)
            self._give(text)
