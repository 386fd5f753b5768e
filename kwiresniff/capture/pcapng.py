"""The pcapng file format: a row of blocks, of which a few kinds hold packets.

Source: draft-ietf-opsawg-pcapng. The enhanced packet block of a known interface is read here; what else packets need is
in ``pcapng_blocks``. All other blocks are skipped by their length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.fastint import u32, u32_little
from kwiresniff.capture.fast_path import NEVER
from kwiresniff.capture.input_stream import Stream
from kwiresniff.capture.packet_decoder import PacketDecoder
from kwiresniff.capture.pcapng_blocks import (
    ENHANCED_PACKET,
    ORDERS,
    PACKET_HEADER_BYTES,
    PACKETS,
    SECTION,
    BadBlock,
    Interface,
    Section,
)
from kwiresniff.capture.reader import PAUSED, FileReader
from kwiresniff.capture.recorded_names import NAME_RESOLUTION, RecordedNames
from kwiresniff.model import Problem, SegmentSink

if TYPE_CHECKING:
    from mypy_extensions import i64

#: The longest block that is believed; Wireshark has the same bound.
MAX_BLOCK_BYTES = 16 * 1024 * 1024

_SMALLEST_BLOCK: Final = 12
_SMALLEST_SECTION = 28

_NO_INTERFACE = Interface(-1, 0, NEVER)


class PcapngReader(FileReader):
    """Reads one pcapng stream from its first section header on; adds names of addresses to ``names``."""

    def __init__(
        self,
        stream: Stream,
        decoder: PacketDecoder,
        reference: int,
        report: Callable[[Problem], None],
        names: AddressNames | None = None,
    ) -> None:
        super().__init__(stream, decoder, reference, report)
        self._names = RecordedNames(names) if names is not None else None
        self.section = Section(decoder.front)
        self._timestamp_ns = 0  # of the last packet, which one without a time shares

    def take_secrets(self) -> list[bytes]:
        return self.section.take_secrets()

    @property
    def context(self) -> int:
        """The interfaces that are known, and of which section."""
        return (self.section.number << 32) + len(self.section.interfaces)

    def _packets(self, sink: SegmentSink) -> None:
        """Give the segments of what is in the buffer to ``sink``; enhanced packets of a known interface are read here.
        What it knows of the interface that the last block was of are machine integers.
        """
        section = self.section
        interfaces, little = section.interfaces, section.order == "<"
        current: i64 = -1  # number of the interface that the next lines are of
        multiplier: i64 = 1
        most: i64 = 0  # a time whose upper half is below this is a product of machine integers
        interface = _NO_INTERFACE
        buffer = self._buffer
        size: i64 = len(buffer)
        offset: i64 = self._offset
        packet: i64 = self._reference + self.packets
        needed: i64 = _SMALLEST_BLOCK
        timestamp_ns = self._timestamp_ns
        block: i64
        length: i64
        number: i64
        high: i64
        low: i64
        captured: i64
        wire: i64
        while size - offset >= _SMALLEST_BLOCK:
            if size - offset >= PACKET_HEADER_BYTES:
                if little:
                    block, length = u32_little(buffer, offset), u32_little(buffer, offset + 4)
                    number, captured = u32_little(buffer, offset + 8), u32_little(buffer, offset + 20)
                    high, low = u32_little(buffer, offset + 12), u32_little(buffer, offset + 16)
                    wire = u32_little(buffer, offset + 24)
                else:
                    block, length = u32(buffer, offset), u32(buffer, offset + 4)
                    number, captured = u32(buffer, offset + 8), u32(buffer, offset + 20)
                    high, low = u32(buffer, offset + 12), u32(buffer, offset + 16)
                    wire = u32(buffer, offset + 24)
                start = offset + PACKET_HEADER_BYTES
                end = start + captured
                next_block = offset + length
                if (
                    block == ENHANCED_PACKET
                    and end + 4 <= next_block <= size
                    and not length & 3
                    and number < len(interfaces)
                ):
                    if number != current:
                        current = number
                        interface = interfaces[number]
                        self._packets_of(interface)
                        multiplier = interface.multiplier
                        most = (1 << 63) // interface.multiplier >> 32 if interface.divisor == 1 else 0
                    offset = next_block
                    packet += 1
                    if high < most:
                        timestamp_ns = (high << 32 | low) * multiplier
                        if interface.offset_ns:
                            timestamp_ns += interface.offset_ns
                    else:
                        timestamp_ns = interface.time_ns(int(high) << 32 | int(low))
                    if self._give(sink, packet, timestamp_ns, start, end, wire, next_block) == PAUSED:
                        needed = 0
                        break
                    continue
            self._offset, self.packets, self._timestamp_ns = offset, packet - self._reference, timestamp_ns
            if not self._other_block(sink):
                return
            offset, packet, timestamp_ns = self._offset, self._reference + self.packets, self._timestamp_ns
            little = section.order == "<"
            current = -1
        self._offset, self._needed, self.packets = offset, needed, packet - self._reference
        self._timestamp_ns = timestamp_ns

    def _options(self, end: int, stop: int, flow: bytes) -> None:
        if self._names is not None:
            self._names.options(self.section.order, self._buffer, end + (stop - end & 3), stop - 4, flow)

    def _other_block(self, sink: SegmentSink) -> bool:
        """Take the block at the offset, which is no ordinary packet; False when the loop has to stop."""
        section, buffer, offset = self.section, self._buffer, self._offset
        kind, length = section.block(buffer, offset)
        if kind == SECTION:
            if len(buffer) - offset < _SMALLEST_SECTION:
                self._needed = _SMALLEST_SECTION
                return False
            order = ORDERS.get(buffer[offset + 8 : offset + 12])
            if order is None:
                self._wrong = "a section header without a byte order"
                return False
            section.begin(order)
            self.order = order
            length = section.block(buffer, offset)[1]
        if length & 3 or not _SMALLEST_BLOCK <= length <= MAX_BLOCK_BYTES:
            self._wrong = f"a block of {length} bytes"
            return False
        end = offset + length
        if end > len(buffer):
            self._needed = length
            return False
        section.number += kind == SECTION
        try:
            if kind not in PACKETS:
                if kind == NAME_RESOLUTION and self._names is not None:
                    self._names.block(section.order, buffer, offset, end)
                section.take(kind, buffer, offset, end)
                self._offset = end
                return True
            interface, ticks, start, captured, wire = section.packet(kind, buffer, offset, end)
        except BadBlock as bad:
            self._wrong = str(bad)
            return False
        self._offset = end
        self.packets += 1
        if ticks is not None:
            self._timestamp_ns = interface.time_ns(ticks)
        self._packets_of(interface)
        packet, stop = self._reference + self.packets, start + captured
        return self._give(sink, packet, self._timestamp_ns, start, stop, wire, stop) != PAUSED
