"""Packets that scapy builds, and the comparison of what tshark and we find in them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support.tshark_view import by_tshark, by_us


class Scapy:
    """``scapy.all``, imported when something of it is first used: that takes longer than to collect a hundred tests."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):  # what pytest asks every global of a module for
            raise AttributeError(name)
        return getattr(import_module("scapy.all"), name)


scapy: Any = Scapy()


def requests(source: str = "10.1.0.1", destination: str = "10.1.0.9", v6: bool = False) -> list[Any]:
    """A few segments of a connection: options in the handshake, data, odd flags, an empty acknowledgement."""
    ip = scapy.IPv6(src="fd00::1", dst="fd00::9") if v6 else scapy.IP(src=source, dst=destination)
    tcp = {"sport": 41000, "dport": 9092}
    return [
        ip / scapy.TCP(**tcp, flags="S", seq=4294967290, options=[("MSS", 1460), ("WScale", 7), ("SAckOK", b"")]),
        ip / scapy.TCP(**tcp, flags="A", seq=4294967291, ack=77),
        ip / scapy.TCP(**tcp, flags="PA", seq=4294967291, ack=77, options=[("Timestamp", (1, 2))]) / b"\0\0\0\x04kafka",
        ip / scapy.TCP(**tcp, flags="FPUEC", seq=3, ack=4000000000) / bytes(range(200)),
        ip / scapy.TCP(**tcp, flags="R", seq=5),
    ]


def others() -> list[Any]:
    """What is no TCP and must be counted without disturbing its neighbours."""
    ip = scapy.IP(src="10.1.0.1", dst="10.1.0.9")
    return [
        ip / scapy.UDP(sport=5000, dport=53) / bytes(20),
        ip / scapy.ICMP(),
        scapy.IP(src="10.1.0.1", dst="10.1.0.9", proto=89) / b"hello",
        scapy.IPv6(src="fd00::1", dst="fd00::9") / scapy.ICMPv6EchoRequest(),
    ]


def both() -> list[Any]:
    return requests() + requests(v6=True)


def ether() -> Any:
    return scapy.Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")


def write(path: Path, packets: Iterable[Any], **options: Any) -> Path:
    for i, packet in enumerate(packets):
        packet.time = 1700000000 + i * 0.25
    scapy.wrpcap(str(path), packets, **options)
    return path


def check(path: Path, expected: int, *options: str) -> None:
    """tshark and we agree, and both found something in every one of ``expected`` packets."""
    theirs = by_tshark(path, *options)
    assert len(theirs) == expected
    assert by_us(path) == theirs


OUTER = {"src": "192.168.0.1", "dst": "192.168.0.2"}
