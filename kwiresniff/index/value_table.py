"""Different values by number, so that a row of an index holds a number of 4 bytes.

Written for mypyc: every exchange of a capture looks some values up.
"""

from __future__ import annotations

from typing import Final

#: Bytes of memory of the values of a table: names of a large cluster take a tenth.
MAX_VALUE_BYTES: Final = 32 << 20
#: Stands for the values that found no room.
OTHER: Final = ("(more names than are kept)",)
#: What a value takes beside its text: itself, its place in the list and in the dict.
_ENTRY_BYTES: Final = 200


class ValueTable:
    """Numbers values that can be hashed, None with 0. ``new`` are those since they were last taken.

    Of all values no more than ``most_bytes`` are kept; further ones are ``OTHER``.
    """

    def __init__(self, most_bytes: int = MAX_VALUE_BYTES) -> None:
        self.new: list[object] = []
        self._numbers: dict[object, int] = {None: 0}
        self._bytes = 0
        self._most_bytes = most_bytes

    def number(self, value: object) -> int:
        """The number of a value."""
        found = self._numbers.get(value)
        return self._add(value) if found is None else found

    def take_new(self) -> list[object]:
        """Removes and returns the values that have come since, in the order of their numbers."""
        new, self.new = self.new, []
        return new

    def _add(self, value: object) -> int:
        self._bytes += size_of(value)
        if self._bytes > self._most_bytes:
            value = OTHER
            found = self._numbers.get(value)
            if found is not None:
                return found
        number = len(self._numbers)
        self._numbers[value] = number
        self.new.append(value)
        return number


def size_of(value: object) -> int:
    """Roughly the memory that a value takes."""
    if isinstance(value, tuple):
        return _ENTRY_BYTES + sum([size_of(one) for one in value])
    return _ENTRY_BYTES + len(value) if isinstance(value, str) else 50
