"""The reading processes of the program, each of which is followed by a thread that gives its messages to the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import closing, suppress
from typing import Any

from textual.app import App

from kwiresniff.index.background import Failed, Work
from kwiresniff.index.forks import Background, Forks


class Processes:
    """One process for each name, forked by ``forks``. ``arguments`` are what the work of all of them begins with."""

    def __init__(self, app: App[Any], arguments: tuple[Any, ...], forks: Forks) -> None:
        self._forks = forks
        self._app = app
        self._arguments = arguments
        self._running: dict[str, Background] = {}

    def start(self, name: str, work: Work, take: Callable[[Any], None], *arguments: Any) -> None:
        """Has a process do ``work``, and gives ``take`` what it sends; work of the same name is given up."""
        self.stop(name)
        self.take_from(name, self._forks.start(work, *self._arguments, *arguments), take)

    def take_from(self, name: str, running: Background, take: Callable[[Any], None]) -> None:
        """Gives ``take`` what a process sends."""
        self._running[name] = running

        def follow() -> None:
            with closing(running):  # also where what takes a message fails, as it may while the program ends
                while True:
                    try:
                        message = running.receive()
                    except EOFError:
                        if self._running.get(name) is running:
                            self._running.pop(name, None)
                        return
                    if self._running.get(name) is running:
                        with suppress(RuntimeError, CancelledError):  # the program has ended
                            self._app.call_from_thread(use, message)

        def use(message: object) -> None:
            if self._running.get(name) is not running:  # given up, as all are when the program ends
                return
            if isinstance(message, Failed):
                self._app.notify(message.reason, title=name, severity="error", timeout=20, markup=False)
            else:
                take(message)

        # Not a worker of Textual's: cancelled before it began, it would leave a process that nobody waits for.
        asyncio.get_running_loop().run_in_executor(None, follow)

    def is_running(self, *names: str) -> bool:
        """Whether one of them is."""
        return not self._running.keys().isdisjoint(names)

    def stop(self, name: str) -> None:
        """Ends a process; nothing more is taken from it."""
        if (old := self._running.pop(name, None)) is not None:
            old.stop()

    def stop_all(self) -> None:
        """Ends all of them."""
        for name in list(self._running):
            self.stop(name)
