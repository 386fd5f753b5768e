"""Packets built anew: Ethernet, IP and TCP with pseudonyms for addresses, and nothing that stood around them.

Sources: RFC 791, RFC 8200, RFC 9293, RFC 1071 (checksums). Ports, numbers, flags and window are those of the segment,
as are the options that TCP itself needs. Tags, tunnels, identifications and times to live are not taken over.
"""

from __future__ import annotations

import struct
from typing import Final

from kwiresniff.model import Segment
from kwiresniff.packets.anonymous.pseudonyms import Pseudonyms
from kwiresniff.packets.tcp_events import header_of

_IPV4, _IPV6 = 0x0800, 0x86DD
_TCP: Final = 6
_TIME_TO_LIVE: Final = 64
_DO_NOT_FRAGMENT: Final = 0x4000
_MOST: Final = 0xFFFF
#: Kinds of TCP options that are kept: maximum segment size, window scale, SACK permitted, SACK, timestamps.
_KEPT_OPTIONS: Final = b"\x02\x03\x04\x05\x08"
_NO_OPERATION: Final = 1


def rebuilt(segment: Segment, payload: bytes, pseudonyms: Pseudonyms) -> tuple[bytes, int]:
    """The packet that carries ``payload`` in the place of that of a segment, and its length on the wire."""
    _, _, flow, seq, ack, flags, buffer, start, _, missing = segment
    size = (len(flow) - 4) // 2
    source, destination = flow[:size], flow[size : 2 * size]
    new = pseudonyms.address(source), pseudonyms.address(destination)
    tcp = _tcp(flow[-4:], seq, ack, flags, buffer, start, flow)
    total = len(tcp) + len(payload) + missing
    lengths = struct.pack(">HH", _TCP, total & _MOST) if size == 4 else struct.pack(">II", total, _TCP)
    pseudo = new[0] + new[1] + lengths
    tcp[16:18] = _checksum(pseudo + tcp + payload).to_bytes(2, "big")
    ethernet = pseudonyms.mac(destination) + pseudonyms.mac(source)
    if size == 4:
        ip = _ipv4(new[0], new[1], total)
        ethernet += _IPV4.to_bytes(2, "big")
    else:
        ip = struct.pack(">IHBB", 6 << 28, total if total <= _MOST else 0, _TCP, _TIME_TO_LIVE) + new[0] + new[1]
        ethernet += _IPV6.to_bytes(2, "big")
    packet = ethernet + ip + bytes(tcp) + payload
    return packet, len(packet) + missing


def _ipv4(source: bytes, destination: bytes, size: int) -> bytes:
    """A header; of what is too long, as segmentation offload has it, the length is 0."""
    total = size + 20 if size + 20 <= _MOST else 0
    header = struct.pack(">BBHHHBBH", 0x45, 0, total, 0, _DO_NOT_FRAGMENT, _TIME_TO_LIVE, _TCP, 0)
    checksum = _checksum(header + source + destination)
    return header[:10] + checksum.to_bytes(2, "big") + source + destination


def _tcp(ports: bytes, seq: int, ack: int, flags: int, buffer: bytes, start: int, flow: bytes) -> bytearray:
    header = header_of(buffer, start, flow)
    options = b"" if header is None else _options(buffer[header + 20 : start])
    window = b"\0\0" if header is None else buffer[header + 14 : header + 16]
    words = 5 + len(options) // 4
    return bytearray(ports + struct.pack(">IIBB", seq, ack, words << 4, flags & 0xFF) + window + bytes(4) + options)


def _options(options: bytes) -> bytes:
    """The options with no operations for those that TCP does not need."""
    out = bytearray([_NO_OPERATION]) * len(options)
    at = 0
    while at + 1 < len(options) and options[at]:
        if options[at] == _NO_OPERATION:
            at += 1
            continue
        size = options[at + 1]
        if size < 2 or at + size > len(options):
            break
        if options[at] in _KEPT_OPTIONS:
            out[at : at + size] = options[at : at + size]
        at += size
    return bytes(out)


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > _MOST:
        total = (total & _MOST) + (total >> 16)
    return ~total & _MOST
