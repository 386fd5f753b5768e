"""Packets of capture files as they were captured, for copying: bytes, time, interface, comments."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from kwiresniff.capture.fast_path import NEVER, Front
from kwiresniff.capture.formats import open_reader
from kwiresniff.capture.input_stream import Stream
from kwiresniff.capture.packet_decoder import LayerDecoder
from kwiresniff.capture.pcapng_blocks import Interface, options_of
from kwiresniff.capture.recorded_names import COMMENT, FLAGS
from kwiresniff.model import Problem, Segment, SegmentList

#: Memory of IP fragments whose datagram is not whole yet; older ones are left out.
MAX_FRAGMENT_BYTES = 8 << 20


@dataclass(slots=True)
class PacketRecord:
    """A packet by its reference, with its time, bytes and length on the wire. ``interface`` is one object for each
    interface of a section; ``comments`` and ``flags`` are pcapng's.
    """

    number: int
    timestamp_ns: int
    data: bytes
    wire: int
    interface: Interface
    comments: list[bytes] = field(default_factory=list)
    flags: int = 0


class PacketRecords:
    """Collects TCP packets as records with their segments; fragments of a datagram come together, at its end."""

    def __init__(self, decoder: LayerDecoder) -> None:
        self._decoder = decoder
        self._found: list[tuple[PacketRecord, Segment]] = []
        self._held: dict[int, PacketRecord] = {}
        self._held_bytes = 0

    def read(self, stream: Stream, reference: int) -> Iterator[tuple[PacketRecord, Segment]]:
        """Yields the packets of a capture; references as in ``FileReader``. Raises NotACapture."""
        self._reader = open_reader(stream, self, reference, _ignore)
        sink = SegmentList()
        while self._reader.feed(sink):
            sink.taken.clear()
            yield from self._found
            self._found.clear()

    def front(self, link_type: int, order: str, /) -> Front:
        """No packet takes the fast path."""
        return NEVER

    def skip_empty(self, link_type: int, count: int, /) -> None:
        """Ignores packets without a byte."""

    def segment(
        self, packet: int, timestamp_ns: int, link_type: int, buffer: bytes, start: int, end: int, missing: int, /
    ) -> Segment | None:
        """Collects one packet and returns its segment."""
        reader, other = self._reader, self._decoder.other
        fragments = other.get("ip_fragment", 0)
        segment = self._decoder.segment(packet, timestamp_ns, link_type, buffer, start, end, missing)
        is_fragment = segment is None and other.get("ip_fragment", 0) > fragments
        if segment is None and not is_fragment:
            return None
        data = buffer[start:end]
        record = PacketRecord(packet, timestamp_ns, data, len(data) + missing, reader.interface)
        for code, value in options_of(reader.order, buffer, end + (-len(data) & 3), reader.stop - 4):
            if code == COMMENT:
                record.comments.append(value)
            elif code == FLAGS and len(value) == 4:
                record.flags = struct.unpack(reader.order + "I", value)[0]
        if segment is None:
            self._hold(record)
            return None
        if segment[6] is not buffer:
            for number in self._decoder.fragments_of_last():
                fragment = self._held.pop(number, None)
                if fragment is not None:
                    self._held_bytes -= len(fragment.data)
                    self._found.append((fragment, segment))
        self._found.append((record, segment))
        return segment

    def _hold(self, fragment: PacketRecord) -> None:
        self._held[fragment.number] = fragment
        self._held_bytes += len(fragment.data)
        while self._held_bytes > MAX_FRAGMENT_BYTES:
            self._held_bytes -= len(self._held.pop(next(iter(self._held))).data)


def _ignore(problem: Problem) -> None:
    """Ignores a problem: it is reported where the file is read for its exchanges."""
