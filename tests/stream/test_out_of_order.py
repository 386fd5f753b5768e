"""The queue of segments that came out of order."""

from __future__ import annotations

import random

from kwiresniff.stream.out_of_order import OutOfOrderQueue, QueuedSegment


def segments(count: int) -> list[QueuedSegment]:
    return [(10 * number, number, 0, b"x" * (number % 7), 0, 0) for number in range(count)]


def test_segments_leave_in_the_order_of_their_places() -> None:
    """However they came, and two of the same place in that of their packets."""
    made = [*segments(300), *((10 * number, 1000 + number, 0, b"again", 0, 0) for number in range(0, 300, 3))]
    random.Random(5).shuffle(made)
    queue = OutOfOrderQueue()
    for one in made:
        queue.push(one)
    assert queue.bytes == sum(len(one[3]) for one in made)
    for one in sorted(made):
        assert queue.is_next(one[0])
        assert not queue.is_next(one[0] - 1)
        assert queue.pop_first() == one
    assert (queue.bytes, queue.segments) == (0, [])
