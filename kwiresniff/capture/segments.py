"""What captures look like to those who read them, whether they are files or live."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kwiresniff.model import Problem, Segment


class SegmentSource(Protocol):
    """Iterates over TCP segments, once.

    ``files`` are the names of what is read. ``problems`` grows while iterating. ``other_packets`` counts the packets
    that gave no segment, by reason. ``total_bytes`` is None where nobody knows how much will come.
    """

    files: list[str]
    problems: list[Problem]
    other_packets: dict[str, int]
    total_bytes: int | None

    def __iter__(self) -> Iterator[Segment]: ...

    @property
    def packets(self) -> int:
        """Packets read so far, of all kinds."""
        ...

    def position(self) -> int:
        """Bytes read so far."""
        ...

    def close(self) -> None: ...
