"""How many bytes all connections together hold back, and who gives way when that is too much.

Each direction and each connection has limits of its own; thousands of connections at their limits would still be more
than any machine has. Whoever holds more than ``FREE_BYTES`` says so when it grows, not when it shrinks, so that nothing
is paid where frames complete: the figures are upper bounds, put right before anybody has to give way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

#: What one direction or connection holds without being counted.
FREE_BYTES = 64 << 10
#: Frames being assembled, segments out of order and large requests that wait for an answer, of all connections: two of
#: the largest frames that are kept at once.
MAX_HELD_BYTES = 256 << 20
#: Room is made down to this share of the limit, so that it is not made again at once.
RELIEF = 0.875


class Holder(Protocol):
    """Somebody who holds bytes back."""

    def held_bytes(self) -> int:
        """How many bytes are held, at most."""

    def shed(self) -> None:
        """Give them up, as far as that is possible."""


class Budget:
    """The account of one analyzer. ``given_up(holder, bytes)`` is told who gave way."""

    __slots__ = ("_figures", "given_up", "held", "limit")

    def __init__(self, given_up: Callable[[Holder, int], None], limit: int = MAX_HELD_BYTES) -> None:
        self._figures: dict[Holder, int] = {}
        self.given_up = given_up
        self.held = 0
        self.limit = limit

    def tell(self, holder: Holder, size: int) -> None:
        """``holder`` holds ``size`` bytes now."""
        figures = self._figures
        self.held += size - figures.get(holder, 0)
        figures[holder] = size

    def forget(self, holder: Holder) -> None:
        """``holder`` has come to its end."""
        self.held -= self._figures.pop(holder, 0)

    def relieve(self) -> None:
        """Make room if there is too little: the biggest gives way first.

        To be called between two segments only, since whoever gives way may deliver what waited.
        """
        if self.held <= self.limit:
            return
        self._figures = {one: size for one in self._figures if (size := one.held_bytes()) > FREE_BYTES}
        self.held = sum(self._figures.values())
        while self.held > self.limit * RELIEF and self._figures:
            biggest = max(self._figures, key=self._figures.__getitem__)
            size = biggest.held_bytes()
            self.forget(biggest)
            biggest.shed()
            left = biggest.held_bytes()
            if left < size:  # else it holds what cannot be given up, and is left out of the account
                self.tell(biggest, left)
                self.given_up(biggest, size - left)
