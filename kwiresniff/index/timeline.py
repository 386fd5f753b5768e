"""Latency and errors over time, of rows of an index, in slices of equal width."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kwiresniff.index.exchange_index import NEGOTIATION, WAIT_SHIFT, ExchangeIndex
from kwiresniff.model import OUTCOMES

_ERROR = OUTCOMES.index("error")
_UNANSWERED = OUTCOMES.index("unanswered")


class TimeSlice(NamedTuple):
    """The exchanges whose first byte came in a slice of time; latencies are those without deliberate waits, None where
    there are none.
    """

    count: int  # type: ignore[assignment]  # not the method of tuples
    errors: int
    unanswered: int
    p50_ns: int | None
    p99_ns: int | None
    max_ns: int | None


EMPTY = TimeSlice(0, 0, 0, None, None, None)


class Span(NamedTuple):
    """A time from ``start_ns`` on, up to but without ``end_ns``."""

    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns

    def part(self, at: int, count: int) -> Span:
        """The slice with number ``at`` of ``count`` equal ones."""
        return Span(self.start_ns + self.length_ns * at // count, self.start_ns + self.length_ns * (at + 1) // count)


def span_of(index: ExchangeIndex) -> Span:
    """The time that an index spans."""
    if not len(index):
        return Span(0, 1)
    return Span(min(index.started_ns), max(index.started_ns) + 1)


def slices(index: ExchangeIndex, rows: Iterable[int], span: Span, count: int) -> list[TimeSlice]:
    """``count`` slices of ``span``, of the rows that begin in it."""
    counts, errors, unanswered = [0] * count, [0] * count, [0] * count
    latencies: list[list[int]] = [[] for _ in range(count)]
    started, outcomes, flags = index.started_ns, index.outcomes, index.flags
    length_ns = span.length_ns
    for row in rows:
        since_ns = started[row] - span.start_ns
        if not 0 <= since_ns < length_ns:
            continue
        at = since_ns * count // length_ns
        counts[at] += 1
        flag = flags[row]
        if not flag & NEGOTIATION:
            outcome = outcomes[row]
            if outcome == _ERROR:
                errors[at] += 1
            elif outcome == _UNANSWERED:
                unanswered[at] += 1
        if not flag >> WAIT_SHIFT:
            latency_ns = index.latency_ns(row)
            if latency_ns >= 0:
                latencies[at].append(latency_ns)
    found: list[TimeSlice] = []
    for at in range(count):
        known = sorted(latencies[at])
        size = len(known)
        percentiles = (known[size // 2], known[min(size * 99 // 100, size - 1)], known[-1]) if size else (None,) * 3
        found.append(TimeSlice(counts[at], errors[at], unanswered[at], *percentiles))
    return found
