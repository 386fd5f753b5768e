"""Decrypted bytes put between the segments that carried them.

A decrypted segment stands before the one of the packet that completed its record; its sequence numbers count the
plaintext of its direction from 0, and its flags are DECRYPTED. The first byte of a record that an earlier packet began
comes at the same place as a segment of its own, with the number and the time of that packet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.capture.tls_records import Breaks, RecordStarts
from kwiresniff.model import DECRYPTED, SYN, Problem, Segment, file_index


class SegmentMerger:
    """Takes the segments in order, each with what it completed."""

    def __init__(self, problems: list[Problem], files: Sequence[str]) -> None:
        """``problems`` gets the places where decryption breaks off; ``files`` are the captures' names."""
        self._problems = problems
        self._files = files
        self._positions: dict[bytes, int] = {}
        self._starts, self._breaks = RecordStarts(), Breaks()

    def segment(self, segment: Segment, plaintexts: Iterable[bytes]) -> Iterator[Segment]:
        """The decrypted segments that ``segment`` completed, then itself."""
        packet, ns, flow, seq, _, flags = segment[:6]
        begun = self._starts.segment(segment)
        for data in plaintexts:
            at = self._positions.get(flow, 0)
            size = len(data)
            self._breaks.plaintext(flow, seq)
            self._positions[flow] = (at + size) & SEQ_MASK
            done = 0
            if begun is not None and size:
                yield *begun, flow, at, 0, DECRYPTED, data, 0, 1, 0
                begun, done = None, 1
            yield packet, ns, flow, (at + done) & SEQ_MASK, 0, DECRYPTED, data, done, size, 0
        broken = self._breaks.segment(segment)
        if broken is not None:
            self._broken(*broken)
        if flags & SYN:
            self._positions.pop(flow, None)
        yield segment

    def _broken(self, packet: int, ns: int) -> None:
        self._problems.append(
            Problem(
                "not_decrypted",
                "TLS could not be decrypted from here on, in this direction of its connection: "
                "bytes before it are missing from the capture",
                packet=packet,
                timestamp_ns=ns,
                details={"file": self._files[file_index(packet)]} if len(self._files) > 1 else None,
            )
        )
