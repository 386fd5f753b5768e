"""Which rows of an index are listed, and in which order."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from kwiresniff.index import ExchangeIndex
from kwiresniff.schema import API_NAMES

#: Orders of rows, and whether the greatest comes first.
ORDERS: Final = {
    "time": False, "latency": True, "size": True, "api": False, "outcome": True, "client": False, "connection": False,
    "broker": False,
}  # fmt: skip


class Order(NamedTuple):
    """What rows are sorted by; by ``time`` is as they stand in the index."""

    name: str = "time"
    reverse: bool = False


class Selection:
    """Rows chosen of ``index``, or all of them (``chosen`` None), sorted by ``order``; those that have come since they
    were sorted stand behind them, or are missing where all are listed.

    ``label`` says in words what they are where no filter does.
    """

    def __init__(self, index: ExchangeIndex) -> None:
        self.index = index
        self.chosen: array[int] | None = None
        self.order = Order()
        self.label = ""
        self._sorted: list[int] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def rows(self) -> Sequence[int]:
        """The rows in their order."""
        if self._sorted is not None:
            return self._sorted
        return range(len(self.index)) if self.chosen is None else self.chosen

    def choose(self, rows: Iterable[int] | None, label: str = "") -> None:
        """Takes these rows, or all, which stand as in the index until they are sorted by ``order`` again."""
        self.chosen = None if rows is None else array("I", rows)
        self.label = label
        self._sorted = None

    def add(self, rows: Iterable[int]) -> None:
        """Adds to the rows that are chosen; they stand behind those that are sorted."""
        if self.chosen is not None:
            before = len(self.chosen)
            self.chosen.extend(rows)
            if self._sorted is not None:
                self._sorted.extend(self.chosen[before:])

    def in_order(self, order: Order) -> list[int] | None:
        """The rows sorted, for ``take_sorted``: this takes long where they are many. None is as they are."""
        rows: Sequence[int] = range(len(self.index)) if self.chosen is None else array("I", self.chosen)
        if order.name == "time":
            return list(reversed(rows)) if order.reverse else None
        return sorted(rows, key=self._key(order.name), reverse=order.reverse)

    def take_sorted(self, order: Order, rows: list[int] | None) -> None:
        """Takes the rows of ``in_order``."""
        self.order, self._sorted = order, rows

    def _key(self, name: str) -> Callable[[int], Any]:
        index = self.index
        if name == "latency":
            return index.latency_ns
        if name == "size":
            return lambda row: index.request_bytes.get(row) + index.response_bytes.get(row)
        if name == "api":
            return lambda row: (API_NAMES.get(index.apis[2 * row], ""), index.apis[2 * row + 1])
        if name == "outcome":
            return lambda row: (index.errors.get(row) > 0, index.outcomes[row])
        if name == "client":
            return lambda row: str(index.values[index.client_id.get(row)] or "")
        if name == "connection":
            return index.connection.get
        return lambda row: index.connections[index.connection.get(row)].broker

    def place_of(self, row: int) -> int | None:
        """Where a row is listed; None where it is not."""
        rows = self.rows
        if isinstance(rows, range):
            return rows.index(row) if row in rows else None
        try:
            return rows.index(row)
        except ValueError:
            return None


def rows_with_packets(index: ExchangeIndex, packets: Iterable[int]) -> list[int]:
    """The rows whose request or response lies in one of these packets, by packet reference."""
    wanted = sorted(set(packets))
    found: list[int] = []
    if not wanted:
        return found
    low, high = wanted[0], wanted[-1]
    for row, first in enumerate(index.packets):
        spans = ((first, first + index.request_packets.get(row)),)
        if index.response_bytes.get(row):
            answered = first + index.response_first.get(row)
            spans = (*spans, (answered, first + index.response_packets.get(row)))  # type: ignore[assignment]
        if spans[-1][1] < low or first > high:
            continue
        if any(start <= packet <= end for start, end in spans for packet in wanted):
            found.append(row)
    return found
