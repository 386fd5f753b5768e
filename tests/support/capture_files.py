"""Capture files made of hand-made conversations: classic pcap, raw IPv4, TCP without checksums."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from struct import pack, unpack_from

from kwiresniff.model import Segment
from tests.support.conversation import Wire, heartbeat, heartbeat_response, request, response, string

LINKTYPE_RAW = 101
SNAPLEN = 262_144


def pcap(segments: Sequence[Segment]) -> bytes:
    """The segments as the packets of a nanosecond pcap file."""
    parts = [pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, LINKTYPE_RAW)]
    for _, time_ns, flow, seq, ack, flags, buffer, start, end, missing in segments:
        length = 40 + end - start + missing
        ip = pack(">BBHHHBBH", 0x45, 0, length, 0, 0, 64, 6, 0) + flow[:8]
        tcp = flow[8:12] + pack(">IIBBHHH", seq, ack, 0x50, flags, 0xFFFF, 0, 0)
        packet = ip + tcp + buffer[start:end]
        parts.append(pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(packet), length) + packet)
    return b"".join(parts)


def raw_packets(capture: bytes) -> list[tuple[int, bytes, int, int, int]]:
    """The packets of such a file as a live capture gives them: time, buffer, start, end, bytes on the wire."""
    found, at = [], 24
    while at < len(capture):
        seconds, fraction, size, wire = unpack_from("<IIII", capture, at)
        found.append((seconds * 10**9 + fraction, capture, at + 16, at + 16 + size, wire))
        at += 16 + size
    return found


def save(path: Path, *wires: Wire) -> str:
    """Writes the conversations one after the other and returns the file's name."""
    path.write_bytes(pcap([segment for wire in wires for segment in wire.segments]))
    return str(path)


def heartbeats(count: int, *, failing: bool = False, client_port: int = 40_000) -> Wire:
    """A connection with ``count`` heartbeats, each answered after a millisecond; the last with an error if asked."""
    wire = Wire(client_port=client_port).open()
    for number in range(1, count + 1):
        wire.up(heartbeat(number))
        wire.down(heartbeat_response(number, 27 if failing and number == count else 0))
    return wire.close()


def metadata_v0(topic: str, correlation_id: int = 1) -> Wire:
    """A Metadata v0 request for one topic, answered with UNKNOWN_TOPIC_OR_PARTITION."""
    asked = request(3, 0, correlation_id, pack(">i", 1) + string(topic))
    topics = pack(">i", 1) + pack(">h", 3) + string(topic) + pack(">i", 0)
    return Wire().open().up(asked).down(response(correlation_id, pack(">i", 0) + topics)).close()


def irc() -> Wire:
    """Something else on Kafka's port."""
    return Wire().open().up(b"NICK somebody\r\nUSER a b c d\r\n").down(b":server 001 somebody :Welcome\r\n").close()
