"""Memory budgets, in bytes, for what an analysis remembers of the wire: names, rows, events.

A number of things says little about memory where each of them may be as long as a frame. Sizes are what CPython takes
for them, on the safe side: text as it counts it itself, the rest by constants.
"""

from __future__ import annotations

from sys import getsizeof
from typing import Any, Final

#: An entry of a dict: its slot, and the room that the dict grows ahead of use.
ENTRY_BYTES: Final = 100
#: A dict or a list, empty.
CONTAINER_BYTES: Final = 80
#: A number in a list: the slot and the object.
NUMBER_BYTES: Final = 40


class MemoryBudget:
    """How many bytes an analysis may remember, and how many it does. ``refused`` counts what ``admit_or_count`` had no
    room for.
    """

    __slots__ = ("held_bytes", "limit_bytes", "refused")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.refused = 0

    def charge(self, size: int) -> None:
        """Counts ``size`` bytes more, whether there is room for them or not."""
        self.held_bytes += size

    def admit(self, size: int) -> bool:
        """Counts ``size`` bytes more if there is room for them; False when there is none, and they
        are not to be kept.
        """
        if self.held_bytes + size > self.limit_bytes:
            return False
        self.held_bytes += size
        return True

    def admit_or_count(self, size: int) -> bool:
        """Admits ``size`` bytes; where there is no room for them, that is counted in ``refused``."""
        if self.admit(size):
            return True
        self.refused += 1
        return False

    def release(self, size: int) -> None:
        """Gives ``size`` bytes back."""
        self.held_bytes -= size

    @property
    def exceeded(self) -> bool:
        """Whether more bytes are held than the limit."""
        return self.held_bytes > self.limit_bytes


def text_bytes(*texts: str | None) -> int:
    """Bytes of memory that texts take; None takes none."""
    size = 0
    for text in texts:
        if text is not None:
            size += getsizeof(text)
    return size


def value_bytes(value: Any) -> int:
    """The memory of a decoded value: dicts, lists, texts, bytes, numbers. Recursion is as deep as the value.

    A list of numbers is not looked through: it is of one kind, like all arrays of the protocol.
    """
    if isinstance(value, str | bytes):
        return getsizeof(value)
    if isinstance(value, dict):
        members = [ENTRY_BYTES + getsizeof(name) + value_bytes(member) for name, member in value.items()]
        return CONTAINER_BYTES + sum(members)
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], int | float):
            return CONTAINER_BYTES + NUMBER_BYTES * len(value)
        return CONTAINER_BYTES + sum(map(value_bytes, value))
    return NUMBER_BYTES
