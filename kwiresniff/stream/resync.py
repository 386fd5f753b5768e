"""Resynchronisation: the bytes of one direction that come while it is not known where frames begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kwiresniff.stream.buffer_budget import BufferBudget
from kwiresniff.stream.frame_handler import FrameHandler
from kwiresniff.stream.resync_buffer import MARK_BYTES, ResyncBuffer

if TYPE_CHECKING:
    from mypy_extensions import i64


class Resynchronizer:
    """Holds bytes under search in ``buffer``; while ``searching``, what was found is handed on."""

    STATE: ClassVar[tuple[str, ...]] = ("budget", "buffer", "searching", "side")
    __slots__ = STATE

    def __init__(self, side: i64, budget: BufferBudget) -> None:
        self.side = side
        self.budget = budget
        self.buffer = ResyncBuffer()
        self.searching = False

    def feed(self, handler: FrameHandler, packet: i64, ns: int, ack: i64, data: bytes, reason: str) -> bool:
        """Takes the next bytes, giving up the oldest for ``reason``; True when it is time to search."""
        buffer = self.buffer
        if not self.searching:
            buffer.earn(len(data))
        over = buffer.excess(len(data))
        if over:
            cut = buffer.trim(over)
            first_packet, first_ns = buffer.place(0) if buffer.marks else (packet, ns)
            handler.on_dropped(self.side, first_packet, first_ns, cut, reason)
        self.budget.held += len(data) + MARK_BYTES
        return buffer.feed(packet, ns, ack, data)

    def find(self, handler: FrameHandler) -> int:
        """The offset of a frame in the buffer, or -1; searching takes steps of ``ResyncBuffer``."""
        if not len(self.buffer) or not self.buffer.can_pay():
            return -1
        return handler.on_search(self.side)

    def gap(self, handler: FrameHandler, packet: i64, ns: int, missing: i64, code: str) -> None:
        """Drops the bytes under search, because ``missing`` bytes between them and what follows are lost."""
        skipped = len(self.buffer)
        self.buffer.clear()
        handler.on_gap(self.side, packet, ns, missing, skipped, code)

    def release(self, handler: FrameHandler, reason: str) -> None:
        """Drops the bytes under search."""
        if len(self.buffer):
            packet, ns = self.buffer.place(0)
            size = len(self.buffer)
            self.buffer.clear()
            handler.on_gap(self.side, packet, ns, 0, size, reason)

    def held_bytes(self) -> int:
        """Bytes of memory of what is under search."""
        return len(self.buffer) + MARK_BYTES * len(self.buffer.marks)
