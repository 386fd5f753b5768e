"""``sniff --keylog``: TLS between real sockets, decrypted while it passes and while its key log grows."""

from __future__ import annotations

import os
import shutil
import ssl
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kwiresniff.capture.keylog import GrowingKeyLog
from kwiresniff.errors import CaptureError
from tests.support.paths import CAPTURES
from tests.support.replay import conversations, listener, say, say_in_tls
from tests.support.sample import mostly_slow
from tests.support.sniffing import FIRST_LOOK, Sniffer, capturing, content, objects, read

Start = Callable[..., Sniffer]
needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None and not os.environ.get("CI"), reason="tshark is not installed"
)
NOT_THERE = "is not there yet; TLS is decrypted once clients write keys to it"


@needs_tshark
@pytest.mark.capturing
@pytest.mark.parametrize("version", mostly_slow([ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2]))
def test_what_passes_in_tls_is_shown_as_it_passes(start: Start, tmp_path: Path, version: ssl.TLSVersion) -> None:
    """The key log is not there when it starts; plain and undecryptable connections pass at the same time."""
    capture, keylog = str(CAPTURES / "java-produce.pcap"), tmp_path / "keys.log"
    said = conversations(capture)
    expected = Counter(map(content, objects(read(capture))))
    with listener() as server:
        arguments = ["--port", str(server.getsockname()[1]), "-o", "jsonl", "--keylog", str(keylog), "-Z", "root"]
        sniffer = start("sniff", "-i", "lo", *arguments)
        capturing(sniffer)
        sniffer.wait_for(lambda: bool(sniffer.err))
        say_in_tls(server, conversations(FIRST_LOOK)[0], version, None)
        say(server, conversations(FIRST_LOOK)[0])
        sniffer.wait_for(lambda: len(objects(list(sniffer.out))) == 2)
        for one in said:
            say_in_tls(server, one, version, str(keylog))
        # All of it comes while the sniffing goes on, though nothing more passes.
        sniffer.wait_for(lambda: len(objects(list(sniffer.out))) >= expected.total() + 2)
        assert sniffer.interrupt() == 130, sniffer.err
    assert sniffer.err[0] == f"kwiresniff: {keylog} {NOT_THERE}"
    assert Counter(map(content, objects(sniffer.out)[2:])) == expected
    connections = objects(sniffer.out, "connection")
    assert [one["tls"]["decrypted"] for one in connections if one["tls"]].count(True) == len(said)
    assert [one["tls"]["decrypted"] for one in connections if one["tls"]].count(False) == 1
    assert {one["tls"]["version"] for one in connections if one["tls"]} == {version.name.replace("_", ".")}
    assert not [one for one in objects(sniffer.out, "problem") if one["code"] != "not_kafka"]


@needs_tshark
@pytest.mark.slow
@pytest.mark.capturing
def test_sessions_that_a_java_agent_logs_by_their_id_are_decrypted(start: Start, tmp_path: Path) -> None:
    """Of TLS 1.2 it does not log the client's random, but the id that the broker gave the session."""
    capture, recorded = str(CAPTURES / "java-tls.pcap"), CAPTURES / "keys" / "java-tls.log"
    expected = Counter(map(content, objects(read(capture, "--keylog", str(recorded)))))
    keylog = tmp_path / "keys.log"
    with listener() as server:
        arguments = ["--port", str(server.getsockname()[1]), "-o", "jsonl", "--keylog", str(keylog), "-Z", "root"]
        sniffer = start("sniff", "-i", "lo", *arguments)
        capturing(sniffer)
        for one in conversations(capture):
            say(server, one)
        shutil.copy(recorded, keylog)
        sniffer.wait_for(lambda: len(objects(list(sniffer.out))) >= expected.total())
        assert sniffer.interrupt() == 130, sniffer.err
    assert Counter(map(content, objects(sniffer.out))) == expected
    seen = Counter((one["tls"]["version"], one["tls"]["decrypted"]) for one in objects(sniffer.out, "connection"))
    assert seen == {("TLSv1.2", True): 4, ("TLSv1.3", True): 4}


@needs_tshark
@pytest.mark.capturing
def test_an_interrupt_loses_nothing_that_was_captured(start: Start, tmp_path: Path) -> None:
    """Not even what is still on its way through tshark."""
    keylog = tmp_path / "keys.log"
    said = conversations(FIRST_LOOK)
    with listener() as server:
        arguments = ["--port", str(server.getsockname()[1]), "-o", "jsonl", "--keylog", str(keylog), "-Z", "root"]
        sniffer = start("sniff", "-i", "lo", *arguments)
        capturing(sniffer)
        for one in said:
            say_in_tls(server, one, ssl.TLSVersion.TLSv1_3, str(keylog))
        assert sniffer.interrupt() == 130, sniffer.err
    assert Counter(map(content, objects(sniffer.out))) == Counter(map(content, objects(read(FIRST_LOOK))))


@needs_tshark
@pytest.mark.capturing
def test_what_is_no_key_log_is_one_line(start: Start, tmp_path: Path) -> None:
    sniffer = start("sniff", "-i", "lo", "--keylog", FIRST_LOOK, "-Z", "root")
    assert sniffer.end() == 1
    assert len(sniffer.err) == 1
    assert "first-look.pcap is not a TLS key log" in sniffer.err[0]


RANDOM, OTHER = "ab" * 32, "cd" * 32


def line(label: str, random: str = RANDOM) -> str:
    return f"{label} {random} {'0' * 64}\n"


def test_keys_count_once_all_of_them_are_there(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    log = GrowingKeyLog(str(path))
    assert not log.is_there
    session = bytes.fromhex(RANDOM)
    with path.open("w") as file:
        for label in ("SERVER_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"):
            file.write(f"# comment\n{line(label)}")
        last = line("CLIENT_TRAFFIC_SECRET_0")
        for part, complete in ((last[:40], False), (last[40:], True)):
            file.write(part)
            file.flush()
            log.poll()
            assert log.has(session) is complete
    assert not log.has(bytes.fromhex(OTHER))


def test_a_session_is_known_by_its_id_too(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.write_text(
        f"RSA Session-ID:{RANDOM.upper()} Master-Key:{'0' * 96}\nRSA Session-ID:abc Master-Key:{'0' * 96}\n"
    )
    log = GrowingKeyLog(str(path))
    log.poll()
    assert log.has(bytes.fromhex(OTHER), bytes.fromhex(RANDOM))
    assert not log.has(bytes.fromhex(OTHER), bytes.fromhex(OTHER))
    assert not log.has(b"", b"")


def test_a_key_log_that_is_begun_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.write_text(line("CLIENT_RANDOM") * 3)
    log = GrowingKeyLog(str(path))
    log.poll()
    assert log.has(bytes.fromhex(RANDOM))
    path.write_text(line("CLIENT_RANDOM", OTHER))
    log.poll()
    assert log.has(bytes.fromhex(OTHER))
    path.unlink()
    log.poll()


def test_a_folder_is_no_key_log(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="directory"):
        GrowingKeyLog(str(tmp_path))


@pytest.mark.parametrize("begun", ["", "# TLS secrets log file, generated by OpenSSL / Python\n", "\n#\nCLIENT_RAN"])
def test_a_key_log_that_was_only_begun_is_one(tmp_path: Path, begun: str) -> None:
    """Python and OpenSSL write a comment first, and the first key when there is a session."""
    path = tmp_path / "keys.log"
    path.write_text(begun)
    log = GrowingKeyLog(str(path))
    random = bytes(range(32))
    path.write_text(f"{begun.rpartition(chr(10))[0]}\nCLIENT_RANDOM {random.hex()} {'ab' * 48}\n")
    log.poll()
    assert log.has(random)


def test_a_whole_line_of_something_else_is_no_key_log(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("# notes\nbuy milk\n")
    with pytest.raises(CaptureError, match="is not a TLS key log"):
        GrowingKeyLog(str(path))
