"""Names of addresses in pcapng files: name resolution blocks and comments."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from socket import inet_pton

import pytest

from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.flows import endpoints
from kwiresniff.capture import open_captures, recorded_names
from kwiresniff.capture.recorded_names import MAX_COMMENT_BYTES, MAX_PACKETS, RecordedNames, names_in_comment
from tests.support import packet_builder
from tests.support.packet_builder import Pcapng

PACKET = packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"first")))
IPV6 = packet_builder.ethernet(packet_builder.ipv6(packet_builder.tcp(b"second")))
INBOUND, OUTBOUND = 1, 2
#: As ptcpdump writes them (internal/writer/pcapng.go), each one option.
PROCESS = b"PID: 1234\nCmd: /usr/lib/jvm/bin/java\nArgs: -jar shop.jar --pod: x"
CONTAINER = b'ContainerName: shop\nContainerId: abc123\nContainerImage: shop:1.19\nContainerLabels: {"app":"web"}'
POD = b'PodName: shop-7f9c6d5b4-x2x4z\nPodNamespace: web\nPodUID: d4\nPodLabels: {"app":"web"}\nPodAnnotations: {}'
NAMES = ["pod/shop-7f9c6d5b4-x2x4z", "container/shop", "process/java"]


def record(ng: Pcapng, kind: int, value: bytes) -> bytes:
    return struct.pack(ng.order + "HH", kind, len(value)) + value + bytes(-len(value) % 4)


def name_block(ng: Pcapng, *records: bytes) -> bytes:
    return ng.block(4, b"".join(records) + bytes(4))


def commented(ng: Pcapng, packet: bytes, *comments: bytes, flags: int | None = OUTBOUND) -> bytes:
    options = b"".join(ng.option(1, comment) for comment in comments)
    if flags is not None:
        options += ng.option(2, struct.pack(ng.order + "I", flags))
    return ng.enhanced(packet, options=options + bytes(4))


def read(path: Path, data: bytes) -> AddressNames:
    """The names in a file that is read through."""
    path.write_bytes(data)
    names = AddressNames()
    list(open_captures([str(path)], names=names))
    return names


def found(names: AddressNames, address: str) -> list[tuple[str, str]]:
    return [tuple(one) for one in names.of_address(address)]  # type: ignore[misc]


@pytest.mark.parametrize("order", ["<", ">"])
def test_name_blocks_name_hosts(order: str, tmp_path: Path) -> None:
    """IPv4 and IPv6, several names of one; records of other kinds are passed over."""
    ng = Pcapng(order)
    block = name_block(
        ng,
        record(ng, 1, inet_pton(2, "10.0.0.1") + b"kafka-1.example.com\0kafka-1\0"),
        record(ng, 3, b"\1\2\3\4\5\6mac\0"),
        record(ng, 2, inet_pton(10, "fd00::1") + b"six\0"),
    )
    names = read(tmp_path / "c.pcapng", ng.section() + ng.interface() + ng.enhanced(PACKET) + block)
    assert found(names, "10.0.0.1") == [("kafka-1.example.com", "name block"), ("kafka-1", "name block")]
    assert found(names, "[fd00::1]") == [("six", "name block")]


def test_tshark_reads_the_same_names(tmp_path: Path) -> None:
    """From the block that this test wrote, both ends of a packet."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    ng = Pcapng()
    source, destination = PACKET[26:30], PACKET[30:34]
    block = name_block(ng, record(ng, 1, source + b"client.example\0"), record(ng, 1, destination + b"kafka-1\0"))
    data = ng.section() + ng.interface() + block + ng.enhanced(PACKET)
    names = read(tmp_path / "c.pcapng", data)
    command = ["tshark", "-r", str(tmp_path / "c.pcapng"), "-N", "n", "-T", "fields"]
    for field in ("ip.src", "ip.src_host", "ip.dst", "ip.dst_host"):
        command += ["-e", field]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert [names.of_address(told[at])[0].name for at in (0, 2)] == [told[1], told[3]] == ["client.example", "kafka-1"]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("packet", "ip"), [(PACKET, 4), (IPV6, 6)], ids=["IPv4", "IPv6"])
def test_a_comment_names_the_end_of_this_machine(order: str, packet: bytes, ip: int, tmp_path: Path) -> None:
    """Whose packet it is, by its direction: without one, it may be either's."""
    ng = Pcapng(order)
    front = ng.section() + ng.interface()
    for flags, named in ((OUTBOUND, 0), (INBOUND, 1), (0, None), (None, None)):
        data = front + commented(ng, packet, PROCESS, CONTAINER, POD, flags=flags)
        names = AddressNames()
        (tmp_path / "c.pcapng").write_bytes(data)
        (segment,) = open_captures([str(tmp_path / "c.pcapng")], names=names)
        ends = endpoints(segment[2])
        for at, end in enumerate(ends):
            assert [one.name for one in names.of(end)] == (NAMES if at == named else [])
            assert {one.source for one in names.of(end)} <= {"comment"}
    assert ip in (4, 6)


@pytest.mark.parametrize(
    ("comment", "names"),
    [
        (PROCESS, ["process/java"]),
        (b"PID: 1\nCommand: /bin/bash...\n", ["process/bash"]),
        (b"process_name = kafka.Kafka\npod-name=a", ["process/kafka.Kafka", "pod/a"]),
        (b"ContainerName: /shop/", ["container/shop"]),
        (b"Pod:", []),
        (b"a comment of a person: look here", []),
        (b"Cmd:  \nParentCmd: systemd\n: x\nPodLabels: pod", []),
        (b"PodName: \xff\x1b[31m", ["pod/\ufffd\x1b[31m"]),
        (b"", []),
    ],
)
def test_comments_are_read_line_by_line(comment: bytes, names: list[str]) -> None:
    """What is no ``key: value`` of those that are known says nothing; bytes that are no text are replaced."""
    assert names_in_comment(comment) == names


def test_damaged_blocks_end_where_they_are_wrong(tmp_path: Path) -> None:
    """Whatever lengths they claim; what stood before counts."""
    ng = Pcapng()
    good = record(ng, 1, b"\n\0\0\1kafka-1\0")
    for bad in (b"\1\0\xff\xff\n\0\0\2x\0", b"\1\0\2\0\n\0", b"\1", b"\1\0\4\0\n\0\0\2", b"\2\0\6\0abcdef\0\0"):
        names = read(tmp_path / "c.pcapng", ng.section() + ng.interface() + ng.block(4, good + bad))
        assert [one.name for one in names.of_address("10.0.0.1")] == ["kafka-1"]
        assert names.of_address("10.0.0.2") == []
    for options in (b"\1\0\xff\xffPod: a", b"\1\0", b"\1\0\6\0Pod: a\0\0\2\0\1\0\2\0\0\0", bytes(64)):
        data = ng.section() + ng.interface() + ng.enhanced(PACKET, options=options)
        names = read(tmp_path / "c.pcapng", data)
        assert not names.knows("a")


def test_comments_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In bytes, and in connections that have some: of one connection the first is read."""
    ng = Pcapng()
    assert b"x" * 10 not in PROCESS
    long = b"x" * MAX_COMMENT_BYTES + b"\nPodName: a"
    assert not read(tmp_path / "c.pcapng", ng.section() + ng.interface() + commented(ng, PACKET, long)).knows("a")
    monkeypatch.setattr(recorded_names, "MAX_COMMENTED", 1)
    names = AddressNames()
    reader = RecordedNames(names)
    for port, pod in ((1, b"a"), (1, b"b"), (2, b"c")):
        options = ng.option(1, b"PodName: " + pod) + ng.option(2, struct.pack("<I", OUTBOUND))
        reader.options("<", options, 0, len(options), bytes([10, 0, 0, 1, 10, 0, 0, 2, 0, port, 0, 9]))
    assert [names.knows(text) for text in "abc"] == [True, False, False]


def test_comments_are_looked_for_in_the_first_packets() -> None:
    """Who captures may learn of a process a little later; other options are on every packet of some captures."""
    ng = Pcapng()
    flags = ng.option(2, struct.pack("<I", OUTBOUND))
    for others, found in ((MAX_PACKETS - 1, True), (MAX_PACKETS, False)):
        names = AddressNames()
        reader = RecordedNames(names)
        for options in [flags] * others + [ng.option(1, POD) + flags]:
            reader.options("<", options, 0, len(options), bytes([10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 9]))
        assert names.knows("pod/shop-7f9c6d5b4-x2x4z") is found


def test_names_at_the_end_of_a_file_can_be_had_in_advance(tmp_path: Path) -> None:
    """Wireshark learns names while it captures, and may write them last."""
    ng, names = Pcapng(), AddressNames()
    path = tmp_path / "c.pcapng"
    path.write_bytes(
        ng.section() + ng.interface() + ng.enhanced(PACKET) + name_block(ng, record(ng, 1, b"\n\0\0\1k\0"))
    )
    captures = open_captures([str(path)], names=names)
    captures.read_names()
    assert names.knows("k")
    assert len(list(captures)) == 1
