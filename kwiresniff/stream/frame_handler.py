"""The interfaces between a direction of a connection and whoever handles its frames.

Calls between compiled classes cost what calls in C cost, so these are classes to derive from, not protocols. ``side``
is 0 or 1: which of the two directions of a connection speaks, in the order in which the connection knows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Why bytes were skipped: the ``code`` of ``on_gap``.
LOST_GAP = "gap"
LOST_CUT = "snap_length"  # reported as a gap
WITHHELD = "withheld"  # reported as a gap: not kept in a saved state
LOST_BAD_LENGTH = "bad_length"
LOST_MID_STREAM = "mid_stream"
LOST_UNRECOGNIZED = "unrecognized"

#: First packet and its time, last packet and its time, size_bytes, data, lost_bytes; see ``FrameHandler.on_frame``.
Frame: TypeAlias = tuple[int, int, int, int, int, bytes, int]
#: Packet and its time, missing_bytes, skipped_bytes, code; see ``FrameHandler.on_gap``.
Gap: TypeAlias = tuple[int, int, int, int, str]


class FrameFilter:
    """Decides what is kept of a frame, in ``parts``; with ``plain`` set, the rest is kept as it comes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.plain = False

    def feed(self, data: bytes, at: i64, end: i64, left: i64) -> i64:
        """Filters ``data[at:end]`` of ``left`` bytes still to come; returns how many behind ``end`` are not needed."""
        raise NotImplementedError

    def finish(self) -> None:
        """Called when the frame is complete."""
        raise NotImplementedError

    def broken(self, within: bool) -> None:
        """Notes that bytes of the frame are missing, ``within`` those being passed over; no more is kept."""
        raise NotImplementedError


class FrameHandler:
    """Handles the frames and gaps of a direction, and finds where frames begin."""

    def on_frame(
        self,
        side: i64,
        first_packet: i64,
        first_ns: int,
        last_packet: i64,
        last_ns: int,
        size: i64,
        data: bytes,
        lost: i64,
    ) -> None:
        """Handles a frame of ``size`` bytes; ``data`` may be only its front when not all is kept or ``lost`` bytes are
        missing.
        """
        raise NotImplementedError

    def on_bytes(self, side: i64, packet: i64, ns: int, buffer: bytes, start: i64, end: i64) -> None:
        """Called with ``buffer[start:end]``, the next bytes in order, of a direction that is not cut into frames."""

    def on_gap(self, side: i64, packet: int, ns: int, missing: int, skipped: int, code: str) -> None:
        """Handles bytes ``missing`` from the capture or ``skipped`` as unreadable; ``code`` is a ``LOST_*``."""
        raise NotImplementedError

    def on_dropped(self, side: i64, packet: int, ns: int, dropped: int, code: str) -> None:
        """Handles ``dropped`` bytes of a search that goes on."""
        self.on_gap(side, packet, ns, 0, dropped, code)

    def on_copy(self, side: i64, packet: int, ns: int, seq: int, length: int) -> None:
        """Handles ``length`` delivered bytes from ``seq`` on that were seen again at a second capture point."""

    def on_search(self, side: i64) -> int:
        """The offset in the bytes under search at which a frame certainly begins, or -1."""
        raise NotImplementedError

    def on_invalid_length(self, side: i64, packet: int, ns: int, first: bytes) -> bool:
        """Handles an impossible length ``first``; True when the rest of the stream is not to be read."""
        return False

    def must_pause(self) -> bool:
        """Whether queued segments should wait for events to be taken; then ``resume_delivery`` follows."""
        return False

    def resume_delivery(self) -> None:
        """Hands on what ``must_pause`` had kept back."""
        raise NotImplementedError

    def frame_filter(self, side: i64, data: bytes, start: i64, end: i64) -> FrameFilter | None:
        """The filter that decides what is kept of a large frame beginning with ``data[start:end]``; None keeps all."""
        return None


class FrameRecorder(FrameHandler):
    """Records frames and gaps for tests and answers searches with ``found``; compiled with its base."""

    def __init__(self, found: int = 0) -> None:
        self.found = found
        self.frames: list[Frame] = []
        self.gaps: list[Gap] = []

    def on_frame(
        self,
        side: i64,
        first_packet: i64,
        first_ns: int,
        last_packet: i64,
        last_ns: int,
        size: i64,
        data: bytes,
        lost: i64,
    ) -> None:
        """Record a frame."""
        self.frames.append((first_packet, first_ns, last_packet, last_ns, size, data, lost))

    def on_gap(self, side: i64, packet: int, ns: int, missing: int, skipped: int, code: str) -> None:
        """Record a gap."""
        self.gaps.append((packet, ns, missing, skipped, code))

    def on_search(self, side: i64) -> int:
        """Returns ``found``."""
        return self.found
