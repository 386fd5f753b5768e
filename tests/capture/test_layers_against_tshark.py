"""Every link type, tag and tunnel: what tshark finds behind them, and what we do."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support import packet_builder
from tests.support.scapy_packets import OUTER, both, check, ether, others, scapy, write
from tests.support.tshark_view import by_tshark, by_us

pytestmark = pytest.mark.slow


def contributed(module: str, name: str) -> Any:
    """A layer of scapy's contributed ones."""
    return getattr(import_module(f"scapy.contrib.{module}"), name)


def kind(p: Any) -> bytes:
    """The ethertype of an IP packet."""
    return b"\x08\x00" if p.version == 4 else b"\x86\xdd"


def tagged(ethertype: int, tag: str) -> Callable[[Any], Any]:
    """Ethernet, a tag in hex behind its ethertype, and the ethertype of the packet."""
    return lambda p: scapy.Ether(type=ethertype) / scapy.Raw(bytes.fromhex(tag) + kind(p)) / p


def bridged(ethertype: int, tag: str) -> Callable[[Any], Any]:
    """Ethernet, a header in hex, and the packet in an Ethernet frame."""
    return lambda p: scapy.Ether(type=ethertype) / scapy.Raw(bytes.fromhex(tag)) / ether() / p


def udp(port: int, wrap: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A UDP datagram to ``port``."""
    return lambda p: ether() / scapy.IP(**OUTER) / scapy.UDP(sport=49999, dport=port) / wrap(p)


def raw(text: str) -> Any:
    return scapy.Raw(bytes.fromhex(text))


def ip(protocol: int, wrap: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An IPv4 packet of a protocol."""
    return lambda p: ether() / scapy.IP(**OUTER, proto=protocol) / wrap(p)


def ppp(p: Any) -> Any:
    """The packet behind PPP's protocol field."""
    return scapy.Raw(b"\x00\x21" if p.version == 4 else b"\x00\x57") / p


def next_protocol(p: Any) -> str:
    """1 for IPv4, 2 for IPv6, as NSH and VXLAN-GPE number them."""
    return "01" if p.version == 4 else "02"


def macsec(p: Any) -> Any:
    """A SecTAG with a channel identifier that neither encrypts nor changes what follows, and the check value."""
    return tagged(0x88E5, "2000000000070200000000010001")(p) / scapy.Padding(bytes(16))


def gre(wrap: Callable[[Any], Any], **fields: Any) -> Callable[[Any], Any]:
    return lambda p: ether() / scapy.IP(**OUTER) / scapy.GRE(**fields) / wrap(p)


TAGS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda p: ether() / p,
    "vlan": lambda p: ether() / scapy.Dot1Q(vlan=5) / p,
    "qinq": lambda p: ether() / scapy.Dot1AD(vlan=9) / scapy.Dot1Q(vlan=5) / p,
    "three tags": lambda p: ether() / scapy.Dot1Q() / scapy.Dot1Q() / scapy.Dot1Q() / p,
    "llc and snap": lambda p: scapy.Dot3() / scapy.LLC() / scapy.SNAP() / p,
    "padded": lambda p: ether() / p / scapy.Padding(bytes(13)),
    "pppoe": lambda p: ether() / scapy.PPPoE(sessionid=1) / ppp(p),
    "cisco metadata": tagged(0x8909, "010100010005"),
    "vn-tag": tagged(0x8926, "00010002"),
    "802.1br e-tag": tagged(0x893F, "000000010000"),
    "hsr": tagged(0x892F, "00340001"),
    "pbb": bridged(0x88E7, "00000123"),
    "pbb with a vlan inside": lambda p: scapy.Ether(type=0x88E7) / raw("00000123") / ether() / scapy.Dot1Q() / p,
    "macsec without encryption": macsec,
    "nsh": lambda p: scapy.Ether(type=0x894F) / contributed("nsh", "NSH")(nextproto=int(next_protocol(p))) / p,
    "nsh with ethernet": lambda p: scapy.Ether(type=0x894F) / contributed("nsh", "NSH")(nextproto=3) / ether() / p,
    "nsh of type 2": lambda p: scapy.Ether(type=0x894F) / raw(f"0fc202{next_protocol(p)}00000100") / p,
    "fabricpath": lambda p: scapy.Ether(type=0x8903) / raw("0041") / ether() / p / scapy.Padding(bytes(4)),
    "trill": bridged(0x22F3, "000000010002"),
    "two labels": lambda p: scapy.Ether(type=0x8847) / raw("00020040000301ff") / p,
    "pptp": lambda p: (
        ether()
        / scapy.IP(**OUTER, proto=47)
        / raw("3081880b" + f"{len(bytes(p)) + 4:04x}" + "00010000000100000001")
        / raw("ff03")
        / ppp(p)
    ),
}


PSEUDOWIRES = {"00020140": "pwethnocw", "0002014000000000": "pwethcw", "000310000002014000000123": "pwethcw"}


@pytest.mark.parametrize("labels", PSEUDOWIRES)
def test_pseudowires(labels: str, tmp_path: Path) -> None:
    """Labels may be followed by an Ethernet frame, with or without a control word, which tshark has to be told."""
    packets = [scapy.Ether(type=0x8847) / raw(labels) / ether() / p for p in both() + others()]
    check(write(tmp_path / "capture.pcap", packets), 10, "-d", f"mpls.label==32,{PSEUDOWIRES[labels]}")


@pytest.mark.parametrize("name", TAGS)
def test_tags(name: str, tmp_path: Path) -> None:
    """Segments are found behind every tag that tshark reads."""
    wrap = TAGS[name]
    check(write(tmp_path / "capture.pcap", [wrap(p) for p in both() + others()], linktype=1), 10)


def gtp(p: Any, **fields: Any) -> Any:
    return contributed("gtp", "GTP_U_Header")(teid=7, **fields) / p


L2TP_V3 = ("-o", "l2tp.cookie_size:None", "-o", "l2tp.l2_specific:None", "-d", "l2tp.pw_type==0,eth")

TUNNELS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "ip in ip": (lambda p: ether() / scapy.IP(**OUTER) / p, ()),
    "ip in ipv6": (lambda p: ether() / scapy.IPv6(src="fd00::5", dst="fd00::6") / p, ()),
    "gre": (gre(lambda p: p), ()),
    "gre with all its options": (
        gre(lambda p: p, chksum_present=1, key_present=1, seqnum_present=1, key=7, sequence_number=8),
        (),
    ),
    "gre bridge": (gre(lambda p: ether() / p, proto=0x6558), ()),
    "gre with mpls": (gre(lambda p: raw("00020140") / p, proto=0x8847), ()),
    "gre with nsh": (gre(lambda p: contributed("nsh", "NSH")(nextproto=3) / ether() / p, proto=0x894F), ()),
    "erspan ii": (
        gre(lambda p: raw("1001000000000000") / ether() / p, proto=0x88BE, seqnum_present=1, sequence_number=1),
        (),
    ),
    "erspan iii": (
        gre(lambda p: raw("200100000000000000000000") / ether() / p, proto=0x22EB, seqnum_present=1, sequence_number=1),
        (),
    ),
    "vxlan": (udp(4789, lambda p: raw("0800000000012300") / ether() / p), ()),
    "vxlan over ipv6 with a tag inside": (
        lambda p: (
            ether()
            / scapy.IPv6(src="fd00::5", dst="fd00::6")
            / scapy.UDP(sport=9, dport=4789)
            / scapy.VXLAN(vni=5)
            / ether()
            / scapy.Dot1Q(vlan=3)
            / p
        ),
        (),
    ),
    "vxlan on the port of flannel": (
        udp(8472, lambda p: raw("0800000000012300") / ether() / p),
        ("-d", "udp.port==8472,vxlan"),
    ),
    "vxlan on another port": (udp(4799, lambda p: scapy.VXLAN(vni=5) / ether() / p), ("-d", "udp.port==4799,vxlan")),
    "vxlan with a group policy": (
        udp(4800, lambda p: scapy.VXLAN(flags="G+Instance", vni=5, gpid=99) / ether() / p),
        ("-d", "udp.port==4800,vxlan"),
    ),
    "vxlan-gpe": (udp(4790, lambda p: raw(f"0c0000{next_protocol(p)}00000500") / p), ()),
    "vxlan-gpe with ethernet": (udp(4790, lambda p: raw("0c00000300000500") / ether() / p), ()),
    "vxlan-gpe with nsh": (
        udp(4790, lambda p: raw("0c00000400000500") / contributed("nsh", "NSH")(nextproto=3) / ether() / p),
        (),
    ),
    "geneve": (udp(6081, lambda p: raw("0000655800012300") / ether() / p), ()),
    "geneve with options": (udp(6081, lambda p: raw("02006558000123000102030161626364") / ether() / p), ()),
    "geneve on another port": (
        udp(6082, lambda p: raw("0200655800012300aabb010100000000") / ether() / p),
        ("-d", "udp.port==6082,geneve"),
    ),
    "gtp-u": (udp(2152, gtp), ()),
    "gtp-u with a sequence number": (udp(2152, lambda p: gtp(p, S=1, seq=3)), ()),
    "gtp-u of 5g": (
        udp(
            2152,
            lambda p: (
                contributed("gtp", "GTP_U_Header")(teid=7, E=1, next_ex=0x85)
                / contributed("gtp", "GTPPDUSessionContainer")(type=0, QFI=3)
                / p
            ),
        ),
        (),
    ),
    "tzsp": (
        udp(
            37008,
            lambda p: contributed("tzsp", "TZSP")() / contributed("tzsp", "TZSPTagEnd")() / ether() / p,
        ),
        (),
    ),
    "tzsp with fields": (udp(37008, lambda p: raw("0100000128040102030401") / ether() / p), ()),
    "mpls in udp": (udp(6635, lambda p: raw("00020140") / p), ()),
    "gre in udp": (udp(4754, lambda p: scapy.GRE() / p), ()),
    "l2tp": (udp(1701, lambda p: raw("000200010002ff03") / ppp(p)), ()),
    "l2tp with a length and sequence": (
        udp(1701, lambda p: raw("4802" + f"{len(bytes(p)) + 16:04x}" + "0001000200030004ff03") / ppp(p)),
        (),
    ),
    "lisp": (udp(4341, lambda p: raw("0800000000000100") / p), ()),
    "capwap": (udp(5247, lambda p: raw("0010020000000000") / ether() / p), ()),
    "foo over udp": (udp(5555, lambda p: p), ("-d", "udp.port==5555,ip")),
    "etherip": (ip(97, lambda p: contributed("etherip", "EtherIP")() / ether() / p), ()),
    "mpls in ip": (ip(137, lambda p: raw("00020140") / p), ()),
    "l2tpv3": (ip(115, lambda p: raw("00000007") / ether() / p), L2TP_V3),
    "wccp": (ip(47, lambda p: raw("0000883e00000000") / p), ()),
    "authentication header": (
        ip(51, lambda p: scapy.AH(nh=4 if p.version == 4 else 41, spi=1, seq=2, icv=bytes(12), payloadlen=4) / p),
        (),
    ),
}


@pytest.mark.parametrize("name", TUNNELS)
def test_tunnels(name: str, tmp_path: Path) -> None:
    """Segments are found in every tunnel that tshark reads."""
    wrap, options = TUNNELS[name]
    check(write(tmp_path / "capture.pcap", [wrap(p) for p in both() + others()], linktype=1), 10, *options)


def wifi(p: Any, **fields: Any) -> Any:
    frame = scapy.Dot11(type=2, subtype=0, FCfield=1, **fields)
    return frame / scapy.LLC() / scapy.SNAP(code=int.from_bytes(kind(p))) / p


def pktap(link_type: int, packet: Any) -> Any:
    """Apple's header of 108 bytes, as tcpdump -i pktap writes it."""
    process = struct.pack("<I20sIHHI20s", 77, b"java", 0, 6, 0, 77, b"java")
    return scapy.Raw(struct.pack("<III24sIIII", 108, 1, link_type, b"en0", 1, 2, 14, 0) + process) / packet


def preamble(frame: bytes) -> Any:
    """An Ethernet frame as it is on the wire (IEEE 802.3)."""
    return raw("55555555555555d5") / scapy.Raw(frame + zlib.crc32(frame).to_bytes(4, "little"))


def nflog(p: Any) -> Any:
    """Family, version, group; prefix, the packet."""
    data = bytes(p)
    fields = struct.pack("<HH4sHH8s", 8, 1, b"\x08\0\1\0", 10, 10, b"kafka\0\0\0")
    front = bytes([2 if p.version == 4 else 10, 0]) + b"\0\5"
    return scapy.Raw(front + fields + struct.pack("<HH", len(data) + 4, 9) + data)


def ppi(link_type: int, packet: Any) -> Any:
    return scapy.Raw(struct.pack("<BBHI", 0, 0, 8, link_type)) / packet


def switch(tag: str) -> Callable[[Any], Any]:
    """A DSA tag in hex between the addresses and the ethertype."""
    return lambda p: scapy.Raw(packet_builder.MACS + bytes.fromhex(tag) + kind(p)) / p


def juniper(flags: str) -> Any:
    return raw("4d4743" + flags)


def family(v6: int, order: Literal["little", "big"] = "big") -> Callable[[Any], Any]:
    """The address family in front, whose number for IPv6 is the capturing system's, as is the order of its bytes."""
    return lambda p: scapy.Raw((2 if p.version == 4 else v6).to_bytes(4, order)) / p


LINK_TYPES: dict[str, tuple[int, Callable[[Any], Any]]] = {
    **{f"null of family {v6}": (0, family(v6, "little")) for v6 in (24, 28, 30)},
    **{f"null of family {v6}, big-endian": (0, family(v6)) for v6 in (24, 28, 30)},
    "openbsd's loopback": (108, family(24)),
    "raw ip of bsd": (12, lambda p: p),
    "raw ip": (101, lambda p: p),
    "linux cooked": (113, lambda p: scapy.CookedLinux() / p),
    "linux cooked with a vlan": (113, lambda p: scapy.CookedLinux() / scapy.Dot1Q(vlan=3) / p),
    "linux cooked v2": (276, lambda p: scapy.Raw(kind(p) + bytes(18)) / p),
    "ppp": (9, ppp),
    "ppp with address and control": (9, lambda p: raw("ff03") / ppp(p)),
    "pktap": (258, lambda p: pktap(1, ether() / p)),
    "pktap with raw ip": (258, lambda p: pktap(12, p)),
    "nflog": (239, nflog),
    "ppi": (192, lambda p: ppi(1, ether() / p)),
    "ppi with 802.11": (192, lambda p: ppi(105, wifi(p))),
    "802.11": (105, wifi),
    "802.11 with qos": (
        105,
        lambda p: (
            scapy.Dot11(type=2, subtype=8, FCfield=2)
            / scapy.Dot11QoS()
            / scapy.LLC()
            / scapy.SNAP(code=int.from_bytes(kind(p)))
            / p
        ),
    ),
    "802.11 between access points": (
        105,
        lambda p: (
            scapy.Dot11(type=2, subtype=0, FCfield=3, addr4="02:00:00:00:00:09")
            / scapy.LLC()
            / scapy.SNAP(code=int.from_bytes(kind(p)))
            / p
        ),
    ),
    "radiotap": (127, lambda p: scapy.RadioTap() / wifi(p)),
    "avs": (163, lambda p: scapy.Raw(struct.pack(">II", 0x80211001, 64) + bytes(56)) / wifi(p)),
    "prism": (119, lambda p: scapy.Raw(struct.pack("<II", 0x44, 144) + bytes(136)) / wifi(p)),
    "pppoe": (51, lambda p: scapy.PPPoE(sessionid=1) / ppp(p)),
    "atm": (100, lambda p: raw("aaaa03000000") / scapy.Raw(kind(p)) / p),
    "atm with bridged ethernet": (100, lambda p: raw("aaaa030080c200070000") / ether() / p),
    "cisco hdlc": (104, lambda p: raw("0f00") / scapy.Raw(kind(p)) / p),
    "frame relay": (107, lambda p: raw("184103" + ("cc" if p.version == 4 else "8e")) / p),
    "frame relay with snap": (107, lambda p: raw("1841030080000000") / scapy.Raw(kind(p)) / p),
    "openbsd's enc": (109, lambda p: raw(("02000000" if p.version == 4 else "18000000") + "0000000700000000") / p),
    "pf's log": (
        117,
        lambda p: scapy.Raw(bytes([61, 2 if p.version == 4 else 24, 0, 0]) + b"em0".ljust(60, b"\0")) / p,
    ),
    "ip over firewire": (138, lambda p: scapy.Raw(bytes(16) + kind(p)) / p),
    "ppp with a direction": (204, lambda p: raw("01ff03" + ("0021" if p.version == 4 else "0057")) / p),
    "juniper ethernet": (178, lambda p: juniper("00") / ether() / p),
    "juniper ethernet with extensions": (178, lambda p: juniper("800006020104010101") / ether() / p),
    "erf": (197, lambda p: erf(bytes(ether() / p))),
    "ipnet": (
        226,
        lambda p: scapy.Raw(struct.pack(">BBHIIIII", 1, 2 if p.version == 4 else 26, 1, len(p), 1, 0, 0, 0)) / p,
    ),
    "ip over infiniband": (242, lambda p: scapy.Raw(bytes(40) + kind(p) + b"\0\0") / p),
    "ethernet with preamble": (274, lambda p: preamble(bytes(ether() / p))),
    "fddi": (10, lambda p: scapy.Raw(b"\x50" + packet_builder.MACS + bytes.fromhex("aaaa03000000") + kind(p)) / p),
}


def erf(frame: bytes) -> Any:
    size = 18 + len(frame)
    return scapy.Raw(struct.pack("<Q", 1700000000 << 32) + struct.pack(">BBHHH2x", 2, 4, size, 0, len(frame))) / frame


@pytest.mark.parametrize("name", LINK_TYPES)
def test_link_types(name: str, tmp_path: Path) -> None:
    """Segments are found on every link type that tshark reads."""
    link_type, wrap = LINK_TYPES[name]
    path = tmp_path / "capture.pcap"
    path.write_bytes(packet_builder.pcap([bytes(wrap(p)) for p in both() + others()], link_type=link_type))
    theirs = by_tshark(path)
    assert len(theirs) == 10
    told = 2 if name == "erf" else 0  # whose records have a time of their own, which is the one that tshark shows
    assert [one[told:] for one in by_us(path)] == [one[told:] for one in theirs]


#: Link types that tshark 4.0 does not read, and tcpdump at least knows.
READ_BY_TCPDUMP: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "pppd": (166, lambda p: raw("0003" + ("0021" if p.version == 4 else "0057")) / p),
    "cisco hdlc with a direction": (205, lambda p: raw("010f00") / scapy.Raw(kind(p)) / p),
    "mpls": (219, lambda p: raw("00020140") / p),
    "netanalyzer": (240, lambda p: raw("00000000") / ether() / p),
    "dsa of broadcom": (281, switch("00000001")),
    "dsa of broadcom in front": (282, lambda p: raw("00000001") / ether() / p),
    "dsa": (284, switch("c0010000")),
    "edsa": (285, switch("dada0000c0010000")),
}


@pytest.mark.parametrize("name", READ_BY_TCPDUMP)
def test_link_types_that_tcpdump_reads(name: str, tmp_path: Path) -> None:
    """Segments are those of the packets without the header, and tcpdump sees as many where it prints what is inside."""
    link_type, wrap = READ_BY_TCPDUMP[name]
    path = write(tmp_path / "capture.pcap", [wrap(p) for p in both()], linktype=link_type)
    bare = write(tmp_path / "bare.pcap", both(), linktype=101)
    assert by_us(path) == by_us(bare)
    tcpdump = shutil.which("tcpdump")
    if tcpdump is None:
        pytest.skip("tcpdump is not installed")
    lines = subprocess.run([tcpdump, "-nt", "-r", path], capture_output=True, text=True, check=True).stdout
    assert lines.startswith("UNSUPPORTED") or lines.count(".41000 > ") == 10
