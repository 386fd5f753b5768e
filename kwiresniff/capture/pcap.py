"""The pcap file format: micro and nanosecond, both byte orders, Kuznetzov's and IXIA's variants.

Source: draft-ietf-opsawg-pcap. A file header of 24 bytes (magic, version, two unused, snap length, link type),
then for each packet a record header of 16 bytes (seconds, fraction, captured length, length on the wire) and
the captured bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from kwiresniff.base.fastint import u32, u32_little
from kwiresniff.capture.file_problems import MAX_PACKET_BYTES
from kwiresniff.capture.input_stream import Stream
from kwiresniff.capture.packet_decoder import PacketDecoder
from kwiresniff.capture.pcapng_blocks import Interface
from kwiresniff.capture.reader import NOTHING, PAUSED, FileReader
from kwiresniff.model import Problem, SegmentSink

if TYPE_CHECKING:
    from mypy_extensions import i64

FILE_HEADER_BYTES = 24

#: Magic number -> (nanoseconds in the unit of the fraction, bytes of the record header, bytes added to the file
#: header). Kuznetzov's records carry interface, protocol and packet type; IXIA's file header the size of the file, and
#: its hardware counts nanoseconds, its software microseconds (old versions of Wireshark take both for microseconds).
_VARIANTS = {
    0xA1B2C3D4: (1000, 16, 0),
    0xA1B23C4D: (1, 16, 0),
    0xA1B2CD34: (1000, 24, 0),
    0x1C0001AC: (1, 16, 4),
    0x1C0001AB: (1000, 16, 4),
}
MAGICS: dict[bytes, tuple[str, int, int, int]] = {
    magic.to_bytes(4, name): (order, *variant)  # type: ignore[arg-type]
    for magic, variant in _VARIANTS.items()
    for name, order in (("little", "<"), ("big", ">"))
}


class PcapReader(FileReader):
    """Reads one pcap stream from its magic number on; ``reference`` as in ``FileReader``."""

    def __init__(
        self, stream: Stream, decoder: PacketDecoder, reference: int, report: Callable[[Problem], None]
    ) -> None:
        super().__init__(stream, decoder, reference, report)
        self._unit_ns = 1
        self._record_bytes = 16

    def _begin(self) -> bool:
        header = self._stream.exactly(FILE_HEADER_BYTES)
        if len(header) < FILE_HEADER_BYTES:
            self._damage.cut(len(header), 1)
            return False
        order, self._unit_ns, self._record_bytes, extra = MAGICS[header[:4]]
        self._stream.exactly(extra)
        # The high bits of the link type say whether there is a trailing FCS.
        link_type = struct.unpack(order + "I", header[20:])[0] & 0xFFFF
        self._packets_of(Interface(link_type, 0, self._decoder.front(link_type, order)))
        self.order = order
        self._base = FILE_HEADER_BYTES + extra
        return True

    def _packets(self, sink: SegmentSink) -> None:
        """Give the segments of what is in the buffer to ``sink``."""
        little = self.order == "<"
        unit_ns: i64 = self._unit_ns
        record_bytes: i64 = self._record_bytes
        buffer = self._buffer
        size: i64 = len(buffer)
        offset: i64 = self._offset
        packet: i64 = self._reference + self.packets
        needed: i64 = record_bytes
        empty: i64 = -1  # packets behind the first that was empty and gave no segment
        seconds: i64
        fraction: i64
        captured: i64
        wire: i64
        while size - offset >= record_bytes:
            if little:
                seconds, fraction = u32_little(buffer, offset), u32_little(buffer, offset + 4)
                captured, wire = u32_little(buffer, offset + 8), u32_little(buffer, offset + 12)
            else:
                seconds, fraction = u32(buffer, offset), u32(buffer, offset + 4)
                captured, wire = u32(buffer, offset + 8), u32(buffer, offset + 12)
            start = offset + record_bytes
            end = start + captured
            if end > size:
                if captured > MAX_PACKET_BYTES:
                    self._wrong = f"a captured length of {captured} bytes"
                needed = end - offset
                break
            if not captured:
                if seconds and buffer[offset : offset + 4] in MAGICS:
                    self._wrong = "another pcap file stands behind it, give them one by one"
                    break
                if empty >= 0 and not wire:  # a compressed file of zeros is millions of these
                    packet += 1
                    offset = end
                    empty += 1
                    continue
            timestamp_ns = seconds * 1_000_000_000 + fraction * unit_ns
            packet += 1
            offset = end
            outcome = self._give(sink, packet, timestamp_ns, start, end, wire, end)
            if outcome == PAUSED:
                needed = 0
                break
            if outcome == NOTHING and empty < 0 and not captured and not wire:
                empty = 0
        if empty > 0:
            self._decoder.skip_empty(self._link_type, empty)
        self._offset, self._needed, self.packets = offset, needed, packet - self._reference
