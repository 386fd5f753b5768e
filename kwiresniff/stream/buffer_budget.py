"""How many bytes all connections together may buffer, and which of them release bytes when that is too much.

Each direction and each connection has limits of its own; thousands of connections at their limits would still be more
than any machine has. Whoever takes bytes in adds them to ``held``, and nobody subtracts any, so that nothing is paid
where frames complete: ``held`` is an upper bound. When it exceeds the limit, everybody is asked what they really hold,
which happens once in many megabytes of traffic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kwiresniff.stream.buffer_owner import BufferOwner

#: A frame that comes in pieces takes its memory in steps of at least this.
STEP_BYTES: Final = 64 << 10
#: Bytes held of all connections (frames, searches, queues, requests, responses): two of the largest frames.
MAX_HELD_BYTES = 256 << 20
#: This part of the limit is made free when room is made, so that it is not made again at once.
RELIEF_PART: Final = 8

#: What is kept of a segment, and of a request or response, takes so much memory beside its bytes.
SEGMENT_BYTES: Final = 256
EXCHANGE_BYTES: Final = 1024
#: Bytes held for nothing in particular by somebody who holds anything: not worth being given up.
SMALL_BYTES: Final = 2048


class BufferBudget:
    """The account of one analyzer: an upper bound of the bytes ``held``, which should not exceed ``limit``."""

    STATE: ClassVar[tuple[str, ...]] = ("held", "limit")
    __slots__ = STATE

    def __init__(self, limit: int = MAX_HELD_BYTES) -> None:
        self.held: i64 = 0
        self.limit: i64 = limit

    def enforce(self, owners: Iterable[BufferOwner]) -> Iterator[tuple[BufferOwner, int]]:
        """Has the largest owners release bytes until all hold well below the limit, yielding each with its bytes. To be
        called between segments: owners may deliver what waited.
        """
        everybody = list(owners)
        biggest = [(-size, number) for number, owner in enumerate(everybody) if (size := owner.held_bytes())]
        held = -sum(size for size, _ in biggest)
        heapify(biggest)
        enough = self.limit - self.limit // RELIEF_PART
        while held > enough and biggest and -biggest[0][0] > SMALL_BYTES:
            negative, number = heappop(biggest)
            owner = everybody[number]
            owner.release()
            left = owner.held_bytes()
            given_up = -negative - left
            if given_up > 0:  # else it holds what cannot be given up
                held -= given_up
                heappush(biggest, (-left, number))
                yield owner, given_up
        self.held = held
