"""``sniff`` on a terminal: the program of ``browse`` over the traffic of the loopback interface."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.replay import Conversation, conversations, listener, say
from tests.support.sniffing import FIRST_LOOK, Sniffer, is_listening, replay
from tests.support.terminals import PATIENCE_S, read_until, started

#: Control sequences of xterm that lead to the alternate screen and back.
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
#: The id of the cluster in the recording.
CLUSTER = b"a3dpcmVzbmlmZi1kZW1vMQ"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the screen keeps its packets, for whoever the capture is read by."""
    with tempfile.TemporaryDirectory(prefix="screen-") as name:
        os.chmod(name, 0o777)
        monkeypatch.setenv("TMPDIR", name)
        yield Path(name)


def listening(pid: int) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_listening(pid) and time.monotonic() < end:
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.capturing
@pytest.mark.parametrize(("key", "code"), [("q", 0), ("\x03", 130)])
def test_it_comes_up_is_left_by_a_key_and_leaves_its_tables_and_nothing_else(folder: Path, key: str, code: int) -> None:
    """The packets that it kept are the unprivileged user's alone, and gone at the end."""
    with listener() as server:
        process, terminal = started("sniff", "-i", "lo", "--port", str(server.getsockname()[1]), "-o", "stats")
        seen = read_until(terminal, "in flight")
        assert ENTER in seen
        (kept,) = folder.iterdir()
        assert kept.stat().st_mode & 0o777 == 0o700 and kept.stat().st_uid != 0
        listening(process.pid)
        replay(server, FIRST_LOOK)
        read_until(terminal, "OffsetCommit")
        os.write(terminal, key.encode())
        left = read_until(terminal, "packets dropped\r\n").rpartition(LEAVE)
        assert process.wait(PATIENCE_S) == code
        os.close(terminal)
    assert LEAVE in left[1] and "OffsetCommit" in left[2] and "25 exchanges" in left[2]
    assert list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.capturing
@pytest.mark.parametrize("bound", ["--count", "--limit", "--duration", "SIGTERM"])
def test_it_ends_with_the_capture_and_what_was_asked_for_is_written(folder: Path, bound: str, tmp_path: Path) -> None:
    """By a number of packets or exchanges, a time, or a signal; -w keeps the packets meanwhile."""
    tmp_path.chmod(0o777)
    value = {"--count": ["--count", "60"], "--limit": ["--limit", "5"], "--duration": ["--duration", "20"]}
    out = tmp_path / "kept.pcap"
    with listener() as server:
        port = str(server.getsockname()[1])
        process, terminal = started(
            "sniff", "-i", "lo", "--port", port, "--live", "-w", str(out), *value.get(bound, [])
        )
        read_until(terminal, "in flight")
        listening(process.pid)
        replay(server, FIRST_LOOK)
        if bound == "SIGTERM":
            read_until(terminal, "25 exchanges")
            process.send_signal(signal.SIGTERM)
        left = read_until(terminal, "packets dropped\r\n").rpartition(LEAVE)[2]
        assert process.wait(PATIENCE_S) == (130 if bound == "SIGTERM" else 0)
        os.close(terminal)
    assert out.stat().st_size > 5_000
    assert ("60 packets" if bound == "--count" else "exchanges") in left
    assert list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.capturing
def test_a_file_is_proposed_that_the_user_can_write_who_it_has_become(folder: Path) -> None:
    """In the folder for temporary files, because the current one is root's; nobody else can read it."""
    with listener() as server:
        process, terminal = started(
            "sniff", "-i", "lo", "--port", str(server.getsockname()[1]), "-Z", "nobody", "--live"
        )
        read_until(terminal, "in flight")
        listening(process.pid)
        replay(server, FIRST_LOOK)
        read_until(terminal, "25 exchanges")
        os.write(terminal, b"s")
        read_until(terminal, "as JSON lines to")
        os.write(terminal, b"\r")
        read_until(terminal, "written to")
        (out,) = folder.glob("exchanges-*.jsonl")
        assert out.stat().st_mode & 0o777 == 0o600 and out.stat().st_uid != 0
        assert len(out.read_text().splitlines()) == 25
        os.write(terminal, b"q")
        read_until(terminal, "packets dropped\r\n")
        assert process.wait(PATIENCE_S) == 0
        os.close(terminal)


@pytest.mark.slow
@pytest.mark.capturing
def test_without_the_extra_it_prints_lines_and_says_what_would_show_more(tmp_path: Path) -> None:
    """One line on stderr; the packages of the screen are nowhere."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['textual'] = None\n")
    with listener() as server:
        arguments = ("sniff", "-i", "lo", "--port", str(server.getsockname()[1]), "-Z", "root", "-o", "stats")
        process, terminal = started(*arguments, PYTHONPATH=str(tmp_path))
        seen = read_until(terminal, "listening on")
        assert 'pip install "kwiresniff[browse]"' in seen and ENTER not in seen
        listening(process.pid)
        replay(server, FIRST_LOOK)
        assert "OffsetCommit" in read_until(terminal, "OffsetCommit")
        process.send_signal(signal.SIGINT)
        read_until(terminal, "packets dropped")
        assert process.wait(PATIENCE_S) == 130
        os.close(terminal)


def starting_with(title: str, sniffer: Sniffer) -> list[str]:
    return [line for line in list(sniffer.out) if line.startswith(title)]


def elsewhere(said: bytes) -> bytes:
    """Bytes of the recording as another cluster's, whose broker has another address."""
    return said.replace(CLUSTER, CLUSTER[::-1]).replace(b"10.9.0.1", b"10.9.0.9")


@pytest.mark.slow
@pytest.mark.capturing
@pytest.mark.parametrize(("form", "title"), [("stats", "api "), ("topics", "orders"), ("doctor", "info    deploy")])
def test_into_a_pipe_tables_are_printed_again_while_exchanges_come(
    start: Callable[..., Sniffer], form: str, title: str
) -> None:
    """Only where there is anything new."""
    with listener() as server:
        sniffer = start("sniff", "-i", "lo", "--port", str(server.getsockname()[1]), "-o", form)
        sniffer.wait_for(lambda: any("listening on" in line for line in list(sniffer.err)))
        listening(sniffer.process.pid)
        for times in (1, 2):
            replay(server, FIRST_LOOK)
            sniffer.wait_for(
                lambda times=times: len(starting_with(title, sniffer)) >= times  # type: ignore[misc]
            )
        sniffer.interrupt()
    assert starting_with(title, sniffer)


@pytest.mark.slow
@pytest.mark.capturing
def test_topics_of_one_name_in_two_clusters_are_two_blocks(start: Callable[..., Sniffer]) -> None:
    """Each has what was read of its own cluster, and they are listed before brokers have told their clusters."""
    with listener() as server, listener() as other:
        ports = [str(one.getsockname()[1]) for one in (server, other)]
        sniffer = start("sniff", "-i", "lo", "--port", ports[0], "--port", ports[1], "-o", "topics")
        sniffer.wait_for(lambda: any("listening on" in line for line in list(sniffer.err)))
        listening(sniffer.process.pid)
        for is_named in (False, True):
            for one in conversations(FIRST_LOOK):
                if any(CLUSTER in said for forth, said in one.turns if not forth) is is_named:
                    say(server, one)
                    say(other, Conversation([(forth, elsewhere(said)) for forth, said in one.turns]))
            title = "orders" if is_named else ""
            sniffer.wait_for(lambda title=title: len(starting_with(title, sniffer)) >= 2)  # type: ignore[misc]
        sniffer.interrupt()
    last = starting_with("orders", sniffer)[-2:]
    assert sorted(line.split()[2] for line in last) == sorted(name.decode() for name in (CLUSTER, CLUSTER[::-1]))
    assert all("out 5 records 255 B" in line for line in last)


def test_live_without_a_terminal_is_a_mistake_of_usage(start: Callable[..., Sniffer]) -> None:
    """Told before anything is captured."""
    sniffer = start("sniff", "-i", "lo", "--live")
    assert sniffer.end() == 2
    assert "--live needs a terminal" in sniffer.err[-1]
