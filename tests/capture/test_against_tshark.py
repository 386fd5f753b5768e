"""Headers of IP, fragments and files, written by scapy, read by tshark and by us."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import packet_builder
from tests.support.sample import one_in
from tests.support.scapy_packets import OUTER, both, check, ether, others, requests, scapy, write
from tests.support.tshark_view import by_tshark, by_us, read

pytestmark = pytest.mark.slow

CAPTURES = Path(__file__).parents[2] / "captures"


@pytest.mark.parametrize(("link_type", "v6"), [(228, False), (229, True)])
def test_raw_ip_of_one_version(link_type: int, v6: bool, tmp_path: Path) -> None:
    """Link types that fix the version."""
    check(write(tmp_path / "capture.pcap", requests(v6=v6), linktype=link_type), 5)


def test_null_link_type_as_linux_numbers_ipv6() -> None:
    """Linux's own AF_INET6 is 10, which tshark does not take for IPv6."""
    packets = [b"\x0a\0\0\0" + bytes(p) for p in requests(v6=True)]
    segments, captures = read(packet_builder.pcap(packets, link_type=0))
    assert len(segments) == 5 and captures.other_packets == {}


def test_ipv4_options(tmp_path: Path) -> None:
    """A header longer than 20 bytes."""
    for packet in (packets := requests()):
        packet.options = [scapy.IPOption_Router_Alert()]
    check(write(tmp_path / "capture.pcap", [ether() / packet for packet in packets]), 5)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(lambda: scapy.IPv6ExtHdrHopByHop(options=[]), id="hop by hop"),
        pytest.param(lambda: scapy.IPv6ExtHdrDestOpt(options=[]), id="destination options"),
        pytest.param(lambda: scapy.IPv6ExtHdrRouting(addresses=["fd00::7"], segleft=0), id="routing"),
        pytest.param(lambda: scapy.IPv6ExtHdrFragment(id=5), id="atomic fragment"),
        pytest.param(lambda: scapy.AH(nh=6, spi=1, seq=2, icv=bytes(12), payloadlen=4), id="authentication"),
        pytest.param(
            lambda: scapy.IPv6ExtHdrHopByHop() / scapy.IPv6ExtHdrRouting() / scapy.IPv6ExtHdrDestOpt(options=[]),
            id="three",
        ),
    ],
)
def test_ipv6_extension_headers(headers: Callable[[], Any], tmp_path: Path) -> None:
    """Headers between IPv6 and TCP are passed over."""
    packets = [
        ether() / scapy.IPv6(src="fd00::1", dst="fd00::9") / headers() / packet[scapy.TCP]
        for packet in requests(v6=True)
    ]
    check(write(tmp_path / "capture.pcap", packets), 5)


def fragments(v6: bool) -> list[Any]:
    payload = bytes(i % 251 for i in range(3000))
    tcp = scapy.TCP(sport=41000, dport=9092, flags="PA", seq=9, ack=8) / payload
    if v6:
        return list(
            scapy.fragment6(scapy.IPv6(src="fd00::1", dst="fd00::9") / scapy.IPv6ExtHdrFragment(id=3) / tcp, 1280)
        )
    return list(scapy.fragment(scapy.IP(src="10.1.0.1", dst="10.1.0.9", id=3) / tcp, 1000))


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("arrange", [list, lambda p: p[::-1], lambda p: [*p[1:], p[0]], lambda p: [p[0], p[0], *p[1:]]])
def test_fragments_in_any_order(v6: bool, arrange: Callable[[list[Any]], list[Any]], tmp_path: Path) -> None:
    """A datagram is whole with its last missing fragment, whichever that is; duplicates change nothing."""
    packets = [ether() / packet for packet in arrange(fragments(v6))]
    check(write(tmp_path / "capture.pcap", packets), 1)


def test_fragments_inside_a_tunnel(tmp_path: Path) -> None:
    """The outer datagram is fragmented, as happens when VXLAN meets an ordinary MTU."""
    inner = ether() / scapy.IP(src="10.1.0.1", dst="10.1.0.9") / scapy.TCP(sport=41000, dport=9092) / bytes(1400)
    outer = scapy.IP(**OUTER, id=4) / scapy.UDP(sport=9, dport=4789) / scapy.VXLAN(vni=5) / inner
    packets = [ether() / packet for packet in scapy.fragment(outer, 1000)]
    check(write(tmp_path / "capture.pcap", packets), 1)


def test_a_nanosecond_capture_keeps_its_nanoseconds(tmp_path: Path) -> None:
    """scapy writes the nanosecond magic; times are exact integers."""
    path = tmp_path / "capture.pcap"
    with scapy.PcapWriter(str(path), linktype=1, nano=True) as writer:
        writer.write_header(None)
        for i, packet in enumerate(requests()):
            writer.write_packet(bytes(ether() / packet), sec=1700000000 + i, usec=123456789 + i)
    check(path, 5)


def test_a_snap_length_shortens_payloads(tmp_path: Path) -> None:
    """What is not captured is not given, and its size is told."""
    path = write(tmp_path / "capture.pcap", [ether() / packet for packet in both()])
    short = tmp_path / "short.pcap"
    with scapy.RawPcapReader(str(path)) as whole, scapy.PcapWriter(str(short), linktype=1, snaplen=96) as writer:
        writer.write_header(None)
        for data, meta in whole:
            writer.write_packet(data[:96], sec=meta.sec, usec=meta.usec, caplen=len(data[:96]), wirelen=len(data))
    check(short, 10)


def test_the_pcapng_that_scapy_writes(tmp_path: Path) -> None:
    """Blocks and options of another writer than ours are read."""
    path = tmp_path / "capture.pcapng"
    packets = [ether() / packet for packet in both() + others()]
    for i, packet in enumerate(packets):
        packet.time = 1700000000 + i * 0.25
    scapy.wrpcapng(str(path), packets)
    check(path, 10)


@pytest.mark.parametrize("path", one_in(2, sorted(CAPTURES.glob("*.pcap*"))), ids=lambda path: path.name)
def test_recorded_captures(path: Path, tmp_path: Path) -> None:
    """Recordings of the project, segment by segment."""
    if path.suffix == ".xz":  # which tshark does not undo
        plain = tmp_path / "capture"
        plain.write_bytes(lzma.decompress(path.read_bytes()))
        path = plain
    theirs = by_tshark(path)
    assert theirs
    assert by_us(path) == theirs
