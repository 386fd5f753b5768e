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

#: Depths whose guides are all made beforehand.
USUAL_DEPTH: Final = 6

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
        # By depth, then by mask.
        self._usual = [[self._lead(mask, depth) for mask in range(1 << (depth + 1))] for depth in range(USUAL_DEPTH)]

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
        mask: i64 = 0
        one: i64 = 1
        index: i64 = len(rows) - 1
        while index >= 0:
            depth: i64 = depths[index]
            bit: i64 = one << depth
            pieces[2 * index + 1] = self._guide(mask & (2 * bit - 1), depth)
            pieces[2 * index + 2] = rows[index]
            mask = (mask & (bit - 1)) | bit
            index -= 1
        return b"".join(pieces)

    def _folded(self, headline: bytes, rows: list[bytes], depths: list[int], fold: Fold) -> bytes:
        masks: list[int] = [0] * len(rows)
        mask: i64 = 0
        one: i64 = 1
        place: i64 = len(rows) - 1
        while place >= 0:
            level: i64 = depths[place]
            bit: i64 = one << level
            masks[place] = mask & (2 * bit - 1)
            mask = (mask & (bit - 1)) | bit
            place -= 1
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

    def _guide(self, mask: i64, depth: i64) -> bytes:
        """The end of the line before and what leads a row."""
        if depth < USUAL_DEPTH:
            return self._usual[depth][mask]
        key: int = mask + (1 << (depth + 1))
        guide = self._guides.get(key)
        if guide is None:
            if len(self._guides) >= KEPT:
                self._guides.clear()
            guide = self._guides[key] = self._lead(mask, depth)
        return guide

    def _lead(self, mask: int, depth: int) -> bytes:
        lead, _ = self._guide_text(mask, depth)
        return b"\n" + self._paint.text("dim", lead).encode()

    def _guide_text(self, mask: int, depth: int) -> tuple[str, str]:
        """What leads a row, and what its children's guides begin with."""
        glyphs = self._paint.glyphs
        parts = [glyphs.pipe if mask >> level & 1 else glyphs.blank for level in range(depth)]
        above = "".join(parts)
        more = mask >> depth & 1
        return above + (glyphs.branch if more else glyphs.last), above + (glyphs.pipe if more else glyphs.blank)
