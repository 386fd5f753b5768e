"""The interfaces of captures, whether they are files or live."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kwiresniff.base.tls_secrets import TlsSecrets
from kwiresniff.model import Problem, Segment, SegmentList, SegmentSink


class SegmentSource(Protocol):
    """Iterates over TCP segments of ``files``, once. ``problems``, ``other_packets`` (without a segment, by reason) and
    ``tls_secrets`` grow meanwhile; ``total_bytes`` is None where nobody knows.
    """

    files: list[str]
    problems: list[Problem]
    other_packets: dict[str, int]
    total_bytes: int | None
    tls_secrets: TlsSecrets

    def __iter__(self) -> Iterator[Segment]: ...

    @property
    def packets(self) -> int:
        """Packets read so far, of all kinds."""
        ...

    def position(self) -> int:
        """Bytes read so far."""
        ...

    def close(self) -> None:
        """Closes what is open."""


class SegmentProducer(Protocol):
    """A producer of segments."""

    def feed(self, sink: SegmentSink, /) -> bool:
        """Give segments to ``sink`` until it wants a pause or a read is used up; False when there are no more."""
        ...

    def close(self) -> None:
        """Nothing more is read."""
        ...


def segments_of(reader: SegmentProducer) -> Iterator[Segment]:
    """Yields the segments of a reader as tuples."""
    sink = SegmentList()
    try:
        while reader.feed(sink):
            taken, sink.taken = sink.taken, []
            yield from taken
    finally:
        reader.close()
