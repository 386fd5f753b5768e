"""A program of ``browse`` without a terminal, and keys pressed in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from textual.pilot import Pilot

from kwiresniff.base.address_names import AddressNames
from kwiresniff.browse.app import BrowseApp
from kwiresniff.browse.captures_model import Captured
from kwiresniff.browse.live_app import LiveApp
from kwiresniff.capture.live.spool_writer import MAX_SPOOL_BYTES, SpoolWriter
from kwiresniff.cli.browse import indexing, model_of
from kwiresniff.cli.index_job import checked_filter
from kwiresniff.cli.options import ReadOptions
from kwiresniff.index.forks import Forks
from kwiresniff.model import Segment
from tests.support.capture_files import LINKTYPE_RAW, SNAPLEN, pcap, raw_packets

Script = Callable[["Browsing"], Awaitable[None]]
#: Seconds that something on the screen may take: reading processes start and read meanwhile.
PATIENCE_S = 180.0
_STEP_S = 0.02


class Browsing:
    """The program, and what a person does with it."""

    def __init__(self, app: BrowseApp, pilot: Pilot[Any]) -> None:
        self.app = app
        self.pilot = pilot

    async def until(self, is_so: Callable[[], object]) -> None:
        """Waits until something is so."""
        end = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < end, "it did not come to that"
            await self.pilot.pause(_STEP_S)

    async def read(self) -> None:
        """Waits until the captures are read, and the tabs are filled."""
        await self.until(lambda: self.app.model.progress.done and self.app.report is not None)
        await self.until(lambda: self.app.query_one("#tree").details is not None or not len(self.app.selection))  # type: ignore[attr-defined]

    async def press(self, *keys: str) -> None:
        """Presses keys one after the other."""
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Types a text."""
        await self.press(*({" ": "space", "=": "equals_sign", "_": "underscore"}.get(char, char) for char in text))

    def lines(self, view: str) -> list[str]:
        """What a view shows, line by line, without spaces at the ends."""
        widget = self.app.query_one(view)
        return [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]

    def text(self, view: str) -> str:
        """The words that a view shows, however its lines are folded."""
        return " ".join(" ".join(self.lines(view)).split())

    def listed(self) -> list[str]:
        """The lines of the list of exchanges."""
        return [line for line in self.lines("#list")[1:] if line]

    def notes(self) -> list[str]:
        """What the program tells at the moment."""
        return [one.message for one in self.app._notifications]

    def tree(self) -> str:
        """The tree of the selected exchange."""
        return "\n".join(self.lines("#tree"))


def browse(
    capture: str | Path, script: Script, *, size: tuple[int, int] = (120, 40), options: ReadOptions | None = None
) -> None:
    """Starts the program over a capture and plays the script."""

    async def play() -> None:
        model, jobs = model_of((str(capture),), options or ReadOptions())
        app = BrowseApp(model, jobs, checked_filter, indexing(jobs, forks), forks)
        async with app.run_test(size=size) as pilot:
            await script(Browsing(app, pilot))

    with closing(Forks()) as forks:
        asyncio.run(play())


class Live:
    """A live capture in the place of the network: packets come when a test says so."""

    def __init__(self, folder: Path, most_bytes: int = MAX_SPOOL_BYTES) -> None:
        folder.mkdir()
        self.folder = str(folder)
        self.app: LiveApp
        self.is_stopped = False
        self._told: SimpleQueue[Captured | None] = SimpleQueue()
        self._packets = 0
        self._writer = SpoolWriter(self.folder, LINKTYPE_RAW, SNAPLEN, AddressNames(), most_bytes)

    def give(self, segments: Sequence[Segment]) -> None:
        """Has packets come."""
        for packet in raw_packets(pcap(segments)):
            self._writer.write(*packet)
            self._writer.flush()
            self._packets += 1
        self._told.put(Captured(self._packets, 7, self._writer.given_up))

    def receive(self) -> Captured:
        told = self._told.get()
        if told is None:
            raise EOFError
        return told

    def stop(self) -> None:
        """Ends the capture."""
        if not self.is_stopped:
            self.is_stopped = True
            self._writer.close()

    def close(self) -> None:
        self._told.put(None)


def watch(live: Live, script: Script, *, size: tuple[int, int] = (120, 40), **settings: Any) -> LiveApp:
    """Starts the program over a live capture and plays the script; the program when it has ended."""

    async def play() -> LiveApp:
        model, jobs = model_of((live.folder,), ReadOptions(), Captured())
        model.files = ["eth0"]
        app = LiveApp(model, jobs, checked_filter, indexing(jobs, forks), forks, live, **settings)
        async with app.run_test(size=size) as pilot:
            await script(Browsing(app, pilot))
        return app

    try:
        with closing(Forks()) as forks:
            return asyncio.run(play())
    finally:
        live.stop()
