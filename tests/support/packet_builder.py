"""Captures and packets made by hand, byte by byte, for the cases that no library writes."""

from __future__ import annotations

import struct
from collections.abc import Iterable

MACS = bytes.fromhex("020000000001020000000002")
CLIENT = bytes([10, 0, 0, 1])
BROKER = bytes([10, 0, 0, 200])
FLOW = CLIENT + BROKER + struct.pack(">HH", 40000, 9092)


def tcp(payload: bytes = b"", *, seq: int = 1, ack: int = 2, flags: int = 0x18, words: int = 5) -> bytes:
    """A TCP segment from port 40000 to 9092; ``words`` is the data offset it claims."""
    options = b"\x01" * (words * 4 - 20)
    return struct.pack(">HHLLBBHHH", 40000, 9092, seq, ack, words << 4, flags, 1000, 0, 0) + options + payload


def ipv4(
    payload: bytes,
    *,
    protocol: int = 6,
    total: int | None = None,
    identification: int = 1,
    fragment: int = 0x4000,
    options: bytes = b"",
) -> bytes:
    """An IPv4 datagram from CLIENT to BROKER; ``fragment`` is the word of flags and offset."""
    header = 20 + len(options)
    total = header + len(payload) if total is None else total
    first = 0x40 | header // 4
    front = struct.pack(">BBHHHBBH", first, 0, total, identification, fragment, 64, protocol, 0)
    return front + CLIENT + BROKER + options + payload


def ipv6(payload: bytes, *, following: int = 6, length: int | None = None) -> bytes:
    """An IPv6 datagram from ::1 to ::2."""
    length = len(payload) if length is None else length
    return struct.pack(">LHBB", 6 << 28, length, following, 64) + bytes(15) + b"\x01" + bytes(15) + b"\x02" + payload


def ethernet(payload: bytes, kind: int | None = None) -> bytes:
    """An Ethernet frame; without ``kind`` the payload is IP and tells its version itself."""
    if kind is None:
        kind = 0x86DD if payload[0] >> 4 == 6 else 0x0800
    return MACS + struct.pack(">H", kind) + payload


def pcap_header(*, order: str = "<", magic: int = 0xA1B2C3D4, snap_length: int = 262144, link_type: int = 1) -> bytes:
    return struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap_length, link_type)


def pcap(
    packets: Iterable[bytes],
    *,
    order: str = "<",
    magic: int = 0xA1B2C3D4,
    snap_length: int = 262144,
    link_type: int = 1,
    seconds: int = 1_700_000_000,
    wire: int | None = None,
) -> bytes:
    """A pcap file; packet number i (from 0) has the fraction i."""
    pieces = [pcap_header(order=order, magic=magic, snap_length=snap_length, link_type=link_type)]
    for i, packet in enumerate(packets):
        pieces.append(struct.pack(order + "IIII", seconds, i, len(packet), wire or len(packet)) + packet)
    return b"".join(pieces)


class Pcapng:
    """Blocks of one byte order, put together with ``+``."""

    def __init__(self, order: str = "<") -> None:
        self.order = order

    def block(self, kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack(self.order + "I", len(body) + 12)
        return struct.pack(self.order + "I", kind) + length + body + length

    def option(self, code: int, value: bytes) -> bytes:
        return struct.pack(self.order + "HH", code, len(value)) + value + bytes(-len(value) % 4)

    def section(self, length: int = -1) -> bytes:
        return self.block(0x0A0D0D0A, struct.pack(self.order + "IHHq", 0x1A2B3C4D, 1, 0, length))

    def interface(self, link_type: int = 1, snap_length: int = 0, options: bytes = b"") -> bytes:
        return self.block(1, struct.pack(self.order + "HHI", link_type, 0, snap_length) + options)

    def resolution(self, value: int) -> bytes:
        return self.option(9, bytes([value]))

    def offset(self, seconds: int) -> bytes:
        return self.option(14, struct.pack(self.order + "q", seconds))

    def enhanced(self, packet: bytes, *, ticks: int = 0, interface: int = 0, options: bytes = b"") -> bytes:
        front = struct.pack(self.order + "5I", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet))
        return self.block(6, front + packet + bytes(-len(packet) % 4) + options)

    def simple(self, packet: bytes, wire: int | None = None) -> bytes:
        return self.block(3, struct.pack(self.order + "I", len(packet) if wire is None else wire) + packet)

    def obsolete(self, packet: bytes, *, ticks: int = 0, interface: int = 0) -> bytes:
        front = struct.pack(
            self.order + "HHIIII", interface, 0xFFFF, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet)
        )
        return self.block(2, front + packet)
