"""The base of all readers of packet files: bytes in pieces, whole records in each, a sink that may pause."""

from __future__ import annotations

from collections.abc import Callable

from kwiresniff.capture.file_problems import DamageReporter, SnapReporter
from kwiresniff.capture.input_stream import Stream
from kwiresniff.capture.packet_decoder import PacketDecoder
from kwiresniff.model import Problem, Segment, SegmentSink


class FileReader:
    """Reads one stream from its first byte on. ``packets`` counts the packets so far.

    Packet references begin at ``reference``, that of the packet before the first.

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
        """Give segments to ``sink`` until it wants a pause or a read is used up; False when there are no more.

        Problems with the file are reported where they end it.
        """
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
        """Where the next record begins, in bytes of the stream."""
        return self._base + self._offset

    @property
    def context(self) -> int:
        """A number that is the same wherever packets are read with the same knowledge of what stood before them."""
        return 0

    def resume(self, packets: int, offset: int) -> bool:
        """Goes on behind ``packets`` packets, at the record that begins at ``offset``; False where more than that has
        been read.
        """
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

    def _fill(self) -> bool:
        """Fills the buffer so that it begins with a record; False when there is none."""
        if not self.begin():
            return False
        if self._wrong:
            self._damage.damaged(self._base + self._offset, self.packets + 1, self._wrong)
            return False
        if self._needed or self._offset >= len(self._buffer):
            # The record that straddles two reads is completed on its own: joining it with a whole new read
            # would copy every byte of the file once more.
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


def feed_tuple(sink: SegmentSink, segment: Segment) -> bool:
    """Give a segment that is a tuple to a sink."""
    packet, timestamp_ns, flow, seq, ack, flags, buffer, start, end, missing = segment
    return sink.segment(packet, timestamp_ns, flow, seq, ack, flags, buffer, start, end, missing)
