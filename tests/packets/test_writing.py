"""A capture that is written of chosen exchanges tells the same of each of them, and Wireshark reads it."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.export.json_objects import exchange_json
from kwiresniff.model import Connection, Exchange
from kwiresniff.packets import Context, Selection, Source, write_packets
from kwiresniff.session import Analyzer
from tests.support import capture_files, copies
from tests.support.command import Run
from tests.support.events import analyze_with
from tests.support.paths import CAPTURES

#: The path, and with it the parts of a wait, are measured by handshakes of other connections, which may be left out.
MEASURED_BY_OTHERS = ("queued_ns", "held_ns", "broker_ns", "path_ns")
QUICK = ["java-fetch.pcapng", "java-group-cooperative.pcap", "java-transactions.pcap", "sarama.pcap"]
ALL = sorted(
    str(path.relative_to(CAPTURES))
    for path in CAPTURES.rglob("*.pcap*")
    if path.name.endswith((".pcap", ".pcapng", ".xz")) and path.stat().st_size < 900_000
)
Told = dict[tuple[Any, ...], str]


def told(exchange: Exchange) -> str:
    """All that JSON says of an exchange, without numbers that count others."""
    found = exchange_json(exchange)
    del found["connection"]
    for name in MEASURED_BY_OTHERS if "path_ns" in found["timing"] else ():
        found["timing"].pop(name, None)
    for message in (found["request"], found["response"]):
        if message is not None:
            del message["first_packet"], message["last_packet"]
    return json.dumps(found, sort_keys=True, default=repr)


def without_waits(text: str) -> dict[str, Any]:
    """What is told of an exchange, without the parts of its wait."""
    found: dict[str, Any] = json.loads(text)
    for name in MEASURED_BY_OTHERS:
        found["timing"].pop(name, None)
    return found


def named(exchange: Exchange) -> tuple[Any, ...]:
    first = exchange.request or exchange.response
    assert first is not None
    return exchange.connection.client, exchange.connection.broker, exchange.correlation_id, first.first_ns


def sample(path: Path, share: float, out: Path) -> Told:
    """Writes the packets of a share of the exchanges, chosen at random, and returns what is told of these."""
    chance = random.Random(7)
    selection, chosen = Selection(), {}
    context = Context(selection)
    for event in analyze_with(Analyzer(Needs("records", sessions=True)), open_captures([str(path)])):
        if isinstance(event, Connection):
            context.on_connection(event)
        elif isinstance(event, Exchange):
            context.on_exchange(event)
            if chance.random() < share:
                context.add(event)
                selection.choose(event)
                chosen[named(event)] = told(event)
    write_packets(Source([str(path)]), selection, str(out))
    return chosen


def read(path: Path) -> Told:
    events = analyze_with(Analyzer(Needs("records")), open_captures([str(path)]))
    return {named(event): told(event) for event in events if isinstance(event, Exchange)}


@pytest.mark.parametrize("name", QUICK)
def test_what_is_told_of_chosen_exchanges_stays_the_same(name: str, tmp_path: Path) -> None:
    """Bodies, times, sizes, names of topics that are given by id, what fetch sessions are about."""
    chosen = sample(CAPTURES / name, 0.3, tmp_path / "out.pcapng")
    found = read(tmp_path / "out.pcapng")
    assert chosen
    assert {key: found.get(key) for key in chosen} == chosen


@pytest.mark.slow
def test_it_stays_the_same_in_all_recordings(tmp_path: Path) -> None:
    """All but one in a thousand: a large response behind a gap may be more than is searched for its beginning. Where
    packets are lost or out of order, the parts of other waits may be unknown, of five in a thousand.
    """
    count, wrong, waits = 0, [], []
    for number, name in enumerate(ALL):
        chosen = sample(CAPTURES / name, (0.05, 0.3)[number % 2], tmp_path / "out.pcapng")
        found = read(tmp_path / "out.pcapng")
        count += len(chosen)
        different = [key for key, text in chosen.items() if found.get(key) != text]
        lost = [key for key in different if key not in found or without_waits(found[key]) != without_waits(chosen[key])]
        wrong += [(name, key) for key in lost]
        waits += [(name, key) for key in different if key not in lost]
    assert count > 1_000
    assert len(wrong) <= count // 1_000, wrong
    assert len(waits) <= count // 200, waits


def tshark(path: Path, *options: str) -> list[str]:
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("tshark is not installed")
    done = subprocess.run([program, "-n", "-r", str(path), *options], capture_output=True, text=True, check=True)
    complaints = [line for line in done.stderr.splitlines() if "root" not in line]
    assert complaints == []
    return done.stdout.splitlines()


def test_wireshark_shows_what_each_exchange_was(kwiresniff: Run, tmp_path: Path) -> None:
    """The comment on the first packet of each of them, by which Wireshark filters, and what the doctor finds there."""
    out = tmp_path / "out.pcapng"
    done = kwiresniff("read", "-w", str(out), "-Y", "api == Produce and error", str(CAPTURES / "java-produce.pcap"))
    assert (done.code, done.out) == (0, "")
    assert done.err == f"kwiresniff: 1 exchange in 23 packets, written to {out}\n"
    comments = tshark(out, "-Y", "frame.comment", "-T", "fields", "-e", "frame.comment")
    assert comments == [
        "Produce v13, correlation id 5, latency 10.4 ms, error MESSAGE_TOO_LARGE",
        "finding: error message_too_large: too-large 10.9.0.2: MESSAGE_TOO_LARGE: sends batches larger than the broker "
        "takes",
    ]
    assert tshark(out, "-Y", 'frame.comment contains "MESSAGE_TOO_LARGE"', "-T", "fields", "-e", "frame.time_epoch")


@pytest.mark.parametrize("doubling", ["DNAT", "proxied"])
def test_comments_have_the_findings_of_the_doctor(doubling: str, kwiresniff: Run, tmp_path: Path) -> None:
    """Where each connection is in the capture twice, which the doctor counts once: no records are lost by that."""
    capture, out = tmp_path / "twice.pcap", tmp_path / "out.pcapng"
    segments = list(open_captures([str(CAPTURES / "java-produce.pcap")]))
    capture.write_bytes(capture_files.pcap(copies.DOUBLINGS[doubling](segments)))
    found = json.loads(kwiresniff("doctor", "-o", "json", str(capture)).out)
    kwiresniff("read", "-q", "-w", str(out), str(capture))
    told = set(re.findall(r"finding: \w+ (\w+)", out.read_bytes().decode("latin-1")))
    assert told == {code for one in found for code in (one["code"], *(sub["code"] for sub in one["symptoms"]))}


def test_packets_keep_their_bytes_times_and_interfaces(kwiresniff: Run, tmp_path: Path) -> None:
    """Every packet of a connection that is chosen whole, as tshark reads it in the recording."""
    source, out = CAPTURES / "java-fetch.pcapng", tmp_path / "out.pcapng"
    assert kwiresniff("read", "-w", str(out), str(source)).code == 0
    fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "tcp.seq_raw", "-e", "tcp.payload"]
    fields += ["-e", "frame.interface_name"]
    assert set(tshark(out, *fields)) <= set(tshark(source, "-Y", "tcp", *fields))


@pytest.mark.parametrize("ending", [".pcap", ".pcap.gz", ".pcapng.zst"])
def test_the_name_tells_the_format(ending: str, kwiresniff: Run, tmp_path: Path) -> None:
    """And its compression; what is read from each is the same."""
    out, plain = tmp_path / f"out{ending}", tmp_path / "plain.pcapng"
    chosen = ["-Y", "api == Produce", str(CAPTURES / "sarama.pcap")]
    assert kwiresniff("read", "-w", str(out), *chosen).code == 0
    assert kwiresniff("read", "-w", str(plain), *chosen).code == 0
    assert read(out) == read(plain) != {}


def test_a_compression_that_is_not_written_is_refused(kwiresniff: Run, tmp_path: Path) -> None:
    """The file would be what its name does not say."""
    out = tmp_path / "out.pcap.xz"
    done = kwiresniff("read", "-w", str(out), str(CAPTURES / "sarama.pcap"))
    assert done.code == 1
    assert done.err == f"kwiresniff: {out}: packets are compressed as .gz or .zst; end the name with one of these\n"
    assert not out.exists()


def test_a_pipe_is_read_twice(tmp_path: Path) -> None:
    """By way of a file that is gone afterwards."""
    data = (CAPTURES / "sarama.pcap").read_bytes()
    command = ["-m", "kwiresniff", "read", "-w", "-", "-Y", "api == Produce", "-"]
    done = subprocess.run(
        [sys.executable, *command], input=data, capture_output=True, check=True, env={"TMPDIR": str(tmp_path)}
    )
    (tmp_path / "out.pcapng").write_bytes(done.stdout)
    assert any('"api": "Produce"' in text for text in read(tmp_path / "out.pcapng").values())
    assert [path.name for path in tmp_path.iterdir()] == ["out.pcapng"]


def test_a_capture_that_is_read_is_not_written_over(kwiresniff: Run, tmp_path: Path) -> None:
    """By no name that it has."""
    source = tmp_path / "in.pcap"
    source.write_bytes((CAPTURES / "sarama.pcap").read_bytes())
    (tmp_path / "link.pcap").symlink_to(source)
    before = source.read_bytes()
    for name in (source, tmp_path / "link.pcap"):
        done = kwiresniff("read", "-w", str(name), str(source))
        assert done.code == 1
        assert done.err == f"kwiresniff: {name}: this is one of the captures that are read; name another file\n"
    assert source.read_bytes() == before


def test_nobody_else_may_read_the_packets(kwiresniff: Run, tmp_path: Path) -> None:
    """They hold what others say, passwords too."""
    assert kwiresniff("read", "-w", str(tmp_path / "out.pcapng"), str(CAPTURES / "sarama.pcap")).code == 0
    assert (tmp_path / "out.pcapng").stat().st_mode & 0o777 == 0o600


def test_link_types_that_differ_do_not_fit_into_pcap(kwiresniff: Run, tmp_path: Path) -> None:
    """Nothing is written then."""
    files = [str(CAPTURES / "sarama.pcap"), str(CAPTURES / "eras" / "zookeeper-2.8.pcap.xz")]
    done = kwiresniff("read", "-w", str(tmp_path / "out.pcap"), "-Y", "api == Metadata", *files)
    assert done.code == 1
    assert "several link types do not fit into pcap" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["java-tls", "kcat-tls"])
def test_tls_comes_with_the_keys_of_its_connections(name: str, kwiresniff: Run, tmp_path: Path) -> None:
    """And with no others; without a key log the exchanges are read."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    log, out = CAPTURES / "keys" / f"{name}.log", tmp_path / "out.pcapng"
    done = kwiresniff(
        "read", "-w", str(out), "-Y", "api == Produce", "--keylog", str(log), str(CAPTURES / f"{name}.pcap")
    )
    assert done.code == 0
    found = kwiresniff("read", "-o", "jsonl", "-Y", "api == Produce", str(out)).out.splitlines()
    count = sum('"kind":"exchange"' in line for line in found)
    assert f"kwiresniff: {count} exchange" in done.err
    lines = [line.split() for line in log.read_bytes().splitlines() if line and not line.startswith(b"#")]
    written = out.read_bytes().lower()
    there = [line for line in lines if line[-1].lower() in written]
    assert 0 < len(there) < len(lines)
