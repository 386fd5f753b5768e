"""Rows under each other, joined by the guides of a tree.

A row is known by its depth alone; whether something comes after it at its own depth, and below which of its ancestors
the tree goes on, is found out from the last row to the first, as one bit a depth. Written for mypyc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from kwiresniff.render.theme import Paint

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Guides that are kept as text: all that the trees of usual messages have.
KEPT: Final = 4096
#: Deeper than any message nests; one bit of a word each.
MAX_DEPTH: Final = 60

#: ``fold(row, lead, hang)``: a row as lines for a terminal, the first one behind ``lead``, the others behind ``hang``.
Fold = Callable[[bytes, str, str], bytes]


@final
class GuidedRows:
    """Collects the rows of one tree, and writes them as lines.

    ``fold`` makes the lines of a row where they must fit a terminal; without it a row is a line as it is.
    """

    def __init__(self, paint: Paint, fold: Fold | None) -> None:
        self._paint = paint
        self._fold = fold
        self._rows: list[bytes] = []
        self._depths: list[int] = []
        self._guides: dict[int, bytes] = {}

    def add(self, depth: i64, row: bytes) -> None:
        """One row; the first depth below the headline is 0."""
        level: int = depth if depth < MAX_DEPTH else MAX_DEPTH
        self._depths.append(level)
        self._rows.append(row)

    def add_all(self, depth: i64, rows: list[bytes]) -> None:
        """Rows below ``depth`` as the writer of rows gives them, their own depths first."""
        depths = rows[0]
        index: i64 = 0
        while index < len(depths):
            level: int = depth + depths[index]
            self._depths.append(level)
            index += 1
        self._rows += rows[1:]

    def lines(self, headline: bytes) -> bytes:
        """The tree, a newline at the end of every line; the next rows are another one's."""
        rows = self._rows
        depths = self._depths
        self._rows, self._depths = [], []
        if self._fold is not None:
            return self._folded(headline, rows, depths, self._fold)
        pieces: list[bytes] = [b"\n"] * (2 * len(rows) + 2)
        pieces[0] = headline
        for index, mask in enumerate(_masks(depths, 0)):
            pieces[2 * index + 1] = self._guide(mask, depths[index])
            pieces[2 * index + 2] = rows[index]
        return b"".join(pieces)

    def lead(self, goes_on: bool) -> bytes:
        """What leads a row of depth 0; ``goes_on`` says that another one comes after it."""
        return self._guide(1 if goes_on else 0, 0)

    def below(self, depths: bytes, goes_on: bool) -> list[bytes]:
        """What leads rows of these depths below a row of depth 0, the end of the line before included.

        ``goes_on`` says that another row of depth 0 comes after them.
        """
        levels = [depth + 1 for depth in depths]
        masks = _masks(levels, 1 if goes_on else 0)
        return [self._guide(mask, level) for mask, level in zip(masks, levels, strict=True)]

    def _folded(self, headline: bytes, rows: list[bytes], depths: list[int], fold: Fold) -> bytes:
        masks = _masks(depths, 0)
        pieces = [fold(headline, "", "    ")]
        last = len(masks) - 1
        for index, row in enumerate(rows):
            depth = depths[index]
            lead, below = self._guide_text(masks[index], depth)
            has_children = index < last and depths[index + 1] > depth
            # A folded line keeps the guide of its own children.
            glyphs = self._paint.glyphs
            pieces.append(fold(row, lead, below + (glyphs.pipe if has_children else glyphs.blank)))
        return b"".join(pieces)

    def _guide(self, mask: int, depth: int) -> bytes:
        """The end of the line before and what leads a row."""
        key = mask + (1 << (depth + 1))
        guide = self._guides.get(key)
        if guide is None:
            if len(self._guides) >= KEPT:
                self._guides.clear()
            lead, _ = self._guide_text(mask, depth)
            guide = self._guides[key] = b"\n" + self._paint.text("dim", lead).encode()
        return guide

    def _guide_text(self, mask: int, depth: int) -> tuple[str, str]:
        """What leads a row, and what its children's guides begin with."""
        glyphs = self._paint.glyphs
        parts = [glyphs.pipe if mask >> level & 1 else glyphs.blank for level in range(depth)]
        above = "".join(parts)
        more = mask >> depth & 1
        return above + (glyphs.branch if more else glyphs.last), above + (glyphs.pipe if more else glyphs.blank)


def _masks(depths: list[int], mask: i64) -> list[int]:
    """For each row at which depths up to its own another row follows, one bit a depth; ``mask`` is that of the end."""
    masks: list[int] = [0] * len(depths)
    one: i64 = 1
    place: i64 = len(depths) - 1
    while place >= 0:
        level: i64 = depths[place]
        bit: i64 = one << level
        masks[place] = mask & (2 * bit - 1)
        mask = (mask & (bit - 1)) | bit
        place -= 1
    return masks
