"""``sniff --keylog``: TLS between real sockets, decrypted while it passes and while its key log grows."""

from __future__ import annotations

import shutil
import ssl
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.paths import CAPTURES
from tests.support.replay import conversations, listener, say, say_in_tls
from tests.support.sample import mostly_slow
from tests.support.sniffing import FIRST_LOOK, Sniffer, capturing, content, objects, read

Start = Callable[..., Sniffer]
NOT_THERE = "is not there yet; TLS is decrypted once clients write keys to it"


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
    (problem,) = [one for one in objects(sniffer.out, "problem") if one["code"] != "not_kafka"]
    lacking = "CLIENT_RANDOM" if version is ssl.TLSVersion.TLSv1_2 else "CLIENT_TRAFFIC_SECRET_0"
    assert problem["code"] == "not_decrypted" and f"the keys lack {lacking} of client random" in problem["message"]


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


@pytest.mark.capturing
def test_an_interrupt_loses_nothing_that_was_captured(start: Start, tmp_path: Path) -> None:
    """Not even what waits for the keys that come last."""
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


@pytest.mark.capturing
def test_what_is_no_key_log_is_one_line(start: Start, tmp_path: Path) -> None:
    sniffer = start("sniff", "-i", "lo", "--keylog", FIRST_LOOK, "-Z", "root")
    assert sniffer.end() == 1
    assert len(sniffer.err) == 1
    assert "first-look.pcap is not a TLS key log" in sniffer.err[0]
