"""The statistics that are refreshed in place, and their keys."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwiresniff.analysis.stats import StatsTable
from kwiresniff.capture import open_captures
from kwiresniff.cli.live import LiveView
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.reading import Reading
from kwiresniff.model import Exchange, Problem, Segment
from tests.sniff.replay import conversations, listener, say
from tests.sniff.test_sniff import _is_listening

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
FIRST_LOOK = str(CAPTURES / "first-look.pcap")


class Recorded:
    """A capture file in the place of a live capture."""

    def __init__(self, path: str) -> None:
        self._captures = open_captures([path])
        self.files = ["lo"]
        self.problems: list[Problem] = []
        self.other_packets: dict[str, int] = {}
        self.total_bytes = None
        self.dropped = 1_234
        self.stopped = False

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._captures)

    @property
    def packets(self) -> int:
        return self._captures.packets

    def position(self) -> int:
        return self._captures.position()

    def close(self) -> None:
        self._captures.close()

    def stop(self) -> None:
        self.stopped = True


class Attended:
    """A view of first-look.pcap with somebody at the keys."""

    def __init__(self) -> None:
        self.live = Recorded(FIRST_LOOK)
        self.reading = Reading(self.live, ReadOptions(), "errors", topics=True)
        self.exchanges = [event for event in self.reading.events() if isinstance(event, Exchange)]
        self._keys = ""
        self.draws = 0
        by = (("api",), ("client",), ("topic",))
        self.view = LiveView(self.live, self.reading, by, self._typed, self._show)  # type: ignore[arg-type]
        self.count()

    def count(self) -> None:
        for exchange in self.exchanges:
            self.view.add(exchange)

    def type(self, keys: str) -> None:
        self._keys = keys
        self.view.pause()

    def lines(self, width: int = 110, height: int = 30) -> list[str]:
        return self.view.screen(width, height).plain.split("\n")

    def row(self, key: str) -> list[str]:
        return next(line for line in self.lines() if line.startswith(key)).split()

    def _typed(self) -> str:
        keys, self._keys = self._keys, ""
        return keys

    def _show(self, view: LiveView) -> None:
        self.draws += 1


def test_the_screen_has_what_stats_has() -> None:
    screen = Attended()
    table = StatsTable(["api"])
    for exchange in screen.exchanges:
        table.add(exchange)
    for row in table.rows()[:3]:
        assert screen.row(row.key[0])[1] == str(row.count)
    text = "\n".join(screen.lines())
    assert f"{len(screen.exchanges)} exchanges" in text
    assert "1,234 packets dropped" in text
    assert "billing" in text
    assert "orders" in text


@pytest.mark.parametrize(("width", "height"), [(40, 10), (80, 24), (200, 60)])
def test_the_screen_fits_the_terminal(width: int, height: int) -> None:
    lines = Attended().lines(width, height)
    assert len(lines) == height
    assert max(map(len, lines)) <= width
    assert "q quit" in lines[-1] or width < 60


def test_s_sorts_by_the_next_column() -> None:
    screen = Attended()
    assert "by rate" in screen.lines()[0]
    screen.type("ss")
    assert "by errors" in screen.lines()[0]
    errors = {row.key[0]: row.errors for row in screen.view.tables()[0].rows()}
    assert screen.lines()[4].split()[0] == max(errors, key=lambda api: errors[api])


def test_f_filters_what_is_counted_from_then_on() -> None:
    screen = Attended()
    screen.type("fapi == Fetcg\x7fh")
    assert screen.lines()[-1] == "filter: api == Fetch_"
    screen.type("\r")
    screen.count()
    fetches = sum(exchange.api == "Fetch" for exchange in screen.exchanges)
    assert f"  {fetches} exchanges" in screen.lines()[1]
    assert [row.key for row in screen.view.tables()[0].rows()] == [("Fetch",)]


def test_a_filter_that_is_not_understood_changes_nothing() -> None:
    screen = Attended()
    screen.type("fapi ==\r")
    assert "at column" in screen.lines()[-1]
    screen.type("frequest.body.acks == 0\r")
    assert "needs message bodies" in screen.lines()[-1]
    assert f"  {len(screen.exchanges)} exchanges" in screen.lines()[1]


def test_p_pauses_the_screen_and_q_quits(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Attended()
    now = time.monotonic()
    for seconds, keys, draws in ((5, "", 1), (10, "p", 2), (15, "", 2), (20, "p", 3), (25, "", 4)):
        monkeypatch.setattr(time, "monotonic", lambda seconds=seconds: now + seconds)
        screen.type(keys)
        assert screen.draws == draws
    screen.type("q")
    assert screen.live.stopped


def test_enter_lists_the_last_exchanges() -> None:
    screen = Attended()
    screen.type("\r")
    assert "Fetch v18" in "\n".join(screen.lines())


@pytest.mark.capturing
def test_the_view_comes_up_on_a_terminal_and_leaves_its_tables_behind() -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    with listener() as server:
        command = [sys.executable, "-m", "kwiresniff", "sniff", "-i", "lo", "--port", str(server.getsockname()[1])]
        environment = {**os.environ, "TERM": "xterm-256color"}
        with subprocess.Popen(
            [*command, "-o", "stats"], stdin=slave, stdout=slave, stderr=slave, env=environment
        ) as process:
            os.close(slave)
            _read_until(master, b"q quit")
            while not _is_listening(process.pid):
                time.sleep(0.02)
            for conversation in conversations(FIRST_LOOK):
                say(server, conversation)
            assert b"Heartbeat" not in _read_until(master, b"OffsetCommit")
            os.write(master, b"q")
            seen = _read_until(master, b"packets dropped\r\n")
            assert process.wait() == 0
    os.close(master)
    assert b"\x1b[?1049l" in seen  # the screen from before is back
    assert b"OffsetCommit" in seen.rpartition(b"\x1b[?1049l")[2]


def _read_until(master: int, wanted: bytes, patience_seconds: float = 60.0) -> bytes:
    seen, until = b"", time.monotonic() + patience_seconds
    while wanted not in seen:
        assert time.monotonic() < until, seen[-2000:]
        if select.select([master], [], [], 0.1)[0]:
            seen += os.read(master, 65_536)
    return seen
