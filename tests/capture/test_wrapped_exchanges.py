"""A recording whose packets have other headers in front of them: the exchanges are the same."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from kwiresniff.capture.decode_as import LAYERS, SELECTORS
from kwiresniff.capture.unread import MAX_SHOWN
from tests.support import packet_builder
from tests.support.command import Run
from tests.support.paths import ROOT
from tests.support.wrapped_recording import FRAMES, RECORDING, TRAILER, capture, udp


def pktap(frame: bytes) -> bytes:
    head = struct.pack("<III24sIIII", 108, 1, 1, b"en0", 1, 2, 14, 0)
    return head + struct.pack("<I20sIHHI20s", 77, b"java", 0, 6, 0, 77, b"java") + frame


def nflog(frame: bytes, order: str = "<") -> bytes:
    """Prefix, hardware header and payload as fields in the machine's byte order."""
    fields = struct.pack(order + "HH6s2x", 10, 10, b"kafka")
    return b"\x02\0\0\5" + fields + struct.pack(order + "HH", len(frame) - 10, 9) + frame[14:]


VXLAN = bytes.fromhex("0800000000004d00")
#: Beside those that tshark reads as well, which ``test_layers_against_tshark.py`` has.
PLAIN = {
    "pktap under Apple's old number": (149, pktap),
    "nflog of a big-endian machine": (239, lambda frame: nflog(frame, ">")),
    "ppi with a field": (192, lambda frame: struct.pack("<BBHIHHI", 0, 0, 16, 1, 5, 4, 0) + frame),
    "vxlan on another port": (1, lambda frame: udp(VXLAN + frame, 4799)),
    "vxlan on a port of something else": (1, lambda frame: udp(VXLAN + frame, 53)),
    "vxlan with a group policy": (1, lambda frame: udp(bytes.fromhex("880000ff00004d00") + frame, 4799)),
    "vxlan-gpe with ip": (1, lambda frame: udp(bytes.fromhex("0c00000100004d00") + frame[14:], 4799)),
    "vxlan in vxlan": (1, lambda frame: udp(VXLAN + udp(VXLAN + frame, 4799), 4799)),
    "vxlan with a frame check sequence": (1, lambda frame: udp(VXLAN + frame + b"\1\2\3\4", 4799)),
    "pseudowire with a control word": (
        1,
        lambda frame: packet_builder.ethernet(bytes.fromhex("0002014000000000") + frame, 0x8847),
    ),
    "pseudowire without one": (1, lambda frame: packet_builder.ethernet(bytes.fromhex("00020140") + frame, 0x8847)),
    "cisco metadata behind a vlan": (
        1,
        lambda frame: packet_builder.ethernet(bytes.fromhex("00058909010100010005") + frame[12:], 0x8100),
    ),
    "gtp-u on another port": (
        1,
        lambda frame: udp(struct.pack(">BBHI", 0x30, 255, len(frame) - 14, 7) + frame[14:], 999),
    ),
    "dsa that the link type does not name": (1, lambda frame: frame[:12] + b"\xc0\1\0\0" + frame[12:]),
    "dsa with a small number": (1, lambda frame: frame[:12] + b"\0\1\0\0" + frame[12:]),
    "a switch's tag in front of the frame": (1, lambda frame: b"\x20\0\0\1" + frame),
    "a time stamp with an ethertype": (
        1,
        lambda frame: frame[:12] + bytes.fromhex("d28b00010010") + bytes(8) + frame[12:],
    ),
    "a mirror's header that is not known": (1, lambda frame: udp(bytes(range(12)) + frame, 7932)),
    "tzsp on another port": (1, lambda frame: udp(bytes.fromhex("0100000101") + frame, 9999)),
    "gue": (1, lambda frame: udp(b"\x00\x04\x00\x00" + frame[14:], 6080)),
}


def read(kwiresniff: Run, *words: str) -> str:
    done = kwiresniff("read", "-o", "jsonl", *words)
    assert (done.code, done.err) == (0, "")
    return done.out


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    return capture(tmp_path_factory.mktemp("bare") / "bare.pcap", bytes)


@pytest.mark.parametrize("name", PLAIN)
def test_the_exchanges_are_those_without_the_headers(kwiresniff: Run, tmp_path: Path, bare: str, name: str) -> None:
    """Nothing has to be said on the command line."""
    link_type, wrap = PLAIN[name]
    found = read(kwiresniff, capture(tmp_path / "wrapped.pcap", wrap, link_type))
    assert found.count('"kind":"exchange"') > 3
    assert found == read(kwiresniff, bare)


@pytest.mark.parametrize("control_word", [b"", bytes(4)])
def test_a_pseudowire_is_known_whatever_its_addresses_look_like(
    kwiresniff: Run, tmp_path: Path, bare: str, control_word: bytes
) -> None:
    """The frame begins with 0x45, as IP does, or with zeros, as a control word does."""
    for front in (b"\x45\0\0\0", b"\0\0\0\0"):

        def wrap(frame: bytes, front: bytes = front) -> bytes:
            return packet_builder.ethernet(b"\0\2\1\x40" + control_word + front + frame[4:], 0x8847)

        assert read(kwiresniff, capture(tmp_path / "wrapped.pcap", wrap)) == read(kwiresniff, bare)


RULES = {
    "udp.port==8473,vxlan": (1, lambda frame: udp(b"\xff" * 8 + frame + TRAILER, 8473)),
    "udp.port==8474,GENEVE": (1, lambda frame: udp(bytes.fromhex("00ff655800004dff") + frame + TRAILER, 8474)),
    "udp.port == 55555 , eth": (1, lambda frame: udp(frame + TRAILER, 8473)),
    "ethertype==0x9999,mpls": (1, lambda frame: packet_builder.ethernet(b"\0\2\1\x40" + frame[14:], 0x9999)),
    "ethertype==39321,ip": (1, lambda frame: packet_builder.ethernet(frame[14:], 0x9999)),
    "ip.proto==253,ethernet": (1, lambda frame: packet_builder.ethernet(packet_builder.ipv4(frame, protocol=253))),
    "link_type==147,ethernet": (147, bytes),
    "link_type==162,ip": (162, lambda frame: frame[14:]),
    "dlt==1,pktap": (1, pktap),
}


@pytest.mark.parametrize("rule", RULES)
def test_decode_as_says_what_packets_hold(kwiresniff: Run, tmp_path: Path, bare: str, rule: str) -> None:
    """Every selector takes every name, and wins over what is known."""
    link_type, wrap = RULES[rule]
    path = capture(tmp_path / "wrapped.pcap", wrap, link_type)
    assert "no Kafka" in kwiresniff("read", path).err
    assert read(kwiresniff, "--decode-as", rule, path) == read(kwiresniff, bare)


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        ("vxlan", "'vxlan' is not SELECTOR==NUMBER,NAME like udp.port==8473,vxlan"),
        ("udp.port==8473,vxlon", "'vxlon' is not one of ethernet, ip, ipv4, ipv6, vxlan, geneve, gtp,"),
        ("udp==8473,vxlan", "'udp' is not one of udp.port, ethertype, ip.proto, link_type"),
        ("udp.port==70000,vxlan", "udp.port is at most 65535, not 70000"),
        ("ip.proto==256,ip", "ip.proto is at most 255, not 256"),
        ("ethertype==0x0800,ip", "ethertype==0x0800 is read as what it is"),
        ("tcp.port==9092,kafka", "Kafka is found on any port; --port names one"),
    ],
)
def test_a_mistake_in_a_rule_is_answered_with_what_would_be_accepted(kwiresniff: Run, rule: str, answer: str) -> None:
    """One line, and the exit code of usage."""
    done = kwiresniff("stats", "-d", rule, str(RECORDING))
    assert done.code == 2 and done.err.count("\n") == 1
    assert answer in done.err


@pytest.mark.parametrize(
    ("link_type", "wrap", "words"),
    [
        (
            147,
            bytes,
            "40 packets of link type 147 (USER0), which is not read: if they hold Ethernet or IP, "
            "--decode-as link_type==147,ethernet (or ip)",
        ),
        (189, bytes, "40 packets of link type 189 (USB_LINUX), which is not read: "),
        (9999, bytes, "40 packets of link type 9999, not read: "),
        (
            192,
            lambda frame: struct.pack("<BBHI", 0, 0, 8, 189) + frame,
            "40 packets with a header of PKTAP or PPI around a packet of link type 189 (USB_LINUX), ",
        ),
        (
            1,
            lambda frame: udp(VXLAN + frame + bytes(50), 8473),
            "40 packets of UDP port 8473 that may be VXLAN: try --decode-as udp.port==8473,vxlan",
        ),
        (
            1,
            lambda frame: udp(bytes(one ^ 0x5A for one in frame), 8473),
            "40 packets of UDP; if a tunnel is in it, --decode-as udp.port==PORT,vxlan (or another)",
        ),
        (1, lambda frame: packet_builder.ethernet(frame[14:], 0x88CC), "40 packets without IP"),
        (
            1,
            lambda frame: packet_builder.ethernet(frame[14:], 0x9999),
            "40 packets of ethertype 0x9999, which is not known: if that is a tag, "
            "--decode-as ethertype==0x9999,ethernet (or ip)",
        ),
        (
            1,
            lambda frame: packet_builder.ethernet(b"\x2c" + bytes(13) + frame, 0x88E5),
            "40 packets of MACsec, which is encrypted",
        ),
        (
            1,
            lambda frame: packet_builder.ethernet(packet_builder.ipv4(bytes(64), protocol=50)),
            "40 packets of ESP (IPsec), which is encrypted",
        ),
        (1, lambda frame: udp(b"\0\0\0\7" + bytes(60), 4500), "40 packets of ESP (IPsec), which is encrypted"),
        (1, lambda frame: udp(b"\4\0\0\0" + bytes(92), 51820), "40 packets of WireGuard, which is encrypted"),
        (
            105,
            lambda frame: b"\x08\x41" + bytes(90),
            "40 packets of encrypted 802.11; decrypt them with airdecap-ng, or capture at a wired host",
        ),
    ],
)
def test_what_is_not_read_is_named_with_what_to_do(
    kwiresniff: Run, tmp_path: Path, link_type: int, wrap: Callable[[bytes], bytes], words: str
) -> None:
    """Where there is no Kafka, the line says what there was instead."""
    done = kwiresniff("read", capture(tmp_path / "wrapped.pcap", wrap, link_type))
    assert done.err.count("\n") == 1 and words in done.err


def test_an_interface_that_is_not_read_is_named_beside_one_that_is(kwiresniff: Run, tmp_path: Path) -> None:
    """A pcapng file whose second interface is of an unknown link type."""
    ng = packet_builder.Pcapng()
    blocks = ng.section() + ng.interface(1, options=ng.resolution(9)) + ng.interface(150)
    for seconds, nanoseconds, _, frame in FRAMES:
        blocks += ng.enhanced(frame, ticks=seconds * 1_000_000_000 + nanoseconds)
    path = tmp_path / "two.pcapng"
    path.write_bytes(blocks + ng.enhanced(b"x", interface=1))
    done = kwiresniff("stats", str(path))
    assert done.code == 0 and "ApiVersions" in done.out
    assert done.err.startswith("kwiresniff: 1 packet of link type 150 (USER3), which is not read: ")
    assert kwiresniff("stats", "-q", str(path)).err == ""


def test_no_more_reasons_are_named_than_a_line_holds(kwiresniff: Run, tmp_path: Path) -> None:
    """Of twenty ethertypes that are not known the first are named."""
    path = tmp_path / "many.pcap"
    packets = (packet_builder.ethernet(bytes(50), 0xA000 + number) for number in range(20))
    path.write_bytes(packet_builder.pcap(packets))
    (line,) = kwiresniff("read", str(path)).err.splitlines()
    assert line.count("of ethertype") == MAX_SHOWN and line.endswith(", others")


def test_the_page_has_the_names_and_selectors() -> None:
    """docs/output.md lists what a rule may say, in the order of the code."""
    page = (ROOT / "docs" / "output.md").read_text(encoding="utf-8")
    selectors, names = re.search(r"^\| (`udp\.port`[^|]*) \| ([^|]*) \|$", page, re.MULTILINE).groups()  # type: ignore[union-attr]
    assert re.findall(r"`([\w.]+)`", selectors) == list(SELECTORS)
    assert re.findall(r"`([\w]+)`", names) == [spellings[0] for spellings in LAYERS]
