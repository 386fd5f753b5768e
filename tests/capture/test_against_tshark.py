"""Every link type and every tunnel, written by scapy, read by tshark and by us."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support import packet_builder
from tests.support.sample import one_in
from tests.support.scapy_packets import OUTER, both, check, ether, others, requests, scapy, write
from tests.support.tshark_view import by_tshark, by_us, read

pytestmark = pytest.mark.slow

CAPTURES = Path(__file__).parents[2] / "captures"


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda p: ether() / p, id="plain"),
        pytest.param(lambda p: ether() / scapy.Dot1Q(vlan=5) / p, id="vlan"),
        pytest.param(lambda p: ether() / scapy.Dot1AD(vlan=9) / scapy.Dot1Q(vlan=5) / p, id="qinq"),
        pytest.param(lambda p: ether() / scapy.Dot1Q() / scapy.Dot1Q() / scapy.Dot1Q() / p, id="three tags"),
        pytest.param(lambda p: scapy.Dot3() / scapy.LLC() / scapy.SNAP() / p, id="llc and snap"),
        pytest.param(lambda p: ether() / p / scapy.Padding(bytes(13)), id="padded"),
        pytest.param(lambda p: ether() / scapy.IP(**OUTER) / p, id="ip in ip"),
        pytest.param(lambda p: ether() / scapy.IPv6(src="fd00::5", dst="fd00::6") / p, id="ip in ipv6"),
        pytest.param(lambda p: ether() / scapy.IP(**OUTER) / scapy.GRE() / p, id="gre"),
        pytest.param(
            lambda p: (
                ether()
                / scapy.IP(**OUTER)
                / scapy.GRE(chksum_present=1, key_present=1, seqnum_present=1, key=7, sequence_number=8)
                / p
            ),
            id="gre with all its options",
        ),
        pytest.param(lambda p: ether() / scapy.IP(**OUTER) / scapy.GRE(proto=0x6558) / ether() / p, id="gre bridge"),
        pytest.param(
            lambda p: ether() / scapy.IP(**OUTER) / scapy.UDP(sport=9, dport=4789) / vxlan() / ether() / p, id="vxlan"
        ),
        pytest.param(
            lambda p: (
                ether()
                / scapy.IPv6(src="fd00::5", dst="fd00::6")
                / scapy.UDP(sport=9, dport=4789)
                / vxlan()
                / ether()
                / scapy.Dot1Q(vlan=3)
                / p
            ),
            id="vxlan over ipv6 with a tag inside",
        ),
        pytest.param(
            lambda p: ether() / scapy.IP(**OUTER) / scapy.UDP(sport=9, dport=8472) / vxlan() / ether() / p,
            id="vxlan on the port of flannel",
        ),
        pytest.param(
            lambda p: ether() / scapy.IP(**OUTER) / scapy.UDP(sport=9, dport=6081) / geneve(0x6558) / ether() / p,
            id="geneve",
        ),
        pytest.param(
            lambda p: (
                ether()
                / scapy.IP(**OUTER)
                / scapy.UDP(sport=9, dport=6081)
                / geneve(0x6558, b"\x01\x02\x03\x01abcd")
                / ether()
                / p
            ),
            id="geneve with options",
        ),
        pytest.param(
            lambda p: (
                ether()
                / scapy.IP(**OUTER)
                / scapy.GRE(proto=0x88BE, seqnum_present=1, sequence_number=1)
                / scapy.Raw(bytes.fromhex("1001000000000000"))
                / ether()
                / p
            ),
            id="erspan ii",
        ),
        pytest.param(
            lambda p: (
                ether()
                / scapy.IP(**OUTER)
                / scapy.GRE(proto=0x22EB, seqnum_present=1, sequence_number=1)
                / scapy.Raw(bytes.fromhex("200100000000000000000000"))
                / ether()
                / p
            ),
            id="erspan iii",
        ),
        pytest.param(
            lambda p: scapy.Ether(type=0x8847) / scapy.Raw(bytes.fromhex("000640400007d1ff")) / p, id="two mpls labels"
        ),
        pytest.param(
            lambda p: ether() / scapy.PPPoE(sessionid=1) / scapy.PPP(proto=0x21 if p.version == 4 else 0x57) / p,
            id="pppoe",
        ),
    ],
)
def test_ethernet_carries(wrap: Callable[[Any], Any], tmp_path: Path) -> None:
    """Segments are found behind tags, tunnels and padding, and what is no TCP is counted."""
    path = write(tmp_path / "capture.pcap", [wrap(packet) for packet in both() + others()], linktype=1)
    check(path, 10, "-d", "udp.port==8472,vxlan")


def vxlan() -> Any:
    return scapy.Raw(bytes.fromhex("0800000000012300"))


def geneve(kind: int, options: bytes = b"") -> Any:
    return scapy.Raw(bytes([len(options) // 4, 0]) + kind.to_bytes(2) + bytes.fromhex("00012300") + options)


@pytest.mark.parametrize("link_type", [12, 101])
def test_raw_ip_is_told_by_its_version(link_type: int, tmp_path: Path) -> None:
    """Link types without any header of their own."""
    check(write(tmp_path / "capture.pcap", both() + others(), linktype=link_type), 10)


@pytest.mark.parametrize(("link_type", "v6"), [(228, False), (229, True)])
def test_raw_ip_of_one_version(link_type: int, v6: bool, tmp_path: Path) -> None:
    """Link types that fix the version."""
    check(write(tmp_path / "capture.pcap", requests(v6=v6), linktype=link_type), 5)


@pytest.mark.parametrize("family", [24, 28, 30])
@pytest.mark.parametrize("order", ["little", "big"])
def test_null_link_type_in_either_byte_order(family: int, order: Literal["little", "big"], tmp_path: Path) -> None:
    """The address family is in the byte order of the capturing machine, and IPv6 has four numbers."""
    packets = [(2 if p.version == 4 else family).to_bytes(4, order) + bytes(p) for p in both() + others()]
    path = tmp_path / "capture.pcap"
    path.write_bytes(packet_builder.pcap(packets, link_type=0))
    check(path, 10)


def test_null_link_type_as_linux_numbers_ipv6() -> None:
    """Linux's own AF_INET6 is 10, which tshark does not take for IPv6."""
    packets = [b"\x0a\0\0\0" + bytes(p) for p in requests(v6=True)]
    segments, captures = read(packet_builder.pcap(packets, link_type=0))
    assert len(segments) == 5 and captures.other_packets == {}


def test_loopback_link_type(tmp_path: Path) -> None:
    """OpenBSD's loopback has its family in network order."""
    packets = [scapy.Raw((2 if p.version == 4 else 24).to_bytes(4) + bytes(p)) for p in both() + others()]
    check(write(tmp_path / "capture.pcap", packets, linktype=108), 10)


def test_linux_cooked_capture(tmp_path: Path) -> None:
    """What tcpdump -i any wrote for twenty years, with and without a VLAN tag."""
    packets = [scapy.CookedLinux() / p for p in both() + others()]
    packets += [scapy.CookedLinux() / scapy.Dot1Q(vlan=3) / p for p in both()]
    check(write(tmp_path / "capture.pcap", packets, linktype=113), 20)


def test_linux_cooked_capture_v2(tmp_path: Path) -> None:
    """What tcpdump -i any writes now."""
    packets = [
        scapy.Raw((0x0800 if p.version == 4 else 0x86DD).to_bytes(2) + bytes(18) + bytes(p)) for p in both() + others()
    ]
    check(write(tmp_path / "capture.pcap", packets, linktype=276), 10)


@pytest.mark.parametrize("framing", [b"\xff\x03", b""])
def test_ppp(framing: bytes, tmp_path: Path) -> None:
    """PPP with and without its address and control bytes."""
    packets = [scapy.Raw(framing + (0x21 if p.version == 4 else 0x57).to_bytes(2) + bytes(p)) for p in both()]
    check(write(tmp_path / "capture.pcap", packets, linktype=9), 10)


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
    outer = scapy.IP(**OUTER, id=4) / scapy.UDP(sport=9, dport=4789) / vxlan() / inner
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
