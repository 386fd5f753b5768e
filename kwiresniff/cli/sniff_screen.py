"""The screen of ``kwiresniff sniff``: the program of ``browse`` in a process of its own, over a live capture.

The process that captures keeps the packets in a folder (``kwiresniff.capture.spooled``), tells how far it is, and ends
when the screen does. The screen and what reads for it have no socket that captures.
"""

from __future__ import annotations

import os
import pickle
import select
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from kwiresniff.analysis.sinks import WholeEvents
from kwiresniff.browse.captures_model import Captured
from kwiresniff.browse.messages import Reported
from kwiresniff.capture.live import LiveCapture
from kwiresniff.capture.live.spool_writer import SpoolWriter
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.interrupts import uninterrupted
from kwiresniff.cli.options import ReadOptions
from kwiresniff.errors import KwiresniffError
from kwiresniff.index.forks import Forks
from kwiresniff.model import Sink

#: Seconds between two messages of how far the capture is.
TELL_S: Final = 0.25


class Shown(NamedTuple):
    """What the screen leaves behind: ``exchanges`` that were found, the tabs at the end, problems in lines."""

    exchanges: int
    was_interrupted: bool
    report: Reported | None
    problems: tuple[str, ...]
    problem_count: int


class Setting(NamedTuple):
    """What the screen begins with. ``by`` are the dimensions of the statistics."""

    folder: str
    name: str
    options: ReadOptions
    tab: str
    by: tuple[str, ...]


def is_installed() -> bool:
    """Whether the extra ``browse`` is."""
    from importlib.util import find_spec

    return find_spec("textual") is not None


class Screen:
    """The other process, as the one that captures sees it; forked at once, before there are threads."""

    def __init__(self, setting: Setting, live: LiveCapture, spool: SpoolWriter) -> None:
        self._live = live
        self._spool = spool
        self._told = 0.0
        self._socket, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        self._process = os.fork()
        if self._process == 0:
            try:
                os.closerange(3, theirs.fileno())  # what captures, above all
                os.closerange(theirs.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
                _show(setting, _Capturing(theirs))
            finally:
                os._exit(0)
        theirs.close()
        self._pipe = self._socket.makefile("rwb")

    def poll(self) -> None:
        """Tells how far the capture is, when it is time, and ends it where the screen has asked for that or ended."""
        now = time.monotonic()
        if now - self._told >= TELL_S and select.select([], [self._socket], [], 0)[1]:
            self._told = now
            self._send(self._captured())
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:  # it has ended without a word
            pass
        self._live.stop()

    def end(self) -> Shown | None:
        """Waits for the screen to end; None where it ended without a word. Raises KwiresniffError where it failed."""
        self._send(self._captured())
        try:
            while True:
                message = pickle.load(self._pipe)
                if isinstance(message, KwiresniffError):
                    raise message
                if isinstance(message, Shown):
                    return message
        except (EOFError, pickle.UnpicklingError, OSError):
            return None
        finally:
            self.close()

    def close(self) -> None:
        """Ends the screen, if it has not ended, and waits for it."""
        if self._process:
            self._pipe.close()
            self._socket.close()
            os.waitpid(self._process, 0)
            self._process = 0

    def _captured(self) -> Captured:
        return Captured(self._live.packets, self._live.dropped - self._live.passed_over, self._spool.given_up)

    def _send(self, *messages: object) -> None:
        with suppress(OSError):
            for message in messages:
                pickle.dump(message, self._pipe)
            self._pipe.flush()


@contextmanager
def started(live: LiveCapture, options: ReadOptions, tab: str, by: tuple[str, ...]) -> Iterator[Screen]:
    """The screen of a capture that is about to begin, which begins with a ``tab``; see ``Setting``."""
    folder = tempfile.mkdtemp(prefix="kwiresniff-")
    try:
        screen = Screen(Setting(folder, live.files[0], options, tab, by), live, live.spool_to(folder))
        try:
            yield screen
        finally:
            screen.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def capture(live: LiveCapture, source: EventSource, screen: Screen, *, is_read: bool) -> tuple[bool, Shown | None]:
    """Captures until that ends or the screen does; whether nobody interrupted it, and what the screen leaves behind.

    With ``is_read`` ``source`` is read, too, for what was observed of it.
    """
    live.on_pause = screen.poll
    if is_read:
        finished = source.read(Sink(), live.stop)
    else:
        finished = uninterrupted(lambda: _drain(live), WholeEvents(Sink()), live.stop)
    live.close()
    shown = screen.end()
    return finished and not (shown is not None and shown.was_interrupted), shown


def _drain(live: LiveCapture) -> None:
    for _ in live:
        pass


class _Capturing:
    """The process that captures, as the screen sees it."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = ours
        self._pipe = ours.makefile("rwb")

    def receive(self) -> Captured:
        try:
            message = pickle.load(self._pipe)
        except (pickle.UnpicklingError, OSError):
            raise EOFError from None
        if not isinstance(message, Captured):
            raise EOFError
        return message

    def stop(self) -> None:
        self.tell("stop")

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)

    def tell(self, message: object) -> None:
        """Sends it a message."""
        with suppress(OSError):
            pickle.dump(message, self._pipe)
            self._pipe.flush()


def _show(setting: Setting, capturing: _Capturing) -> None:
    """The other process: shows the screen, and sends what it leaves behind."""
    forks = Forks()
    from kwiresniff.browse.live_app import LiveApp
    from kwiresniff.cli.browse import indexing, is_dark, model_of
    from kwiresniff.cli.index_job import checked_filter

    options = setting.options
    message: Shown | KwiresniffError
    try:
        model, jobs = model_of((setting.folder,), options._replace(filter=None, limit=None), Captured())
        model.files = [setting.name]
        app = LiveApp(
            model,
            jobs,
            checked_filter,
            indexing(jobs, forks),
            forks,
            capturing,
            limit=options.limit,
            expression=options.filter or "",
            tab=setting.tab,
            by=setting.by,
            dark=is_dark(),
        )
        app.run()
        found = len(model.index) + model.index.left_out
        problems = model.progress.problem_count
        message = Shown(found, app.was_interrupted, app.report, tuple(model.problems), problems)
    except KwiresniffError as error:
        message = error
    except Exception as error:
        message = KwiresniffError(f"the screen failed: {type(error).__name__}: {error}; --no-live does without it")
    capturing.tell(message)
