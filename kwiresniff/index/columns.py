"""Columns of numbers: a few bytes each, and the few that do not fit beside them."""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

#: The largest number of 32 bits, and the number that stands for one in ``NarrowPart.wide``.
MOST: Final = (1 << 31) - 1
WIDE: Final = -(1 << 31)


class NarrowPart(NamedTuple):
    """Some rows of a column: their bytes, and the numbers that do not fit, by row counted from the first of them."""

    data: bytes
    wide: dict[int, int]


def narrow_part(values: list[int]) -> NarrowPart:
    """A part of these values."""
    wide: dict[int, int] = {}
    if values and not (min(values) >= -MOST and max(values) <= MOST):
        wide = {row: value for row, value in enumerate(values) if not -MOST <= value <= MOST}
        values = [WIDE if row in wide else value for row, value in enumerate(values)]
    return NarrowPart(array("i", values).tobytes(), wide)


class Narrow:
    """A column of 4 bytes a row. Numbers that take more stand in ``wide``, by row."""

    def __init__(self) -> None:
        self.data = array("i")
        self.wide: dict[int, int] = {}

    def get(self, row: int) -> int:
        """The number in a row."""
        value: int = self.data[row]
        return value if value != WIDE else self.wide[row]

    def extend(self, part: NarrowPart) -> None:
        """Adds rows."""
        first = len(self.data)
        self.data.frombytes(part.data)
        for row, value in part.wide.items():
            self.wide[first + row] = value
