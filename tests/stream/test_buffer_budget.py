"""The budget of all connections: the biggest gives way first, and no more than is needed."""

from __future__ import annotations

from kwiresniff.stream.buffer_budget import RELIEF_PART, SMALL_BYTES, BufferBudget


class Owner:
    """Holds so many bytes, and gives up all but ``stubborn``."""

    def __init__(self, size: int, stubborn: int = 0) -> None:
        self.size, self.stubborn = size, stubborn

    def held_bytes(self) -> int:
        return self.size

    def release(self) -> None:
        self.size = min(self.size, self.stubborn)


def test_the_biggest_gives_way_until_there_is_room() -> None:
    """A part of the limit is made free, so that it is not made again at once."""
    owners = [Owner(30_000), Owner(50_000), Owner(40_000), Owner(1_000)]
    budget = BufferBudget(100_000)
    budget.held = 1 << 40  # an upper bound, never lowered as frames complete
    assert list(budget.enforce(owners)) == [(owners[1], 50_000)]
    assert budget.held == 71_000 <= 100_000 - 100_000 // RELIEF_PART


def test_who_can_give_up_nothing_is_asked_once() -> None:
    """Owners that hold next to nothing are never asked to release bytes."""
    owners = [Owner(90_000, stubborn=90_000), Owner(50_000, stubborn=10_000), Owner(SMALL_BYTES)]
    budget = BufferBudget(10_000)
    assert list(budget.enforce(owners)) == [(owners[1], 40_000)]
    assert budget.held == 90_000 + 10_000 + SMALL_BYTES
