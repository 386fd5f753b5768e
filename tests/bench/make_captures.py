"""Build the benchmark's captures: ``python -m tests.bench.make_captures DIR [--size-mb N]``.

The seeds are short recordings of a real producer and a real consumer group (``captures/seed-*.pcap.xz``). A large
capture repeats a seed's connections, each copy from a client address of its own, with its own sequence numbers and
later in time, four copies at once. Payloads stay byte for byte what broker and client said. IP and TCP checksums are
not made anew (neither tshark nor kwiresniff checks them).

Of each seed there is

NAME.pcap       segments as the recording host saw them, before its network card would have cut them: up to 64 KB each
NAME-mtu.pcap   the same bytes as they look on a wire: at most 1448 bytes a segment, every second one acknowledged
                (one-record requests are that small already, so ``single`` has no such form)
"""

from __future__ import annotations

import argparse
import lzma
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

CAPTURES = Path(__file__).parents[2] / "captures"
SEEDS = ("batched", "single", "zstd")
MSS = 1448  # a 1500-byte MTU less IP, TCP and the timestamp option
LANES = 4  # copies that run at the same time, so that connections interleave as on a busy host
GAP_US = 10_000  # between one round of copies and the next
WIRE_US_PER_SEGMENT = 12  # 1500 bytes at 1 Gbit/s

ETHERNET_LENGTH = 14
FILE_HEADER = struct.Struct("<IHHiIII")
PACKET_HEADER = struct.Struct("<IIII")
CAPTURE_HEADER = FILE_HEADER.pack(0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)


@dataclass(frozen=True, slots=True)
class Packet:
    """An Ethernet frame with IPv4 and TCP, its time in microseconds from the start of its seed."""

    time_us: int
    frame: bytes
    from_client: bool
    tcp: int  # offset of the TCP header
    payload: int  # offset of the payload
    end: int  # offset of the end of the IP packet

    @classmethod
    def parse(cls, time_us: int, frame: bytes) -> Packet:
        tcp = ETHERNET_LENGTH + (frame[ETHERNET_LENGTH] & 15) * 4
        source_port, destination_port = struct.unpack_from(">HH", frame, tcp)
        return cls(
            time_us,
            frame,
            from_client=destination_port == 9092 and source_port != 9092,
            tcp=tcp,
            payload=tcp + (frame[tcp + 12] >> 4) * 4,
            end=ETHERNET_LENGTH + struct.unpack_from(">H", frame, ETHERNET_LENGTH + 2)[0],
        )


def read_seed(path: Path) -> list[Packet]:
    """The packets of a seed: a little-endian microsecond pcap of Ethernet frames, xz-compressed."""
    data = lzma.decompress(path.read_bytes())
    at = FILE_HEADER.size
    packets: list[Packet] = []
    start_us = None
    while at < len(data):
        seconds, micros, captured, _ = PACKET_HEADER.unpack_from(data, at)
        at += PACKET_HEADER.size
        time_us = seconds * 1_000_000 + micros
        start_us = time_us if start_us is None else start_us
        packets.append(Packet.parse(time_us - start_us, data[at : at + captured]))
        at += captured
    return packets


def cut_for_the_wire(packets: Iterable[Packet]) -> Iterator[Packet]:
    """``packets`` cut into segments of at most MSS bytes, with the receiver's acknowledgement after every second.

    A packet waits for the wire when the one before it is not through, so the order stays that of the seed.
    """
    wire_us = 0
    for packet in packets:
        frame, length = packet.frame, packet.end - packet.payload
        wire_us = max(packet.time_us, wire_us + 1)
        if length <= MSS:
            yield replace(packet, time_us=wire_us)
            continue
        seq, ack = struct.unpack_from(">II", frame, packet.tcp + 4)
        for index, at in enumerate(range(0, length, MSS)):
            part = frame[packet.payload + at : packet.payload + min(at + MSS, length)]
            yield rebuilt(packet, wire_us, seq + at, ack, part)
            if index % 2 and at + MSS < length:
                yield acknowledgement(packet, wire_us + 1, ack, seq + at + MSS)
            wire_us += WIRE_US_PER_SEGMENT


def rebuilt(packet: Packet, time_us: int, seq: int, ack: int, payload: bytes) -> Packet:
    """The packet with another sequence number and payload."""
    headers = bytearray(packet.frame[: packet.payload])
    struct.pack_into(">H", headers, ETHERNET_LENGTH + 2, len(headers) - ETHERNET_LENGTH + len(payload))
    struct.pack_into(">II", headers, packet.tcp + 4, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF)
    return Packet.parse(time_us, bytes(headers) + payload)


def acknowledgement(packet: Packet, time_us: int, seq: int, ack: int) -> Packet:
    """A bare ACK from the packet's receiver."""
    bare = rebuilt(packet, time_us, seq, ack, b"")
    back = bytearray(bare.frame)
    ip = ETHERNET_LENGTH
    back[0:6], back[6:12] = back[6:12], back[0:6]
    back[ip + 12 : ip + 16], back[ip + 16 : ip + 20] = back[ip + 16 : ip + 20], back[ip + 12 : ip + 16]
    back[bare.tcp : bare.tcp + 2], back[bare.tcp + 2 : bare.tcp + 4] = (
        back[bare.tcp + 2 : bare.tcp + 4],
        back[bare.tcp : bare.tcp + 2],
    )
    back[bare.tcp + 13] = 0x10  # the ACK flag alone
    return Packet.parse(time_us, bytes(back))


def one_round(packets: list[Packet]) -> tuple[list[tuple[int, int, Packet]], int]:
    """LANES copies of a seed, each a little later, in order of time: (time, lane, packet); and how long it lasts."""
    duration_us = max(packet.time_us for packet in packets)
    step_us = duration_us // (2 * LANES)
    merged = [(packet.time_us + lane * step_us, lane, packet) for lane in range(LANES) for packet in packets]
    merged.sort(key=lambda entry: entry[0])
    return merged, duration_us + LANES * step_us + GAP_US


def copies(seeds: list[list[Packet]], first_copy: int = 0) -> Iterator[bytes]:
    """The seeds in turn, in whole rounds, without end: packets with their record headers.

    Behind each round stands an empty one.
    """
    rounds = [one_round(seed) for seed in seeds]
    number, start_us = 0, 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
    while True:
        merged, duration_us = rounds[number % len(rounds)]
        for time_us, lane, packet in merged:
            frame = copy_of(packet, first_copy + number * LANES + lane)
            seconds, micros = divmod(start_us + time_us, 1_000_000)
            yield PACKET_HEADER.pack(seconds, micros, len(frame), len(frame)) + frame
        yield b""
        number += 1
        start_us += duration_us


def write_capture(target: Path, seeds: list[list[Packet]], size_bytes: int) -> None:
    """Repeat the seeds in turn, in whole rounds, until the file has the size."""
    with target.open("wb") as stream:
        written = stream.write(CAPTURE_HEADER)
        for packet in copies(seeds):
            written += stream.write(packet)
            if not packet and written >= size_bytes:
                return


def write_rotation(target: Path, seeds: list[list[Packet]], size_bytes: int, file_bytes: int, first_copy: int) -> None:
    """Writes copies of the seeds into files of ``file_bytes``, named as by ``tcpdump -C``; connections span files."""
    packets = copies(seeds, first_copy)
    total = number = 0
    while total < size_bytes:
        written = 0
        with target.with_name(f"{target.name}{number or ''}").open("wb") as stream:
            written = stream.write(CAPTURE_HEADER)
            while written < file_bytes and total + written < size_bytes:
                written += stream.write(next(packets))
        total += written
        number += 1


def copy_of(packet: Packet, copy: int) -> bytearray:
    """The frame with the client's address and both sides' sequence numbers of the given copy."""
    frame = bytearray(packet.frame)
    client = ETHERNET_LENGTH + (12 if packet.from_client else 16)
    frame[client : client + 4] = (0x0A200000 + copy + 2).to_bytes(4, "big")  # 10.32.0.2 and on
    seq, ack = struct.unpack_from(">II", frame, packet.tcp + 4)
    shift = copy * 0x9E3779B1  # spreads initial sequence numbers over the whole range
    struct.pack_into(">II", frame, packet.tcp + 4, (seq + shift) & 0xFFFFFFFF, (ack + shift) & 0xFFFFFFFF if ack else 0)
    return frame


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size-mb", type=int, default=200, help="of each capture (default 200)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    seeds = {name: read_seed(CAPTURES / f"seed-{name}.pcap.xz") for name in SEEDS}
    for name, seed in seeds.items():
        cut = list(cut_for_the_wire(seed))
        write_capture(options.folder / f"{name}.pcap", [seed], options.size_mb * 1_000_000)
        if len(cut) > len(seed):
            write_capture(options.folder / f"{name}-mtu.pcap", [cut], options.size_mb * 1_000_000)


if __name__ == "__main__":
    main()
