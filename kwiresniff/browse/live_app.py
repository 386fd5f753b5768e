"""The same program over a live capture: its list and its tabs go on, and the capture ends with it."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any, ClassVar, Final, Protocol

from textual.binding import Binding, BindingType
from textual.worker import get_current_worker

from kwiresniff.browse.app import BrowseApp
from kwiresniff.browse.captures_model import Captured, CapturesModel
from kwiresniff.browse.messages import Jobs, Reported
from kwiresniff.browse.selection import Order
from kwiresniff.index import Indexed
from kwiresniff.index.background import Background
from kwiresniff.render import format_units
from kwiresniff.render.theme import Span

#: Seconds after which ages and orders are shown anew.
_RENEW_S: Final = 1.0
#: Rows up to which another order than that of time is renewed as exchanges come; sorting more takes too long.
MAX_SORTED_ROWS: Final = 100_000


class Capture(Protocol):
    """What captures."""

    def receive(self) -> Captured:
        """How far it has come, waited for; raises EOFError when it is over."""
        ...

    def stop(self) -> None:
        """Asks it to end."""
        ...

    def close(self) -> None:
        """Has ``receive`` end."""
        ...


class LiveApp(BrowseApp):
    """Browses what ``capture`` gives while it goes on, and ends when all of it is read: when the capture ends by
    itself, when ``limit`` exchanges are listed, or with a key. ``was_interrupted`` says that the key was Ctrl-C.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "Pause"),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
    ]

    def __init__(
        self,
        model: CapturesModel,
        jobs: Jobs,
        check: Callable[[str], object],
        index: Background,
        capture: Capture,
        *,
        limit: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(model, jobs, check, index, **settings)
        self.was_interrupted = False
        self.is_paused = False
        self._capture = capture
        self._limit = limit
        self._held: list[Indexed] = []

    def on_mount(self) -> None:
        self.start_report()
        self.run_worker(self._follow, group="capture", thread=True, exit_on_error=False)
        self.set_interval(_RENEW_S, self.renew)
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self.action_interrupt)

    def on_unmount(self) -> None:
        self._capture.close()

    def _follow(self) -> None:
        """Takes in, in a thread, how far the capture has come."""
        worker = get_current_worker()
        while not worker.is_cancelled:
            try:
                captured = self._capture.receive()
            except EOFError:
                return
            if not worker.is_cancelled:
                self.call_from_thread(self.model.take_captured, captured)

    def renew(self) -> None:
        """Shows the order of the list and the ages at the top as they are now."""
        order, pane = self.selection.order, self.exchanges
        if not (self.is_paused or pane.is_sorting) and order != Order() and len(self.selection) <= MAX_SORTED_ROWS:
            pane.sort(order, pane.list.row)
        self.show_status()
        self._leave_when_done()

    def take_part(self, message: Indexed) -> None:
        if self.is_paused and not message.done:
            self._held.append(message)
            return
        held, self._held = self._held, []
        for one in (*held, message):
            super().take_part(one)
        if self._limit is not None and len(self.selection) >= self._limit and not self._is_ending:
            self._end()
        self._leave_when_done()

    def take_report(self, message: Reported) -> None:
        if not self.is_paused or message.done:
            super().take_report(message)
        self._leave_when_done()

    def _leave_when_done(self) -> None:
        """Ends the program when all that was captured is read and counted, and no file is being written."""
        if self.model.progress.done and self.report is not None and self.report.done and not self.is_saving():
            self.exit()

    def progress_spans(self) -> list[Span]:
        captured, (waiting, sent_ns) = self.model.captured or Captured(), self.model.progress.in_flight
        spans: list[Span] = []
        if self._is_ending:
            spans.append(("warn", "ending ..."))
        elif self.is_paused:
            spans.append(("warn", "paused"))
        elif not self.exchanges.is_following:
            spans.append(("dim", "End: follow"))
        if waiting:
            age = format_units.duration(max(time.time_ns() - sent_ns, 0))
            spans.append(("value", f"{waiting:,} in flight, oldest {age}"))
        else:
            spans.append(("dim", "0 in flight"))
        spans.append(("warn" if captured.dropped else "dim", f"{captured.dropped:,} packets dropped"))
        if self.model.given_up:
            spans.append(("warn", f"packets of {self.model.given_up:,} not kept"))
        return spans

    def action_pause(self) -> None:
        """Keeps what is shown as it is; the capture goes on."""
        self.is_paused = not self.is_paused
        held, self._held = self._held, []
        if not self.is_paused:
            for one in held:
                super().take_part(one)
        self.show_status()

    async def action_quit(self) -> None:
        self._end()

    def action_interrupt(self) -> None:
        """Ends the capture as an interrupt does."""
        self.was_interrupted = True
        self._end()

    def _end(self) -> None:
        """Ends the capture, and the program when what was captured is read; asked once more, at once."""
        if self._is_ending:
            self.reading.stop_all()
            self.exit()
            return
        self._is_ending = True
        self.is_paused = False
        self._capture.stop()
        self.show_status()
