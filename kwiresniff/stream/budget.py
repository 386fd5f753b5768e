"""How many bytes all connections together hold back, and who gives way when that is too much.

Each direction and each connection has limits of its own; thousands of connections at their limits would still be more
than any machine has. Whoever takes bytes in adds them to ``held``, and nobody subtracts any, so that nothing is paid
where frames complete: ``held`` is an upper bound. When it exceeds the limit, everybody is asked what they really hold,
which happens once in many megabytes of traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from mypy_extensions import i64

#: A frame that comes in pieces takes its memory in steps of at least this.
STEP_BYTES: Final = 64 << 10
#: Frames being assembled, bytes under search, segments out of order, requests that wait for an answer and answers that
#: wait for their request, of all connections: two of the largest frames that are kept at once.
MAX_HELD_BYTES = 256 << 20
#: This part of the limit is made free when room is made, so that it is not made again at once.
RELIEF_PART: Final = 8

#: What is kept of a segment, and of a request or response, takes so much memory beside its bytes.
SEGMENT_BYTES: Final = 256
EXCHANGE_BYTES: Final = 1024
#: Bytes held for nothing in particular by somebody who holds anything: not worth being given up.
SMALL_BYTES: Final = 2048


class Holder(Protocol):
    """Somebody who holds bytes back."""

    def held_bytes(self) -> int:
        """How much memory is held."""

    def shed(self) -> None:
        """Give it up, as far as that is possible, or a good part of it."""


class Budget:
    """The account of one analyzer.

    ``holders()`` are all who may hold anything, ``given_up(holder, bytes)`` is told who gave way.
    """

    __slots__ = ("given_up", "held", "holders", "limit")

    def __init__(
        self,
        holders: Callable[[], Iterable[Holder]],
        given_up: Callable[[Holder, int], None],
        limit: int = MAX_HELD_BYTES,
    ) -> None:
        self.holders = holders
        self.given_up = given_up
        self.held: i64 = 0
        self.limit: i64 = limit

    def relieve(self) -> None:
        """Make room if there is too little: the biggest gives way first.

        To be called between two segments only, since whoever gives way may deliver what waited.
        """
        if self.held > self.limit:
            self._make_room()

    def _make_room(self) -> None:
        holders = list(self.holders())
        biggest = [(-size, number) for number, holder in enumerate(holders) if (size := holder.held_bytes())]
        held = -sum(size for size, _ in biggest)
        heapify(biggest)
        enough = self.limit - self.limit // RELIEF_PART
        while held > enough and biggest and -biggest[0][0] > SMALL_BYTES:
            negative, number = heappop(biggest)
            holder = holders[number]
            holder.shed()
            left = holder.held_bytes()
            given_up = -negative - left
            if given_up > 0:  # else it holds what cannot be given up
                held -= given_up
                heappush(biggest, (-left, number))
                self.given_up(holder, given_up)
        self.held = held
