"""Bytes in order to size-delimited frames.

A frame is a signed 32-bit big-endian length, then that many bytes (protocol guide, "Common Request and Response
Structure"). A gap in the middle of a frame does not cost the synchronisation: the length says where the next frame
begins. What a frame says is for its handler to judge.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.base.fastint import i32
from kwiresniff.stream.buffer_budget import BufferBudget
from kwiresniff.stream.frame_buffer import SMALL_PIECE_BYTES, FrameBuffer
from kwiresniff.stream.frame_handler import LOST_BAD_LENGTH, LOST_GAP, LOST_MID_STREAM, WITHHELD, FrameHandler

if TYPE_CHECKING:
    from mypy_extensions import i64

#: The largest frame: above ``socket.request.max.bytes`` and ``fetch.max.bytes``, which may be raised.
MAX_FRAME_BYTES: Final = 0x40000000

#: A length above the default of ``socket.request.max.bytes`` is more likely another protocol's bytes.
SOUND_FRAME_BYTES: Final = 100 << 20

#: Of one frame no more than this is held in memory; the rest is counted down.
MAX_KEPT_BYTES = 1 << 27

#: Frames above this are filtered for those who want no more than error codes or names.
MIN_FILTERED_BYTES = 4096

#: So many bytes show what a stream carries that is not Kafka.
FIRST_BYTES: Final = 64

#: The rest of a frame that never ends: more than any connection carries.
ENDLESS: Final = 1 << 62

#: ``frame_length(buffer, offset) -> (size_bytes,)``
frame_length = Struct(">i").unpack_from


class FrameReader(FrameBuffer):
    """Cuts a direction into frames while ``synchronized``; ``keep`` bytes of each are kept, large ones filtered with
    ``filters``. ``behind`` counts the bytes behind a frame in its segment; ``reason`` and ``lost_code`` say why
    synchronisation and bytes were lost.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "_head", "_lost_in_frame", "at_frame_start", "behind", "filters", "first_ns", "first_packet", "keep",
        "lost_code", "min_frame_bytes", "reason", "side", "size", "synchronized",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self, side: i64, keep: int, budget: BufferBudget) -> None:
        super().__init__(budget)
        self.side = side
        self.keep: i64 = min(keep, MAX_KEPT_BYTES)
        self.filters = False
        self.min_frame_bytes: i64 = 4
        self.synchronized = True
        self.reason = LOST_MID_STREAM
        self.at_frame_start = True
        self.size: i64 = 0
        self.first_packet: i64 = 0
        self.first_ns = 0
        self.behind: i64 = 0
        self._head = b""  # of a length
        self._lost_in_frame: i64 = 0
        self.lost_code = LOST_GAP

    def read_inside(self, buffer: bytes, start: i64, end: i64) -> None:
        """Take ``buffer[start:end]``, which does not complete the current frame."""
        length = end - start
        if self.keepable > 0:
            if length >= SMALL_PIECE_BYTES:
                self.parts.append(buffer[start:end])
                self.keepable -= length
            else:
                self.keep_piece(buffer[start:end])
        elif self.filter is not None:
            self.pass_filter(buffer, start, end, self.keep)
        elif self.awaiting_budget:
            self.charge()
            self.keep_piece(buffer[start:end])
        self.remaining -= length

    def read(self, handler: FrameHandler, packet: i64, ns: int, buffer: bytes, start: i64, end: i64) -> i64:
        """Takes the next bytes in order; returns where synchronisation was lost. One function: calls are most of its
        cost.
        """
        need = self.remaining
        size: i64
        self.at_frame_start = False
        if need:
            if end - start < need:
                self.read_inside(buffer, start, end)
                return end
            stop = start + need
            if self.keepable > 0:
                self.parts.append(buffer[start:stop])
            elif self.filter is not None or self.awaiting_budget:
                self._read_last(buffer, start, stop)
            start = stop
            self.behind = end - start
            data = self.pop(self.keep)
            handler.on_frame(
                self.side, self.first_packet, self.first_ns, packet, ns, self.size, data, self._lost_in_frame
            )
            self.behind = 0
            if not self.synchronized:
                return start
        while start < end:
            if self._head:
                taken = min(4 - len(self._head), end - start)
                head = self._head + buffer[start : start + taken]
                start += taken
                if len(head) < 4:
                    self._head = head
                    return end
                self._head = b""
                (size,) = frame_length(head)
            else:
                self.first_packet = packet
                self.first_ns = ns
                if end - start < 4:
                    self._head = buffer[start:end]
                    return end
                size = i32(buffer, start)
                start += 4
            if not self.min_frame_bytes <= size <= SOUND_FRAME_BYTES:
                refused = self._refuse(handler, packet, ns, size, buffer, start, end)
                if refused >= 0:
                    return refused
            stop = start + size
            keep = self.keep
            if stop <= end:
                data = buffer[start:stop] if size <= keep else buffer[start : start + keep]
                start = stop
                self.behind = end - stop
                handler.on_frame(self.side, self.first_packet, self.first_ns, packet, ns, size, data, 0)
                self.behind = 0
                if not self.synchronized:
                    return start
                continue
            self.size = size
            self._lost_in_frame = 0
            is_large = self.filters and size >= MIN_FILTERED_BYTES
            by = handler.frame_filter(self.side, buffer, start, end) if is_large else None
            if by is None:
                self.begin(buffer, start, end, size, keep)
            else:
                self.begin_filtered(by, buffer, start, end, size, keep)
            return end
        self.at_frame_start = True
        return end

    def _refuse(
        self, handler: FrameHandler, packet: i64, ns: int, size: i64, buffer: bytes, start: i64, end: i64
    ) -> i64:
        """The offset at which an unlikely length ends the reading; -1 for a possible one."""
        first = _length_bytes(size) + buffer[start : min(end, start + FIRST_BYTES)]
        if handler.on_invalid_length(self.side, packet, ns, first):
            self.count_only()
            return end
        if self.min_frame_bytes <= size <= MAX_FRAME_BYTES:
            return -1
        # The length itself is garbage, so it is bytes given up; what follows may hold the next frame.
        self.desynchronize(LOST_BAD_LENGTH)
        handler.on_gap(self.side, packet, ns, 0, 4, LOST_BAD_LENGTH)
        return start

    def _read_last(self, buffer: bytes, start: i64, end: i64) -> None:
        """Take the last bytes of the current frame, which a filter looks at or the budget is yet to be charged for."""
        if self.filter is not None:
            self.pass_filter(buffer, start, end, self.keep)
        else:
            self.charge()
            self.parts.append(buffer[start:end])

    def gap(self, handler: FrameHandler, packet: i64, ns: int, missing: i64, code: str) -> None:
        """The next ``missing`` bytes are not in the capture, as ``packet`` shows; ``code`` is LOST_GAP or LOST_CUT."""
        need = self.remaining
        if need:
            self.keep_no_more()
            self.lost_code = code if not self._lost_in_frame or self.lost_code == code else LOST_GAP
            self._lost_in_frame += min(need, missing)
            if missing < need:
                self.remaining = need - missing
                handler.on_gap(self.side, packet, ns, missing, 0, code)
                return
            data = self.pop(self.keep)
            handler.on_frame(
                self.side, self.first_packet, self.first_ns, packet, ns, self.size, data, self._lost_in_frame
            )
            if missing == need:
                handler.on_gap(self.side, packet, ns, missing, 0, code)
                return
        skipped = len(self._head)
        self.desynchronize(code)
        handler.on_gap(self.side, packet, ns, missing, skipped, code)

    def withhold(self, kept: i64) -> None:
        """Drops all but the first ``kept`` bytes of what has come of the current frame; the others count as lost."""
        data = b"".join(self.parts)
        self.parts = [data[:kept]]
        self.keep_no_more()
        self._lost_in_frame += max(len(data) - kept, 0)
        self.lost_code = WITHHELD

    def desynchronize(self, reason: str) -> None:
        """Notes that it is no longer known where frames begin, and the ``reason``, a ``LOST_*``."""
        self.synchronized = False
        self.reason = reason
        self.at_frame_start = False
        self._head = b""
        self.forget()

    def synchronize(self) -> None:
        """Takes the next byte for the first of a frame."""
        self.synchronized = True
        self.at_frame_start = True
        self._head = b""
        self.forget()

    def count_only(self) -> None:
        """Counts bytes from here on: nothing is kept and no frame ends."""
        self.synchronize()
        self.at_frame_start = False
        self.remaining = ENDLESS
        self.charged_bytes = 0

    def end(self) -> None:
        """Ends the stream: what is kept of a frame is dropped."""
        self.parts = []
        self.filter = None
        self._head = b""

    def unfinished(self) -> tuple[int, int, bytes]:
        """``(size_bytes, bytes_present, data)`` of an unfinished frame; zeros and no bytes when there is none."""
        if self.remaining > MAX_FRAME_BYTES:
            return 0, 0, b""  # nothing but counted
        if self.remaining:
            data = b"".join(self.parts)
            return self.size, self.size - self.remaining - self._lost_in_frame, data
        return (0, len(self._head), self._head) if self._head else (0, 0, b"")


def _length_bytes(size: int) -> bytes:
    return size.to_bytes(4, "big", signed=True)
