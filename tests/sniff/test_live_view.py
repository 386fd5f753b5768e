"""The statistics that are refreshed in place, and their keys."""

from __future__ import annotations

import fcntl
import io
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

from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.analysis.stats import StatsTable
from kwiresniff.base.needs import Needs
from kwiresniff.base.tls_secrets import TlsSecrets
from kwiresniff.capture import open_captures
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.keyboard import split_keys
from kwiresniff.cli.live import LiveView
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.recent import LAST_BYTES, LastExchanges
from kwiresniff.model import Connection, Exchange, Message, Problem, Segment
from kwiresniff.render.line_wrapping import cells
from kwiresniff.render.live_screen import rows_per_panel
from kwiresniff.render.screen import Screen
from tests.support.replay import conversations, listener, say
from tests.support.sniffing import is_listening

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
FIRST_LOOK = str(CAPTURES / "first-look.pcap")


class Recorded:
    """A capture file in the place of a live capture."""

    def __init__(self, path: str) -> None:
        self._captures = open_captures([path])
        self.files = ["lo"]
        self.problems: list[Problem] = []
        self.other_packets: dict[str, int] = {}
        self.total_bytes: int | None = None
        self.tls_secrets = TlsSecrets()
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
        self.reading = EventSource(self.live, ReadOptions(), Needs("errors", topics=True))
        self.exchanges: list[Exchange] = []
        self.reading.read(CallingSink(self.exchanges.append))
        self._keys = ""
        self.draws = 0
        by = (("api",), ("client",), ("topic",))
        self.view = LiveView(self.live, self.reading, by, self._typed, self._show)  # type: ignore[arg-type]
        self.count()
        self.lines()  # keys act on what is on the screen

    def count(self) -> None:
        for exchange in self.exchanges:
            self.view.add(exchange)

    def type(self, keys: str) -> None:
        self._keys = keys
        self.view.pause()

    def lines(self, width: int = 110, height: int = 30) -> list[str]:
        return self.view.screen(width, height)

    def row(self, key: str) -> list[str]:
        return next(line for line in self.lines(95) if line[2:].startswith(key)).split()

    def chosen(self, height: int = 30) -> list[str]:
        return [line[2:] for line in self.lines(110, height) if line.startswith("▸ ")]

    def _typed(self) -> list[str]:
        keys, self._keys = self._keys, ""
        return split_keys(keys)

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


@pytest.mark.parametrize(("width", "height"), [(1, 1), (10, 3), (30, 6), (40, 10), (80, 24), (200, 60)])
@pytest.mark.parametrize(
    "keys", ["", "\x1b[B\r", "\x1b[B\r\r", "\t", "f"], ids=["tables", "list", "tree", "zoom", "filter"]
)
def test_the_screen_fits_the_terminal(width: int, height: int, keys: str) -> None:
    screen = Attended()
    screen.type(keys)
    lines = screen.lines(width, height)
    assert len(lines) == height
    if width >= 40:  # nothing can be laid out on less; the terminal cuts it
        assert max(map(cells, lines)) <= width
    assert keys == "f" or "q quit" in lines[-1] or width < 80


@pytest.mark.parametrize(
    ("height", "totals", "rows"),
    [
        (24, [100, 100, 100], [7, 3, 3]),
        (24, [100, 100, 1], [9, 3, 1]),
        (24, [2, 100, 1], [2, 10, 1]),
        (24, [1, 1, 1], [1, 1, 1]),
        (24, [100], [17]),
        (7, [100, 100], [1, 0]),
        (1, [100, 100], [1, 0]),
    ],
)
def test_tables_share_the_screen_by_what_they_need(height: int, totals: list[int], rows: list[int]) -> None:
    assert rows_per_panel(height, totals) == rows


def test_on_a_usual_screen_drops_are_in_sight() -> None:
    assert "1,234 packets dropped" in Attended().lines(80, 24)[1]


def test_s_sorts_by_the_next_column() -> None:
    screen = Attended()
    assert "by rate" in screen.lines()[0]
    screen.type("ss")
    assert "by errors" in screen.lines()[0]
    errors = {row.key[0]: row.errors for row in screen.view.tables()[0].rows()}
    assert screen.lines()[5].split()[0] == max(errors, key=lambda api: errors[api])


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


def test_enter_on_a_row_lists_its_exchanges_and_those_that_follow() -> None:
    screen = Attended()
    screen.type("\x1b[B\x1b[B")
    (row,) = screen.chosen()
    api, count = row.split()[0], int(row.split()[1])
    screen.type("\r")
    lines = screen.lines()
    assert lines[2] == f"last exchanges with api {api}"
    listed = [line for line in lines[4:-1] if line.strip()]
    assert len(listed) == count
    assert all(f" {api} v" in line for line in listed)
    screen.count()
    assert len([line for line in screen.lines()[4:-1] if line.strip()]) == 2 * count
    screen.type("\x1b")
    assert "q quit" in screen.lines()[-1]
    assert screen.chosen()[0].startswith(api)


def test_a_list_somebody_chooses_from_stands_still_and_opens_the_chosen_exchange() -> None:
    screen = Attended()
    screen.type("\r\x1b[A")
    before, chosen = screen.lines(), screen.chosen()
    screen.count()
    assert screen.lines()[3:] == before[3:]
    screen.type("\r")
    tree = screen.lines()
    assert tree[0].split()[:3] == chosen[0].split()[1:4]  # mark, API, version
    assert any("├─ request" in line for line in tree)
    assert any("└─ response" in line for line in tree)
    assert not any("not decoded" in line for line in tree)


def test_a_paused_list_is_the_one_that_is_chosen_from() -> None:
    """What was read on the screen is still there when somebody goes for it."""
    screen = Attended()
    screen.type("\r")
    screen.type("p")
    before = [line[2:] for line in screen.lines()[4:-1]]
    for exchange in screen.exchanges[:7]:
        screen.view.add(exchange)
    screen.type("\x1b[A")
    assert [line[2:] for line in screen.lines()[4:-1]] == before
    assert screen.chosen() == [[line for line in before if line][-2]]
    screen.type("p")
    assert [line[2:] for line in screen.lines()[4:-1]] != before


def test_what_is_looked_at_is_counted_once() -> None:
    """Listing and opening decode copies."""
    screen = Attended()
    errors = [list(exchange.errors) for exchange in screen.exchanges]
    screen.type("\r")
    screen.lines()
    screen.type("\r")
    screen.lines()
    assert [exchange.errors for exchange in screen.exchanges] == errors


def test_a_long_tree_scrolls_to_its_end_and_no_further() -> None:
    screen = Attended()
    screen.type("\r\r")
    whole = screen.lines(110, 200)
    end = max(number for number, line in enumerate(whole[:-1]) if line)
    screen.type("\x1b[6~" * 20)
    screen.lines(110, 6)
    assert screen.lines(110, 6)[4] == whole[end]
    screen.type("g")
    assert screen.lines(110, 6)[0] == whole[0]


def test_arrows_go_on_to_the_next_table() -> None:
    screen = Attended()
    apis = len(screen.view.tables()[0])
    screen.lines(110, 60)
    for _ in range(apis):
        screen.type("j")
        screen.lines(110, 60)
    assert "billing" not in screen.chosen(60)[0]
    screen.type("j")
    assert screen.chosen(60)[0].split()[0] in ("billing", "shop", "deploy")
    screen.type("k")
    assert screen.chosen(60)[0].split()[0] not in ("billing", "shop", "deploy")


def test_tab_shows_one_table_which_scrolls() -> None:
    screen = Attended()
    screen.type("\t")
    text = "\n".join(screen.lines(110, 9))
    assert "  api (" in text
    assert "billing" not in text
    seen: set[str] = set()
    for _ in range(len(screen.view.tables()[0]) + 1):
        screen.type("j")
        seen.update(line.split()[0] for line in screen.chosen(9))
    assert {row.key[0] for row in screen.view.tables()[0].rows()} <= seen
    screen.type("\t")
    assert "billing" in "\n".join(screen.lines(110, 9))
    screen.type("\x1b[Z\x1b[Z")
    text = "\n".join(screen.lines())
    assert "  api" in text
    assert "  topic" in text


def test_rates_and_latencies_are_those_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Attended()
    now = time.monotonic()
    for second in range(1, 8):  # nothing comes any more
        monkeypatch.setattr(time, "monotonic", lambda second=second: now + second)
        screen.lines()
    slow = [one for one in screen.exchanges if one.api == "Metadata" and one.response and one.request]
    for exchange in slow:
        exchange.response.first_ns = exchange.request.last_ns + 2_000_000_000  # type: ignore[union-attr]
        exchange.waiting = ""
        screen.view.add(exchange)
    monkeypatch.setattr(time, "monotonic", lambda: now + 8)
    per_second, count, *latencies = screen.row("Metadata")[1:]
    assert per_second == f"{len(slow) / 5:.1f}"
    assert int(count) == 2 * len(slow)
    assert latencies[0] == "2.00"  # s; half of all Metadata were answered in less than a millisecond


def test_the_list_is_bounded_by_what_its_messages_hold() -> None:
    kept = LastExchanges()
    for number in range(100):
        request = Message(1, number, 1, number, LAST_BYTES // 10, b"")
        kept.add(Exchange(Connection(1, "c:1", "b:1"), 3, 9, number, "a", request, None))
    assert [one.correlation_id for one in kept.newest(1000)] == list(range(90, 100))


def test_the_list_is_bounded_by_what_decoded_bodies_hold() -> None:
    """A topic of five bytes takes some hundreds as a dict; a message that is too large alone is kept undecoded."""
    kept = LastExchanges()
    for number in range(10):
        request = Message(1, number, 1, number, 1_000, b"")
        request.body = {"topics": [{"name": "x" * 1_000} for _ in range(4_000)]}
        kept.add(Exchange(Connection(1, "c:1", "b:1"), 3, 9, number, "a", request, None))
    bodies = [one.request.body for one in kept.newest(1000) if one.request is not None]
    assert 2 < len(bodies) < 9
    request.body = {"topics": [{"name": "x" * 1_000} for _ in range(40_000)]}
    kept.add(Exchange(Connection(1, "c:1", "b:1"), 3, 9, 10, "a", request, None))
    newest = kept.newest(1)[0]
    assert newest.correlation_id == 10
    assert newest.request is not None and newest.request.body is None


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("ab", ["a", "b"]),
        ("\x1b[A\x1b[Bq", ["up", "down", "q"]),
        ("\x1bOA\x1b[5~", ["up", "page up"]),
        ("\x1b", ["escape"]),
        ("\x1b[1;5C\x1b[15~x", ["x"]),
        ("\r\n\t\x7f", ["enter", "enter", "tab", "backspace"]),
        ("é€", ["é", "€"]),
    ],
)
def test_keys_that_are_no_characters_have_names(typed: str, keys: list[str]) -> None:
    assert split_keys(typed) == keys


def test_only_lines_that_have_changed_are_written() -> None:
    out = io.StringIO()
    with Screen(out) as screen:
        screen.show(["one", "two", "three"], 10, 3)
        written = len(out.getvalue())
        screen.show(["one", "2", "three"], 10, 3)
        assert out.getvalue()[written:] == "\x1b[2;1H2\x1b[K"
        written = len(out.getvalue())
        screen.show(["one", "2", "three"], 10, 3)
        assert len(out.getvalue()) == written
        screen.show(["one", "2"], 10, 2)  # another size: everything anew
        assert out.getvalue()[written:].startswith("\x1b[2J")
    assert out.getvalue().endswith("\x1b[?25h\x1b[?1049l")


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
            while not is_listening(process.pid):
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
