"""Other captures of the same traffic: what must not change a conclusion, and what may only leave less to conclude from.

Each transformation takes the segments of a whole recording and gives those of another capture, or the capture files.
``SAME`` show the traffic from elsewhere or at another time: every conclusion stays. ``LESS`` lack a part
of it: nothing new may be concluded. Copies of the traffic are in ``tests.support.copies``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from struct import pack, pack_into, unpack_from

from google_crc32c import value as crc32c

from kwiresniff.capture import open_captures
from kwiresniff.model import SYN, Segment
from tests.support import packet_builder
from tests.support.cuts import CUTS

Segments = Sequence[Segment]
Transformation = Callable[[Segments], list[Segment]]

#: A year of 365 days, after which neither weekday nor daylight saving is the same.
YEAR_MS = 365 * 24 * 3600 * 1000
#: The networks that recordings are made in, and others with names of the same length.
ELSEWHERE = {b"10.9.0.": b"10.4.0.", b"10.77.0.": b"10.44.0.", b"10.78.0.": b"10.45.0."}
#: The id of the cluster that most recordings are of, and that of another one.
CLUSTER_ID, OTHER_ID = b"a3dpcmVzbmlmZi1kZW1vMQ", b"b3RoZXItY2x1c3Rlci1pZA"
#: Bytes of a record batch: up to its magic, and its fixed fields up to the records.
_MAGIC_AT, _CRC_AT, _TIMES_AT, _BATCH_HEADER = 16, 17, 27, 61


@cache
def segments_of(path: Path) -> tuple[Segment, ...]:
    """The segments of a capture file."""
    return tuple(open_captures([str(path)]))


def with_payload(segment: Segment, payload: bytes) -> Segment:
    """The segment with another payload of the same length."""
    assert len(payload) == segment[8] - segment[7]
    return (*segment[:6], payload, 0, len(payload), segment[9])


def at_another_time(segments: Segments, later_ms: int = YEAR_MS) -> list[Segment]:
    """Everything so much later: the packets, and the timestamps of record batches with their checksums."""
    payloads = [bytes(segment[6][segment[7] : segment[8]]) for segment in segments]
    for way in _ways(segments):
        stream = bytearray(b"".join(payloads[at] for at in way))
        _move_batches(stream, later_ms)
        start = 0
        for at in way:
            size = len(payloads[at])
            payloads[at] = bytes(stream[start : start + size])
            start += size
    moved = [with_payload(segment, payload) for segment, payload in zip(segments, payloads, strict=True)]
    return [(one[0], one[1] + later_ms * 1_000_000, *one[2:]) for one in moved]


def _ways(segments: Segments) -> list[list[int]]:
    """The places of the segments of each direction whose bytes follow one another."""
    ways: list[list[int]] = []
    current: dict[bytes, tuple[list[int], int]] = {}
    for at, segment in enumerate(segments):
        _, _, flow, seq, _, flags, _, start, end, missing = segment
        if flags & SYN:
            current.pop(flow, None)
        if start == end and not missing:
            continue
        way, expected = current.get(flow, ([], -1))
        if seq != expected:
            way = []
            ways.append(way)
        way.append(at)
        current[flow] = way, (seq + end - start) & 0xFFFFFFFF if not missing else -1
    return ways


def _move_batches(stream: bytearray, later_ms: int) -> None:
    """Adds to the timestamps of every batch of format 2 with a right checksum, wherever it lies."""
    at = stream.find(b"\x02", _MAGIC_AT)
    while at >= 0:
        start = at - _MAGIC_AT
        at = stream.find(b"\x02", at + 1)
        if start + _BATCH_HEADER > len(stream):
            continue
        end = start + 12 + unpack_from(">i", stream, start + 8)[0]
        if not start + _BATCH_HEADER <= end <= len(stream):
            continue
        (checksum,) = unpack_from(">I", stream, start + _CRC_AT)
        if crc32c(bytes(stream[start + 21 : end])) != checksum:
            continue
        times = [time + later_ms if time >= 0 else time for time in unpack_from(">qq", stream, start + _TIMES_AT)]
        pack_into(">qq", stream, start + _TIMES_AT, *times)
        pack_into(">I", stream, start + _CRC_AT, crc32c(bytes(stream[start + 21 : end])))


def elsewhere(segments: Segments) -> list[Segment]:
    """The same conversation in another network, with a cluster of another id: addresses of packets, and what messages
    name as text."""
    moved: list[Segment] = []
    for segment in segments:
        payload = bytes(segment[6][segment[7] : segment[8]])
        for here, there in ELSEWHERE.items():
            payload = payload.replace(here, there)
        payload = payload.replace(CLUSTER_ID, OTHER_ID)
        packet, ns, flow, *rest = with_payload(segment, payload)
        moved.append((packet, ns, _flow_elsewhere(flow), *rest))  # type: ignore[arg-type]
    return moved


def _flow_elsewhere(flow: bytes) -> bytes:
    size = len(flow) // 2 - 2
    ends = [flow[:size], flow[size : 2 * size]]
    for here, there in ELSEWHERE.items():
        old, new = (bytes(map(int, net.rstrip(b".").split(b"."))) for net in (here, there))
        ends = [new + end[3:] if end[:3] == old else end for end in ends]
    if size == 16:
        ends = [end[:8] + b"\x44" + end[9:] for end in ends]
    return ends[0] + ends[1] + flow[2 * size :]


def merged(one: Segments, other: Segments) -> list[Segment]:
    """Both captures as one: the second begins with the first, whenever it was made."""
    apart = one[0][1] - other[0][1]
    return sorted([*one, *[(seg[0], seg[1] + apart, *seg[2:]) for seg in other]], key=lambda seg: seg[1])


SAME: dict[str, Transformation] = {
    "in another network": elsewhere,
    "a year later": at_another_time,
}
LESS: dict[str, Transformation] = {
    name: CUTS[name]
    for name in (
        "without its beginning", "without its first half", "its first half", "its middle", "clients alone",
        "brokers alone", "96 bytes of each packet",
    )
}  # fmt: skip


@dataclass(frozen=True)
class Wrapping:
    """What stands around the IP packets of a capture file."""

    link_type: int
    front: Callable[[bytes], bytes]


def ip_packet(segment: Segment) -> tuple[bytes, int]:
    """The IP packet that carried a segment, without checksums, and its length on the wire."""
    _, _, flow, seq, ack, flags, buffer, start, end, missing = segment
    size = len(flow) // 2 - 2
    tcp = flow[-4:] + pack(">IIBBHHH", seq, ack, 0x50, flags, 0xFFFF, 0, 0) + bytes(buffer[start:end])
    length = len(tcp) + missing
    if size == 4:
        return pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 64, 6, 0) + flow[:8] + tcp, 20 + length
    return pack(">LHBB", 6 << 28, length, 6, 64) + flow[:32] + tcp, 40 + length


def _in_ethernet(packet: bytes) -> bytes:
    return packet_builder.ethernet(packet)


def _in_vlan(packet: bytes) -> bytes:
    frame = packet_builder.ethernet(packet)
    return frame[:12] + pack(">HH", 0x8100, 7) + frame[12:]


def _in_vxlan(packet: bytes) -> bytes:
    inner = pack(">II", 0x08000000, 0x123400) + packet_builder.ethernet(packet)
    udp = pack(">HHHH", 55555, 4789, 8 + len(inner), 0) + inner
    return packet_builder.ethernet(packet_builder.ipv4(udp, protocol=17))


def _in_gre(packet: bytes) -> bytes:
    kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
    return packet_builder.ethernet(packet_builder.ipv4(pack(">HH", 0, kind) + packet, protocol=47))


#: What capture points inside networks put around packets.
WRAPPINGS: dict[str, Wrapping] = {
    "in Ethernet": Wrapping(1, _in_ethernet),
    "in a VLAN": Wrapping(1, _in_vlan),
    "in VXLAN": Wrapping(1, _in_vxlan),
    "in GRE": Wrapping(1, _in_gre),
    "raw IP": Wrapping(101, bytes),
}


def write(folder: Path, segments: Segments, wrapping: str = "in Ethernet", files: int = 1) -> list[str]:
    """Writes the segments as that many pcap files, one after the other in time."""
    wrap = WRAPPINGS[wrapping]
    each = -(-len(segments) // files)
    paths = []
    for number in range(files):
        pieces = [packet_builder.pcap_header(magic=0xA1B23C4D, link_type=wrap.link_type)]
        for segment in segments[number * each : (number + 1) * each]:
            inner, wire = ip_packet(segment)
            data = wrap.front(inner)
            ns, wire = segment[1], wire + len(data) - len(inner)
            pieces.append(pack("<IIII", ns // 10**9, ns % 10**9, len(data), wire) + data)
        path = folder / f"{wrapping.replace(' ', '-')}-{number}.pcap"
        path.write_bytes(b"".join(pieces))
        paths.append(str(path))
    return paths
