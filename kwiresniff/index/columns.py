"""Columns of numbers: a few bytes each, and the few that do not fit beside them.

Written for mypyc: an index adds to twenty of them for each exchange.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from mypy_extensions import i64

#: The largest number of 32 bits, and the number that stands for one in ``Narrow.wide``.
MOST: Final = (1 << 31) - 1
WIDE: Final = -(1 << 31)


class NarrowPart(NamedTuple):
    """Some rows of a column: their bytes, and the numbers that do not fit, by row."""

    data: bytes
    wide: dict[int, int]


class Narrow:
    """A column of 4 bytes a row. Numbers that take more stand in ``wide``, by row."""

    def __init__(self) -> None:
        self.data = array("i")
        self.wide: dict[int, int] = {}

    def add(self, value: i64) -> None:
        """Adds a row."""
        if -MOST <= value <= MOST:
            self.data.append(value)
        else:
            self.wide[len(self.data)] = value
            self.data.append(WIDE)

    def get(self, row: int) -> int:
        """The number in a row."""
        value: int = self.data[row]
        return value if value != WIDE else self.wide[row]

    def since(self, row: int) -> NarrowPart:
        """The rows from ``row`` on."""
        wide = {at: value for at, value in self.wide.items() if at >= row} if self.wide else {}
        return NarrowPart(self.data[row:].tobytes(), wide)

    def extend(self, part: NarrowPart) -> None:
        """Adds rows."""
        self.data.frombytes(part.data)
        self.wide.update(part.wide)


class ValueTable:
    """Different values by number, so that a row holds a number of 4 bytes.

    Of all values no more than ``MAX_VALUE_BYTES`` are kept; further ones are ``OTHER``.
    """

    def __init__(self) -> None:
        self.values: list[object] = [None]
        self._numbers: dict[object, int] = {None: 0}
        self._bytes = 0

    def number(self, value: object) -> int:
        """The number of a value that can be hashed; None is number 0."""
        found = self._numbers.get(value)
        return self._new(value) if found is None else found

    def _new(self, value: object) -> int:
        self._bytes += size_of(value)
        if self._bytes > MAX_VALUE_BYTES:
            value = OTHER
            found = self._numbers.get(value)
            if found is not None:
                return found
        number = len(self.values)
        self.values.append(value)
        self._numbers[value] = number
        return number


#: Bytes of memory of the values of a table: names of a large cluster take a tenth.
MAX_VALUE_BYTES: Final = 32 << 20
#: Stands for the values that found no room.
OTHER: Final = ("(more names than are kept)",)
#: What a value takes beside its text: itself, its place in the list and in the dict.
_ENTRY_BYTES: Final = 200


def size_of(value: object) -> int:
    """Roughly the memory that a value takes."""
    if isinstance(value, tuple):
        return _ENTRY_BYTES + sum([size_of(one) for one in value])
    return _ENTRY_BYTES + len(value) if isinstance(value, str) else 50
