"""Whoever may be asked to release bytes when all connections together hold too many."""

from __future__ import annotations

from typing import Protocol


class BufferOwner(Protocol):
    """Something that buffers bytes and can release them."""

    def held_bytes(self) -> int:
        """Bytes of memory that it holds."""

    def release(self) -> None:
        """Release all of them, or a good part, as far as that is possible."""
