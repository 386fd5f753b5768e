"""The options of a live capture, and the interface of what captures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kwiresniff.model import Problem

#: One captured packet: ``(timestamp_ns, buffer, start, end, wire_bytes)``.
Packet: TypeAlias = tuple[int, bytes, int, int, int]

#: Packets that came together, in order, after so many that there was no time for.
Batch: TypeAlias = tuple[int, list[Packet]]

#: How long to wait for packets before looking whether to go on: what a person waits for a key without noticing.
WAIT_MS = 100

#: tcpdump's: no packet is longer.
DEFAULT_SNAP_BYTES = 262_144
#: Room for five seconds of 50,000 packets a second of 200 bytes, or half a second of a full 1 Gbit/s link.
DEFAULT_BUFFER_BYTES = 64 * 1024 * 1024
#: How long packets may be kept to come together. Below what a person notices, above what costs.
DEFAULT_DELAY_MS = 40


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """``interfaces`` by name, ``any`` for all; ``expression`` a BPF filter; ``count`` packets and ``duration_ns`` end
    the capture, None does not; ``delay_ms`` is how long a packet may be kept for others to come with it.
    ``decode_as`` are rules of ``capture.decode_as``."""

    interfaces: tuple[str, ...]
    expression: str = ""
    promiscuous: bool = False
    snap_bytes: int = DEFAULT_SNAP_BYTES
    buffer_bytes: int = DEFAULT_BUFFER_BYTES
    count: int | None = None
    duration_ns: int | None = None
    delay_ms: int = DEFAULT_DELAY_MS
    decode_as: tuple[str, ...] = ()


class PacketSource(Protocol):
    """A source of packets of a LINKTYPE_ ``link_type``, with ``problems``; ``waiting`` ones are to be given."""

    link_type: int
    problems: list[Problem]
    waiting: int

    def batches(
        self, go_on: Callable[[], bool], keep: Callable[[list[Packet]], bool], /, *, keep_all: bool
    ) -> Iterator[Batch]:
        """Packets as they come, none every WAIT_MS, until ``go_on`` says no or there are no more.

        ``keep`` gets each list at once; it may cut the list, and says whether more are wanted. Packets without time to
        decode are left out; with ``keep_all`` they go to ``keep``.
        """
        ...

    def dropped(self) -> int:
        """Packets lost so far before they came here; a source that learns it only at its end says 0 until closed."""
        ...

    def close(self) -> None:
        """Ends the capture; ``dropped`` is final then."""
