"""The base of all readers of packet files: bytes in pieces, whole records in each, a sink that may pause."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kwiresniff.base.fastint import u16, u32
from kwiresniff.capture.fast_path import NEVER
from kwiresniff.capture.file_problems import DamageReporter, SnapReporter
from kwiresniff.capture.input_stream import Stream
from kwiresniff.capture.packet_decoder import PacketDecoder
from kwiresniff.capture.pcapng_blocks import Interface
from kwiresniff.model import Problem, SegmentSink

if TYPE_CHECKING:
    from mypy_extensions import i64

#: What came of a packet: no segment, one that the sink took, or one after which the sink asks for a pause.
NOTHING: Final = 0
TAKEN: Final = 1
PAUSED: Final = 2
#: From the end of a packet's data to that of its record, where there are options: a length and one option (pcapng).
OPTIONS_BYTES: Final = 8


class FileReader:
    """Reads one stream from its first byte on. ``packets`` counts the packets so far.

    Packet references begin at ``reference``, that of the packet before the first. While a decoder has a packet,
    ``interface`` and ``order`` are the interface and the byte order that it was captured with, ``stop`` is the end of
    its record in the buffer.

    A format has its way to begin and to give the packets in the buffer. It leaves ``_offset`` behind the last one
    given, ``_needed`` at the bytes of a record that straddles two reads, counted from there, and in ``_wrong`` what is
    wrong with the record at the offset.
    """

    def __init__(
        self, stream: Stream, decoder: PacketDecoder, reference: int, report: Callable[[Problem], None]
    ) -> None:
        self.packets = 0
        self._stream = stream
        self._damage = DamageReporter(stream, report)
        self._snap = SnapReporter(stream.name, report)
        self._decoder = decoder
        self._reference = reference
        self.order = "<"
        self.stop: i64 = 0
        self._packets_of(Interface(0, 0, NEVER))
        self._base = 0  # offset of the buffer in the stream
        self._buffer = b""
        self._offset = 0
        self._needed = 0
        self._wrong = ""
        self._begun = False
        self._ended = False

    def take_secrets(self) -> list[bytes]:
        """The TLS key logs since this was last called; most formats have no place for any."""
        return []

    def feed(self, sink: SegmentSink) -> bool:
        """Gives segments to ``sink`` until it pauses or a read is used up; False at the end, with problems reported."""
        if self._ended:
            return False
        try:
            if self._fill():
                self._packets(sink)
                return True
        except BaseException:
            self.close()
            raise
        self.close()
        return False

    @property
    def offset(self) -> int:
        """The offset of the next record, in bytes of the stream."""
        return self._base + self._offset

    @property
    def context(self) -> int:
        """A number that is the same wherever packets are read with the same knowledge of what stood before them."""
        return 0

    def resume(self, packets: int, offset: int) -> bool:
        """Goes on behind ``packets`` packets, at the record at ``offset``; False where that has been passed."""
        ahead = offset - self._base - len(self._buffer)
        if ahead < 0:
            return False
        self._stream.skip(ahead)
        self._buffer, self._base, self._offset, self._needed = b"", offset, 0, 0
        self.packets = packets
        return True

    def close(self) -> None:
        """Ends the reading."""
        self._ended = True
        self._stream.close()

    def begin(self) -> bool:
        """Reads what stands before the first record, once; False when that is not there."""
        if not self._begun:
            self._begun = self._begin()
        return self._begun

    def _begin(self) -> bool:
        """Read what stands before the first record; False when that is not there."""
        return True

    def _packets(self, sink: SegmentSink) -> None:
        """Give the packets in the buffer to the sink."""
        raise NotImplementedError

    def _packets_of(self, interface: Interface) -> None:
        """Sets the interface of the packets that follow."""
        self.interface = interface
        front = interface.front
        self._link_type = interface.link_type
        self._front_bytes: i64 = front[0]
        self._ip: i64 = front[1]
        self._place: i64 = front[2]
        self._mask: i64 = front[3]
        self._word: i64 = front[4]

    def _give(self, sink: SegmentSink, packet: i64, ns: int, start: i64, end: i64, wire: i64, stop: i64) -> i64:
        """Gives the segment of ``buffer[start:end]``, a packet of ``wire`` bytes in a record up to ``stop``, to
        ``sink``; returns NOTHING, TAKEN or PAUSED. The common case (``fast_path``) takes no call.
        """
        buffer = self._buffer
        if end - start >= self._front_bytes:
            network: i64 = start + self._ip
            common = u32(buffer, start + self._place) & self._mask == self._word and buffer[network] == 0x45
            if common and buffer[network + 9] == 6 and not u16(buffer, network + 6) & 0x3FFF:
                words: i64 = buffer[network + 32]
                flags: i64 = buffer[network + 33]
                payload: i64 = network + 20 + (words >> 4) * 4
                last: i64 = network + u16(buffer, network + 2)
                if payload <= last and payload <= end and words >= 0x50:
                    flow = buffer[network + 12 : network + 24]
                    seq, ack = u32(buffer, network + 24), u32(buffer, network + 28)
                    if stop - end >= OPTIONS_BYTES:
                        self._options(end, stop, flow)
                    cut: i64 = last - end if last > end else 0
                    if cut:
                        last -= cut
                        self._snap.cut(packet - self._reference, end - start)
                    paused = sink.segment(packet, ns, flow, seq, ack, flags, buffer, payload, last, cut)
                    return PAUSED if paused else TAKEN
        missing: i64 = wire - (end - start)
        self.stop = stop
        found = self._decoder.segment(packet, ns, self._link_type, buffer, start, end, missing if missing > 0 else 0)
        if found is None:
            return NOTHING
        if stop - end >= OPTIONS_BYTES:
            self._options(end, stop, found[2])
        if found[9]:
            self._snap.cut(packet - self._reference, end - start)
        number, ns, flow, seq, ack, flags, buffer, start, end, missing = found
        return PAUSED if sink.segment(number, ns, flow, seq, ack, flags, buffer, start, end, missing) else TAKEN

    def _options(self, end: int, stop: int, flow: bytes) -> None:
        """Reads what stands between the data of a packet and the end of its record about its connection."""

    def _fill(self) -> bool:
        """Fills the buffer so that it begins with a record; False when there is none."""
        if not self.begin():
            return False
        if self._wrong:
            self._damage.damaged(self._base + self._offset, self.packets + 1, self._wrong)
            return False
        if self._needed or self._offset >= len(self._buffer):
            # A record that straddles two reads is completed alone: joining it with a read would copy every byte.
            self._base += self._offset
            buffer = self._buffer[self._offset :]
            if buffer:
                buffer += self._stream.exactly(self._needed - len(buffer))
                if len(buffer) < self._needed:
                    self._damage.cut(self._base + len(buffer), self.packets + 1)
                    return False
            else:
                buffer = self._stream.read()
                if not buffer:
                    self._damage.ended(self._base, self.packets + 1)
                    return False
            self._buffer, self._offset, self._needed = buffer, 0, 0
        return True
