"""Decrypted bytes put between the segments that carried them.

A decrypted segment stands before the one of the packet that completed its record; its sequence numbers count the
plaintext of its direction from 0, and its flags are DECRYPTED. The first byte of a record that an earlier packet began
comes at the same place as a segment of its own, with the number and the time of that packet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.capture.tls_records import RecordStarts
from kwiresniff.model import DECRYPTED, SYN, Segment


class SegmentMerger:
    """Takes the segments in order, each with what it completed."""

    def __init__(self) -> None:
        self._positions: dict[bytes, int] = {}
        self._starts = RecordStarts()

    def segment(self, segment: Segment, plaintexts: Iterable[bytes]) -> Iterator[Segment]:
        """The decrypted segments that ``segment`` completed, then itself."""
        packet, ns, flow, _, _, flags = segment[:6]
        begun = self._starts.segment(segment)
        for data in plaintexts:
            at = self._positions.get(flow, 0)
            size = len(data)
            self._positions[flow] = (at + size) & SEQ_MASK
            done = 0
            if begun is not None and size:
                yield *begun, flow, at, 0, DECRYPTED, data, 0, 1, 0
                begun, done = None, 1
            yield packet, ns, flow, (at + done) & SEQ_MASK, 0, DECRYPTED, data, done, size, 0
        if flags & SYN:
            self._positions.pop(flow, None)
        yield segment
