"""The bytes that are kept of a frame that comes in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.stream.buffer_budget import SEGMENT_BYTES, STEP_BYTES, BufferBudget
from kwiresniff.stream.frame_handler import FrameFilter

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Shorter pieces of a frame are joined up to the second size: an object takes some 60 bytes.
SMALL_PIECE_BYTES: Final = 256
JOINED_BYTES: Final = 2048
#: What is left of a frame that gives way: enough for its header.
RELEASED_FRONT_BYTES: Final = 1024
#: What is kept of most frames. Never added to.
NO_PARTS: Final[list[bytes]] = []


class FrameBuffer:
    """The pieces (``parts``) of a frame that lacks ``remaining`` bytes, ``keepable`` of them; at ``awaiting_budget``
    the budget is charged, ``charged_bytes`` so far. A ``filter`` decides instead, and skips ``skip_remaining``.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "awaiting_budget", "budget", "charged_bytes", "filter", "keepable", "parts", "remaining", "skip_remaining",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self, budget: BufferBudget) -> None:
        self.budget = budget
        self.parts: list[bytes] = NO_PARTS
        self.remaining: i64 = 0
        self.keepable: i64 = 0
        self.awaiting_budget: i64 = 0
        self.charged_bytes: i64 = 0
        self.filter: FrameFilter | None = None
        self.skip_remaining: i64 = 0

    def begin(self, buffer: bytes, start: i64, end: i64, size: i64, keep: i64) -> None:
        """A frame of ``size`` bytes begins with ``buffer[start:end]``; up to ``keep`` bytes of it are kept."""
        self.remaining = size - (end - start)
        kept = size if size < keep else keep
        self.charged_bytes = STEP_BYTES
        self.budget.held += (kept if kept < STEP_BYTES else STEP_BYTES) + SEGMENT_BYTES
        if end - start > keep:
            end = start + keep
        self.parts = [buffer[start:end]]
        keepable = kept - (end - start)
        awaiting: i64 = 0
        if keepable > STEP_BYTES:
            awaiting = keepable - STEP_BYTES
            keepable = STEP_BYTES
        self.keepable = keepable
        self.awaiting_budget = awaiting

    def begin_filtered(self, by: FrameFilter, buffer: bytes, start: i64, end: i64, size: i64, keep: i64) -> None:
        """A frame begins of which ``by`` decides what is kept."""
        self.begin(buffer, start, start, size, keep)
        self.keepable = self.awaiting_budget = 0
        self.filter = by
        self.parts = by.parts
        self.skip_remaining = 0
        self.pass_filter(buffer, start, end, keep)
        self.remaining = size - (end - start)

    def charge(self) -> None:
        """Charge the budget for more of the current frame, in growing steps."""
        step = min(self.awaiting_budget, max(STEP_BYTES, self.charged_bytes // 4))
        self.keepable += step
        self.awaiting_budget -= step
        self.charged_bytes += step
        self.budget.held += step

    def keep_piece(self, data: bytes) -> None:
        """Keep the next piece of the current frame."""
        parts = self.parts
        length: i64 = len(data)
        self.keepable -= length
        if length < SMALL_PIECE_BYTES and parts and len(parts[-1]) < JOINED_BYTES:
            parts[-1] += data
        else:
            parts.append(data)

    def pass_filter(self, buffer: bytes, start: i64, end: i64, keep: i64) -> None:
        """Let the filter have ``buffer[start:end]``, the next bytes of a frame that still lacks ``remaining``."""
        length = end - start
        if self.skip_remaining >= length:
            self.skip_remaining -= length
            return
        by = self.filter
        assert by is not None
        self.skip_remaining = by.feed(buffer, start + self.skip_remaining, end, self.remaining - self.skip_remaining)
        if by.plain:
            self.filter = None
            self.awaiting_budget = min(self.remaining - length, keep)

    def pop(self, keep: i64) -> bytes:
        """The kept bytes of the complete frame, at most ``keep``."""
        if self.filter is not None:
            self.filter.finish()
            self.filter = None
        parts = self.parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self.parts = NO_PARTS
        self.remaining = 0
        self.awaiting_budget = 0
        return data if len(data) <= keep else data[:keep]

    def keep_no_more(self) -> None:
        """Keeps nothing more of the current frame, because bytes of it are missing."""
        self.keepable = self.awaiting_budget = 0
        if self.filter is not None:
            self.filter.broken(self.skip_remaining > 0)
            self.filter = None

    def forget(self) -> None:
        """Drops the current frame."""
        self.parts = NO_PARTS
        self.remaining = 0
        self.keepable = self.awaiting_budget = 0
        self.filter = None

    def release(self) -> None:
        """Releases all but the front of the current frame."""
        if self.remaining:
            self.parts = [b"".join(self.parts)[:RELEASED_FRONT_BYTES]]
            self.keepable = self.awaiting_budget = 0
            self.filter = None

    def held_bytes(self) -> int:
        """Bytes of memory that the current frame takes."""
        return sum(map(len, self.parts)) + SEGMENT_BYTES if self.remaining else 0
