"""Results of statistics: distributions of latency, rows of tables.

Named tuples, which are made in a fifth of the time that dataclasses take: it is part of every short run.
"""

from __future__ import annotations

from typing import NamedTuple

from kwiresniff.base.address_names import Name


class LatencySummary(NamedTuple):
    """A latency distribution in numbers, all in nanoseconds.

    Percentiles are within 1 % of a measured value; ``count``, ``min_ns``, ``mean_ns`` and ``max_ns`` are exact.
    ``buckets`` is for drawing: ``(upper_bound_ns, count)`` in steps of 1, 2, 5 from the lowest to the highest one
    that is not empty, without holes.
    """

    count: int  # type: ignore[assignment] # a tuple's method of that name is not missed
    min_ns: int
    mean_ns: int
    p50_ns: int
    p90_ns: int
    p95_ns: int
    p99_ns: int
    max_ns: int
    buckets: tuple[tuple[int, int], ...] = ()


class StatRow(NamedTuple):
    """One row of a statistics table.

    ``by`` are the names of the table's dimensions (``api``, ``client``, ``topic``, ...) and ``key`` this row's value
    for each of them. ``errors`` counts exchanges with at least one error code,
    ``unanswered`` requests that should have been answered and were not, ``negotiation`` what is ordinary and in
    neither: steps of the protocol, and long polls under way at the end. Bytes are frame sizes without the 4-byte
    length. ``latency`` covers the exchanges that were answered at once, ``waiting`` by its reason (``long poll``,
    ``rebalance``, ``throttled``) those where the broker held the answer back on purpose. Of all of them together
    ``queued`` and ``held`` are how long those were queued or held that were, ``path`` what packets took to brokers that
    are far away, and ``broker`` is the broker's own time, without the answers of which all was held. Records, None
    where they were not counted, are those of Produce requests and of Fetch responses. ``names`` are what the address
    in a part of the key is called, by its dimension.
    """

    by: tuple[str, ...]
    key: tuple[str, ...]
    count: int  # type: ignore[assignment] # a tuple's method of that name is not missed
    errors: int
    unanswered: int
    request_bytes: int
    response_bytes: int
    latency: LatencySummary | None
    waiting: tuple[tuple[str, LatencySummary], ...] = ()
    queued: LatencySummary | None = None
    held: LatencySummary | None = None
    broker: LatencySummary | None = None
    negotiation: int = 0
    request_records: int | None = None
    response_records: int | None = None
    path: LatencySummary | None = None
    names: tuple[tuple[str, tuple[Name, ...]], ...] = ()
