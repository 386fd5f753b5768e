"""The pcap file format: micro and nanosecond, both byte orders, Kuznetzov's and IXIA's variants.

Source: draft-ietf-opsawg-pcap. A file header of 24 bytes (magic, version, two unused, snap length, link type),
then for each packet a record header of 16 bytes (seconds, fraction, captured length, length on the wire) and
the captured bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from kwiresniff.capture.damage import MAX_PACKET_BYTES, Damage
from kwiresniff.capture.network import PacketDecoder
from kwiresniff.capture.streams import Stream
from kwiresniff.model import Problem, Segment

FILE_HEADER_BYTES = 24

#: Magic number -> (nanoseconds in the unit of the fraction, bytes of the record header, bytes added to the file
#: header). Kuznetzov's records carry interface, protocol and packet type; IXIA's file header the size of the file.
_VARIANTS = {
    0xA1B2C3D4: (1000, 16, 0),
    0xA1B23C4D: (1, 16, 0),
    0xA1B2CD34: (1000, 24, 0),
    0x1C0001AC: (1000, 16, 4),
    0x1C0001AB: (1000, 16, 4),
}
MAGICS: dict[bytes, tuple[str, int, int, int]] = {
    magic.to_bytes(4, name): (order, *variant)  # type: ignore[arg-type]
    for magic, variant in _VARIANTS.items()
    for name, order in (("little", "<"), ("big", ">"))
}


class PcapReader:
    """Reads one pcap stream from its magic number on. ``packets`` counts the packets so far."""

    def __init__(
        self, stream: Stream, decoder: PacketDecoder, reference: int, report: Callable[[Problem], None]
    ) -> None:
        self.packets = 0
        self.secrets: list[bytes] = []  # the format has no place for any
        self._stream = stream
        self._decoder = decoder
        self._reference = reference
        self._report = report

    def segments(self) -> Iterator[Segment]:
        """Every TCP segment; problems with the file are reported where they end it."""
        stream, damage = self._stream, Damage(self._stream, self._report)
        decode = self._decoder.segment
        first = packet = self._reference
        try:
            header = stream.exactly(FILE_HEADER_BYTES)
            if len(header) < FILE_HEADER_BYTES:
                return damage.cut(len(header), 1)
            order, unit_ns, record_bytes, extra = MAGICS[header[:4]]
            stream.exactly(extra)
            link_type = struct.unpack(order + "I", header[20:])[0] & 0xFFFF  # the high bits tell of a trailing FCS
            record = struct.Struct(f"{order}IIII").unpack_from
            front, front_bytes, marker, ip = self._decoder.front(link_type, order)

            base = FILE_HEADER_BYTES + extra  # offset of the buffer in the stream
            buffer, offset, needed = b"", 0, 0
            while True:
                # The record that straddles two reads is completed on its own: joining it with a whole new read
                # would copy every byte of the file once more.
                base += offset
                if buffer := buffer[offset:]:
                    buffer += stream.exactly(needed - len(buffer))
                    if len(buffer) < needed:
                        return damage.cut(base + len(buffer), packet - first + 1)
                elif not (buffer := stream.read()):
                    return damage.ended(base, packet - first + 1)
                offset, needed, size = 0, record_bytes, len(buffer)
                self.packets = packet - first
                while size - offset >= record_bytes:
                    seconds, fraction, captured, wire = record(buffer, offset)
                    start = offset + record_bytes
                    end = start + captured
                    if end > size:
                        if captured > MAX_PACKET_BYTES:
                            what = f"a captured length of {captured} bytes"
                            return damage.damaged(base + offset, packet - first + 1, what)
                        needed = end - offset
                        break
                    offset = end
                    packet += 1
                    timestamp_ns = seconds * 1_000_000_000 + fraction * unit_ns
                    if captured >= front_bytes:
                        kind, version, total, fragment, protocol, flow, seq, ack, words, flags = front(buffer, start)
                        if kind == marker and version == 0x45 and protocol == 6 and not fragment & 0x3FFF:
                            network = start + ip
                            payload = network + 20 + (words >> 4) * 4
                            stop = network + total
                            if payload <= stop <= end and words >= 0x50:
                                yield packet, timestamp_ns, flow, seq, ack, flags, buffer, payload, stop, 0
                                continue
                    elif not captured and buffer[start - record_bytes : start - record_bytes + 4] in MAGICS:
                        what = "another pcap file stands behind it, give them one by one"
                        return damage.damaged(base + offset - record_bytes, packet - first, what)
                    found = decode(packet, timestamp_ns, link_type, buffer, start, end, max(0, wire - captured))
                    if found is not None:
                        yield found
        finally:
            self.packets = packet - first
            stream.close()
