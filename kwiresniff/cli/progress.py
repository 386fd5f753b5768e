"""The progress bar on stderr."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kwiresniff.render.terminal import console

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


#: Below this a reading is over before a bar could be read.
MIN_BYTES = 16 << 20


class Progress:
    """A bar for long work with a known end, when someone is there to see it; otherwise does nothing.

    The bar stays away when output goes to the same terminal.
    """

    def __init__(self, total: int | None, color: str, *, enabled: bool, shares_terminal: bool) -> None:
        """``total`` bytes are read, None where that is not known."""
        self._color = color
        seen = sys.stderr.isatty() and not (shares_terminal and sys.stdout.isatty())
        self._total = total if enabled and seen and total is not None and total >= MIN_BYTES else None
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._total is not None:
            from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
            from rich.progress import Progress as RichProgress

            self._bar = RichProgress(
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=console(self._color, stderr=True),
                transient=True,
                redirect_stdout=False,
            )
            self._task = self._bar.add_task("", total=self._total)
            self._bar.start()
        return self

    def show(self, position: int) -> None:
        """Shows that so many bytes are read."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=position)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
