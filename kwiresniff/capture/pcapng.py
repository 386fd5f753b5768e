"""The pcapng file format: a row of blocks, of which a few kinds hold packets.

Source: draft-ietf-opsawg-pcapng. The enhanced packet block of the interface that the last packet was from is
read here; what else packets need is in ``sections``. All other blocks are skipped by their length.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from kwiresniff.capture.damage import Damage
from kwiresniff.capture.fronts import NEVER
from kwiresniff.capture.network import PacketDecoder
from kwiresniff.capture.pcap import give
from kwiresniff.capture.sections import (
    ENHANCED_PACKET,
    ORDERS,
    PACKET_HEADER_BYTES,
    PACKETS,
    SECRETS,
    SECTION,
    BadBlock,
    Section,
)
from kwiresniff.capture.streams import Stream
from kwiresniff.model import Problem, Segment, SegmentSink

MAGIC = SECTION.to_bytes(4)
#: The longest block that is believed; Wireshark has the same bound.
MAX_BLOCK_BYTES = 16 * 1024 * 1024

#: How far into a file its secrets are looked for: they stand before the first packet, behind a few descriptions.
_LOOK_BYTES = 64 * 1024

_SMALLEST_BLOCK = 12
_SMALLEST_SECTION = 28


class PcapngReader:
    """Reads one pcapng stream from its first section header on. ``packets`` counts the packets so far."""

    def __init__(
        self, stream: Stream, decoder: PacketDecoder, reference: int, report: Callable[[Problem], None]
    ) -> None:
        self.packets = 0
        self.section = Section(decoder.front)
        self._stream = stream
        self._decoder = decoder
        self._reference = reference
        self._damage = Damage(stream, report)
        self._parts = self._read()

    @property
    def secrets(self) -> list[bytes]:
        """The TLS key logs found so far; whoever takes them clears the list."""
        return self.section.secrets

    def feed(self, sink: SegmentSink) -> bool:
        """Give segments to ``sink`` until it wants a pause or a read is used up; False when there are no more.

        Problems with the file are reported where they end it.
        """
        return any(segment is None or give(sink, segment) for segment in self._parts)

    def close(self) -> None:
        """Nothing more is read."""
        self._parts.close()
        self._stream.close()

    def _read(self) -> Generator[Segment | None, None, None]:
        """Every TCP segment, and None where a read is used up or the file is damaged."""
        stream, section, damage = self._stream, self.section, self._damage
        decode = self._decoder.segment
        enhanced, block = section.enhanced, section.block
        first = packet = self._reference
        timestamp_ns = 0
        current = -1  # number of the interface that the next two lines are of
        (front, front_bytes, marker, ip, *_), link_type = NEVER, -1
        multiplier, divisor, offset_ns = 1, 1, 0

        base = 0  # offset of the buffer in the stream
        buffer, offset, needed = b"", 0, 0
        try:
            while True:
                yield None
                # The block that straddles two reads is completed on its own: joining it with a whole new read
                # would copy every byte of the file once more.
                base += offset
                if buffer := buffer[offset:]:
                    buffer += stream.exactly(needed - len(buffer))
                    if len(buffer) < needed:
                        return damage.cut(base + len(buffer), packet - first + 1)
                elif not (buffer := stream.read()):
                    return damage.ended(base, packet - first + 1)
                offset, needed, size = 0, _SMALLEST_BLOCK, len(buffer)
                self.packets = packet - first
                while (left := size - offset) >= _SMALLEST_BLOCK:
                    if left >= PACKET_HEADER_BYTES:
                        kind, length, number, high, low, captured, wire = enhanced(buffer, offset)
                        start = offset + PACKET_HEADER_BYTES
                        end = start + captured
                        next_block = offset + length
                        if (
                            number == current
                            and kind == ENHANCED_PACKET
                            and end + 4 <= next_block <= size
                            and not length & 3
                        ):
                            offset = next_block
                            packet += 1
                            timestamp_ns = (high << 32 | low) * multiplier // divisor + offset_ns
                            if captured >= front_bytes:
                                kind, version, total, fragment, protocol, flow, seq, ack, words, flags = front(
                                    buffer, start
                                )
                                if kind == marker and version == 0x45 and protocol == 6 and not fragment & 0x3FFF:
                                    network = start + ip
                                    payload = network + 20 + (words >> 4) * 4
                                    stop = network + total
                                    if payload <= stop <= end and words >= 0x50:
                                        yield packet, timestamp_ns, flow, seq, ack, flags, buffer, payload, stop, 0
                                        continue
                            missing = max(0, wire - captured)
                            found = decode(packet, timestamp_ns, link_type, buffer, start, end, missing)
                            if found is not None:
                                yield found
                            continue

                    kind, length = block(buffer, offset)
                    if kind == SECTION:
                        if left < _SMALLEST_SECTION:
                            needed = _SMALLEST_SECTION
                            break
                        order = ORDERS.get(buffer[offset + 8 : offset + 12])
                        if order is None:
                            what = "a section header without a byte order"
                            yield None
                            return damage.damaged(base + offset, packet - first + 1, what)
                        section.begin(order)
                        enhanced, block = section.enhanced, section.block
                        length = block(buffer, offset)[1]
                        current = -1
                    if length & 3 or not _SMALLEST_BLOCK <= length <= MAX_BLOCK_BYTES:
                        what = f"a block of {length} bytes"
                        yield None
                        return damage.damaged(base + offset, packet - first + 1, what)
                    next_block = offset + length
                    if next_block > size:
                        needed = length
                        break
                    try:
                        if kind not in PACKETS:
                            section.take(kind, buffer, offset, next_block)
                            offset = next_block
                            continue
                        interface, number, ticks, start, captured, wire = section.packet(
                            kind, buffer, offset, next_block
                        )
                    except BadBlock as bad:
                        yield None
                        return damage.damaged(base + offset, packet - first + 1, str(bad))
                    if kind == ENHANCED_PACKET:
                        # Sound, but of another interface than the last packet: switch, and read it again above.
                        current = number
                        (front, front_bytes, marker, ip, *_), link_type = interface.front, interface.link_type
                        multiplier, divisor, offset_ns = interface.multiplier, interface.divisor, interface.offset_ns
                        continue
                    offset = next_block
                    packet += 1
                    if ticks is not None:
                        timestamp_ns = ticks * interface.multiplier // interface.divisor + interface.offset_ns
                    missing = max(0, wire - captured)
                    found = decode(packet, timestamp_ns, interface.link_type, buffer, start, start + captured, missing)
                    if found is not None:
                        yield found
        finally:
            self.packets = packet - first
            stream.close()


def begins_with_secrets(stream: Stream) -> bool:
    """Whether a file, of which nothing is consumed, has decryption secrets before its first packet."""
    head = stream.peek(_LOOK_BYTES)
    if head[:4] != MAGIC:
        return False
    order = ORDERS.get(head[8:12])
    if order is None:
        return False
    section = Section(lambda link_type, order: NEVER)
    section.begin(order)
    offset = 0
    while len(head) - offset >= _SMALLEST_BLOCK:
        kind, length = section.block(head, offset)
        if kind == SECRETS:
            return True
        if kind in PACKETS or length & 3 or not _SMALLEST_BLOCK <= length <= MAX_BLOCK_BYTES:
            return False
        offset += length
    return False
