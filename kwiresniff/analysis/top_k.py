"""A table with a bounded number of rows for the busiest keys; all other keys share one row.

Rows only ever count up, so that rates can be taken from them. A key that loses its row starts at nothing when it comes
back, and what it did meanwhile is in the row of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

#: A row's key: the values of its labels.
Labels: TypeAlias = tuple[str, ...]
Row = TypeVar("Row")

#: Keys without a row whose use is counted between two reviews; what comes later waits for the next.
MAX_CANDIDATES = 10_000
#: A key takes over a row when it was used so many times as often as the row's: neighbours must not swap all the time.
ADVANTAGE = 2


class TopK(Generic[Row]):
    """``size`` rows, and one with the key ``others`` for the rest."""

    def __init__(self, size: int, others: Labels, new_row: Callable[[], Row]) -> None:
        self._others_key = others
        self._others = new_row()
        self._has_others = False
        self._size = size
        self._new_row = new_row
        self._rows: dict[Labels, Row] = {}
        self._uses: dict[Labels, int] = {}

    def row(self, key: Labels) -> Row:
        """The row that counts for ``key`` now."""
        uses = self._uses
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= self._size or key == self._others_key:
                return self._count_other(key)
            row = self._rows[key] = self._new_row()
        uses[key] = uses.get(key, 0) + 1
        return row

    def _count_other(self, key: Labels) -> Row:
        uses = self._uses
        if key in uses or len(uses) < MAX_CANDIDATES + self._size:
            uses[key] = uses.get(key, 0) + 1
        self._has_others = True
        return self._others

    def rows(self) -> list[tuple[Labels, Row]]:
        """The keys that have rows, with them, that of the others last. May be called while another thread counts."""
        others = [(self._others_key, self._others)] if self._has_others else []
        return [*list(self._rows.items()), *others]

    def review(self) -> None:
        """Gives the rows of the keys least used since the last review to those used much more without having one."""
        rows, uses = self._rows, self._uses
        self._uses = {}
        if len(rows) < self._size:
            return
        quietest = sorted(rows, key=lambda key: uses.get(key, 0))
        waiting = [key for key in uses if key not in rows and key != self._others_key]
        newcomers = sorted(waiting, key=lambda key: -uses[key])
        for leaving, coming in zip(quietest, newcomers, strict=False):
            if uses[coming] <= ADVANTAGE * uses.get(leaving, 0):
                break
            del rows[leaving]
            rows[coming] = self._new_row()
