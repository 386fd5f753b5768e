"""``kwiresniff sniff`` on real packets: recorded conversations, said again on the loopback interface."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep

import pytest

from tests.support.paths import CAPTURES
from tests.support.replay import conversations, listener, say
from tests.support.sniffing import FIRST_LOOK, Sniffer, capturing, content, is_listening, objects, read, replay

pytestmark = [pytest.mark.capturing, pytest.mark.slow]

Start = Callable[..., Sniffer]

#: Takes the capability to capture away from the process, not from programs it starts: those are root's again.
NO_CAPABILITY = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
data = (ctypes.c_uint32 * 6)()
assert libc.capget(header, data) == 0
data[0] &= ~(1 << 13)
assert libc.capset(header, data) == 0
"""
#: And from those as well.
NO_CAPABILITY_AT_ALL = f"import ctypes; assert ctypes.CDLL(None).prctl(24, 13, 0, 0, 0) == 0{NO_CAPABILITY}"


@pytest.mark.parametrize("name", ["first-look.pcap", "java-produce.pcap", "franz-go.pcap"])
@pytest.mark.parametrize("interface", ["lo", "any"])
def test_what_passes_is_what_the_capture_holds(start: Start, tmp_path: Path, interface: str, name: str) -> None:
    capture, kept = str(CAPTURES / name), str(tmp_path / "kept.pcap")
    expected = Counter(map(content, objects(read(capture))))
    with listener() as server:
        port = server.getsockname()[1]
        sniffer = start("sniff", "-i", interface, "--port", str(port), "-o", "jsonl", "-w", kept)
        capturing(sniffer)
        replay(server, capture)
        sniffer.wait_for(lambda: len(objects(list(sniffer.out))) >= expected.total())
        assert sniffer.interrupt() == 130
    assert Counter(map(content, objects(sniffer.out))) == expected
    assert "0 packets dropped" in sniffer.err[-1]
    # The file has exactly those packets, so it reads the same to the last number and nanosecond.
    assert read(kept) == sniffer.out


def test_several_interfaces_are_one_stream_of_packets(start: Start) -> None:
    """Whose packets are numbered together, so none of the interfaces stands beside them like a file."""
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    if not names:
        pytest.skip("there is only the loopback interface")
    with listener() as server:
        port = server.getsockname()[1]
        sniffer = start("sniff", "-i", names[0], "-i", "lo", "--port", str(port), "-o", "jsonl")
        capturing(sniffer)
        replay(server, FIRST_LOOK)
        expected = Counter(map(content, objects(read(FIRST_LOOK))))
        sniffer.wait_for(lambda: len(objects(list(sniffer.out))) >= expected.total())
        sniffer.interrupt()
    assert Counter(map(content, objects(sniffer.out))) == expected
    assert not [one for one in objects(sniffer.out) if "file" in one["request"]]
    assert sniffer.err[-1].startswith(f"kwiresniff: {names[0]}, lo: ")


@pytest.fixture
def link() -> Iterator[str]:
    """A virtual interface that is up, to be taken away with ``take_away``."""
    name = f"kw{os.getpid() % 10_000_000}"
    made = ["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p"]
    if subprocess.run(made, stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("no virtual interface can be made here")
    for end in (name, f"{name}p"):
        subprocess.run(["ip", "link", "set", end, "up"], check=True)
    yield name
    subprocess.run(["ip", "link", "del", name], stderr=subprocess.DEVNULL, check=False)


def take_down(name: str) -> None:
    """At once: a program that does it would take longer than the kernel keeps a block."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", name.encode(), 0))  # SIOCSIFFLAGS, no flag


def take_away(name: str) -> None:
    subprocess.run(["ip", "link", "del", name], check=True)


@pytest.mark.parametrize("down_first", [False, True], ids=["at once", "down first"])
def test_an_interface_that_is_taken_away_ends_the_capture(start: Start, link: str, down_first: bool) -> None:
    """Interfaces of containers come and go; the last packets of one that went are still read."""
    sniffer = start("sniff", "-i", link, "-o", "jsonl")
    capturing(sniffer)
    if down_first:
        take_down(link)
        sniffer.wait_for(lambda: bool(sniffer.out))
    take_away(link)
    assert sniffer.end() == 0
    told = [one["message"] for one in objects(sniffer.out, "problem") if one["code"] == "interface_down"]
    assert told[-1] == f"interface {link} is gone"
    assert ("waiting for it to come back" in told[0]) is down_first


def test_packets_from_before_an_interface_went_down_do_not_hide_that_it_is_gone(start: Start, link: str) -> None:
    """The kernel hands over a block when it is old enough, which may be after the interface has gone down."""
    sniffer = start("sniff", "-i", link, "-o", "jsonl")
    capturing(sniffer)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((f"{link}p", 0))
        sender.send(bytes(12) + b"\x88\xb5" + bytes(46))  # an ethertype for experiments
        take_down(link)
    sniffer.wait_for(lambda: bool(sniffer.out))
    sleep(0.5)
    take_away(link)
    assert sniffer.end() == 0
    assert objects(sniffer.out, "problem")[-1]["message"] == f"interface {link} is gone"
    assert re.search(r": [1-9]\d* packets, ", sniffer.err[-1])


def test_one_of_several_interfaces_that_is_taken_away_is_told_and_the_others_go_on(start: Start, link: str) -> None:
    with listener() as server:
        port = server.getsockname()[1]
        sniffer = start("sniff", "-i", link, "-i", "lo", "--port", str(port), "-o", "jsonl")
        capturing(sniffer)
        take_away(link)
        sniffer.wait_for(lambda: bool(sniffer.out))
        assert [one["message"] for one in objects(sniffer.out, "problem")] == [f"interface {link} is gone"]
        replay(server, FIRST_LOOK)
        expected = Counter(map(content, objects(read(FIRST_LOOK))))
        sniffer.wait_for(lambda: len(objects(list(sniffer.out))) >= expected.total())
        assert sniffer.interrupt() == 130
    assert Counter(map(content, objects(sniffer.out))) == expected


def test_interfaces_are_listed_with_those_that_are_down(start: Start) -> None:
    sniffer = start("sniff", "--list-interfaces")
    assert sniffer.end() == 0
    rows = [line.split("\t") for line in sniffer.out]
    assert [(int(row[0]), row[1]) for row in rows] == sorted(socket.if_nameindex())
    assert ["lo", "up"] in [row[1:3] for row in rows]


def test_each_packet_of_the_loopback_interface_counts_once(start: Start, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, receiver.dup() as sender:
        receiver.bind(("127.0.0.1", 0))
        port = receiver.getsockname()[1]
        for interfaces in (["-i", "lo"], ["-i", "any"]):
            sniffer = start("sniff", *interfaces, "-c", "7", "udp", "port", str(port))
            capturing(sniffer)
            for _ in range(7):
                sender.sendto(b"x", ("127.0.0.1", port))
            assert sniffer.end() == 0
            assert "7 packets, 0 exchanges, 0 packets dropped" in sniffer.err[-1]


def test_output_comes_at_once_and_duration_ends_it(start: Start) -> None:
    with listener() as server:
        port = server.getsockname()[1]
        sniffer = start("sniff", "-i", "lo", "--duration", "4s", "-o", "summary", "tcp", "port", str(port))
        capturing(sniffer)
        say(server, conversations(FIRST_LOOK)[0])
        sniffer.wait_for(lambda: bool(sniffer.out))
        assert sniffer.process.poll() is None
        assert sniffer.end() == 0


def test_a_limit_of_exchanges_and_a_filter_work_as_in_read(start: Start) -> None:
    with listener() as server:
        port = server.getsockname()[1]
        arguments = ["-o", "jsonl", "-Y", "api == Metadata", "--limit", "1"]
        sniffer = start("sniff", "-i", "lo", "--port", str(port), *arguments)
        capturing(sniffer)
        replay(server, FIRST_LOOK)
        assert sniffer.end() == 0
    assert [one["api"] for one in objects(sniffer.out)] == ["Metadata"]


def test_a_snap_length_cuts_packets_and_says_what_is_missing(start: Start, tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcap"
    with listener() as server:
        port = server.getsockname()[1]
        sniffer = start("sniff", "-i", "lo", "--port", str(port), "-s", "96", "-w", str(kept))
        capturing(sniffer)
        replay(server, FIRST_LOOK)
        sniffer.wait_for(lambda: bool(sniffer.out))
        sniffer.interrupt()
    lengths = packet_lengths(kept)
    assert max(captured for captured, _ in lengths) == 96
    assert max(wire for _, wire in lengths) > 500


@pytest.mark.parametrize("expression", [[], ["tcp"]], ids=["all", "filtered"])
def test_packets_of_64_kilobytes_are_whole(start: Start, tmp_path: Path, expression: list[str]) -> None:
    """Offloading makes IP packets of up to 65,535 bytes, and the link layer comes on top."""
    kept = tmp_path / "kept.pcap"
    sniffer = start("sniff", "-i", "lo", "-w", str(kept), *expression)
    capturing(sniffer)
    with listener() as server, socket.create_connection(server.getsockname()) as client, server.accept()[0] as broker:
        sender = threading.Thread(target=client.sendall, args=(bytes(16 << 20),))
        sender.start()
        left = 16 << 20
        while left:
            left -= len(broker.recv(1 << 20))
        sender.join()
    sniffer.wait_for(lambda: kept.exists() and kept.stat().st_size > 16 << 20)
    sniffer.interrupt()
    lengths = packet_lengths(kept)
    assert all(captured == wire for captured, wire in lengths)
    assert sum(captured for captured, _ in lengths) > 16 << 20


def packet_lengths(kept: Path) -> list[tuple[int, int]]:
    """Of each packet of a file the length that is captured, and that on the wire."""
    data, at, lengths = kept.read_bytes(), 24, []
    while at < len(data):
        lengths.append(struct.unpack_from("<II", data, at + 8))
        at += 16 + lengths[-1][0]
    return lengths


def test_packets_that_find_no_room_are_counted(start: Start) -> None:
    sent = 6_000
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, receiver.dup() as sender:
        receiver.bind(("127.0.0.1", 0))
        port = receiver.getsockname()[1]
        sniffer = start("sniff", "-i", "lo", "-B", "1024", "--duration", "3s", "-o", "jsonl", "udp", "port", str(port))
        capturing(sniffer)
        sniffer.process.send_signal(signal.SIGSTOP)  # it cannot keep up
        for _ in range(sent):
            sender.sendto(bytes(1000), ("127.0.0.1", port))
        sniffer.process.send_signal(signal.SIGCONT)
        assert sniffer.end() == 0
    dropped = sum(one["packets"] for one in objects(sniffer.out, "problem") if one["code"] == "packets_dropped")
    assert dropped > 0
    assert f"{sent - dropped:,} packets, 0 exchanges, {dropped:,} packets dropped" in sniffer.err[-1]


def test_an_unprivileged_user_gets_the_packets_from_a_program_that_may(start: Start) -> None:
    expected = Counter(map(content, objects(read(FIRST_LOOK))))
    with listener() as server:
        port = server.getsockname()[1]
        sniffer = start("sniff", "-i", "lo", "--port", str(port), "-o", "jsonl", prelude=NO_CAPABILITY)
        capturing(sniffer)
        replay(server, FIRST_LOOK)
        sniffer.wait_for(lambda: len(objects(list(sniffer.out))) >= expected.total())
        assert sniffer.interrupt() == 130
    assert Counter(map(content, objects(sniffer.out))) == expected
    assert "0 packets dropped" in sniffer.err[-1]


def test_without_privileges_one_line_says_what_to_grant(start: Start) -> None:
    sniffer = start("sniff", "-i", "lo", prelude=NO_CAPABILITY_AT_ALL)
    assert sniffer.end() == 1
    assert sniffer.out == []
    assert len(sniffer.err) == 1
    assert "no permission to capture on lo" in sniffer.err[0]
    assert "sudo setcap cap_net_raw+ep" in sniffer.err[0]


def test_an_unprivileged_user_is_told_of_a_mistake_in_the_filter_as_well(start: Start) -> None:
    """The program that may capture ends with it, and not for want of a permission."""
    sniffer = start("sniff", "-i", "lo", "port", "nonsense", prelude=NO_CAPABILITY)
    assert sniffer.end() == 1
    assert len(sniffer.err) == 1
    assert "the capture filter 'port nonsense' is not understood: unknown port 'nonsense'" in sniffer.err[0]


def test_an_unknown_interface_is_answered_with_those_there_are(start: Start) -> None:
    sniffer = start("sniff", "-i", "lo0")
    assert sniffer.end() == 1
    assert sniffer.err == [f"kwiresniff: no interface is called 'lo0'; there are any, {_names()}"]


def _names() -> str:
    return ", ".join(name for _, name in socket.if_nameindex())


def test_a_mistake_in_the_capture_filter_is_one_line(start: Start) -> None:
    sniffer = start("sniff", "-i", "lo", "port", "ninety")
    assert sniffer.end() == 1
    assert len(sniffer.err) == 1
    assert "the capture filter 'port ninety' is not understood" in sniffer.err[0]


def test_tcpdump_piped_into_read_is_shown_at_once(start: Start) -> None:
    with listener() as server:
        port = server.getsockname()[1]
        command = ["tcpdump", "-i", "lo", "-U", "-w", "-", "tcp", "port", str(port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as tcpdump:
            assert tcpdump.stdout is not None
            reader = start("read", "-o", "summary", "-", stdin=tcpdump.stdout.fileno())
            reader.wait_for(lambda: is_listening(tcpdump.pid))
            say(server, conversations(FIRST_LOOK)[0])
            reader.wait_for(lambda: bool(reader.out))
            assert tcpdump.poll() is None
            tcpdump.terminate()
            assert reader.end() == 0


def test_an_end_that_is_asked_for_by_sigterm_is_as_orderly(start: Start) -> None:
    with listener() as server:
        port = server.getsockname()[1]
        sniffer = start("sniff", "-i", "lo", "--port", str(port), "-o", "json")
        capturing(sniffer)
        say(server, conversations(FIRST_LOOK)[0])
        sniffer.wait_for(lambda: bool(sniffer.out))
        assert sniffer.end(signal.SIGTERM) == 130
    kinds = {one["kind"] for one in json.loads("\n".join(sniffer.out))}
    assert {"exchange", "connection"} <= kinds


def test_it_says_when_it_listens(start: Start) -> None:
    """Whoever starts traffic by a script waits for this line: what is said after it is in the output."""
    with listener() as server:
        port = server.getsockname()[1]
        sniffer = start("sniff", "-i", "lo", "--port", str(port), "-o", "jsonl")
        sniffer.wait_for(lambda: bool(sniffer.err))
        assert sniffer.err == [f"kwiresniff: listening on lo, tcp port {port}"]
        assert is_listening(sniffer.process.pid)
        say(server, conversations(FIRST_LOOK)[0])
        sniffer.wait_for(lambda: bool(sniffer.out))
        sniffer.interrupt()
    quiet = start("sniff", "-i", "lo", "-q", "--duration", "1")
    assert (quiet.end(), quiet.err) == (0, [])


def test_findings_come_while_it_listens(start: Start) -> None:
    """With the packets that show them, and they are counted at the end."""
    with listener() as server:
        port = server.getsockname()[1]
        sniffer = start("sniff", "-i", "lo", "--port", str(port), "-o", "doctor")
        capturing(sniffer)
        replay(server, str(CAPTURES / "java-sasl-plain.pcap"))
        sniffer.wait_for(lambda: any("evidence" in line for line in sniffer.out))
        assert sniffer.interrupt() == 130
    assert any(re.match(r"error   mallory \S+  SASL_AUTHENTICATION_FAILED: user alice", line) for line in sniffer.out)
    assert "kwiresniff: findings: 1 error" in sniffer.err
