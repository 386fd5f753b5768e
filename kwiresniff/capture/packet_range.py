"""The segments of one connection in a range of packets, found again in their capture file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwiresniff.base.flows import reverse
from kwiresniff.model import Segment, SegmentSink

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kwiresniff.capture.capture_set import CaptureSet
    from kwiresniff.capture.packet_places import PacketPlaces


class RangeSink(SegmentSink):
    """Keeps the segments of a flow and its reverse from packet ``first`` to ``last``; is ``done`` behind the last."""

    def __init__(self, flow: bytes, first: int, last: int) -> None:
        self.taken: list[Segment] = []
        self.done = False
        self._flow = flow
        self._reverse = reverse(flow)
        self._first: i64 = first
        self._last: i64 = last

    def segment(
        self,
        packet: i64,
        ns: int,
        flow: bytes,
        seq: i64,
        ack: i64,
        flags: i64,
        buffer: bytes,
        start: i64,
        end: i64,
        missing: i64,
    ) -> bool:
        if packet >= self._first:
            if packet > self._last:
                self.done = True
                return True
            if flow == self._flow or flow == self._reverse:
                self.taken.append((packet, ns, flow, seq, ack, flags, buffer, start, end, missing))
                if packet == self._last:
                    self.done = True
        return self.done


def packet_range(
    captures: CaptureSet, places: PacketPlaces, flow: bytes, first: int, last: int
) -> list[Segment] | None:
    """The segments of a connection, both ways, in a range of packet references; None where the file is gone."""
    reader = captures.reader_at(first, places)
    if reader is None:
        return None
    sink = RangeSink(flow, first, last)
    try:
        while not sink.done and reader.feed(sink):
            pass
    finally:
        reader.close()
    return sink.taken
