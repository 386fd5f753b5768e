"""Slices of time."""

from __future__ import annotations

from itertools import pairwise

from kwiresniff.index import ExchangeIndex
from kwiresniff.index.timeline import Span, slices, span_of
from tests.support.indexed import indexed
from tests.support.paths import CAPTURES


def test_every_exchange_is_in_one_slice() -> None:
    """However many there are."""
    index = indexed(CAPTURES / "java-produce.pcap")[0]
    for count in (1, 7, 200):
        assert sum(one.count for one in slices(index, range(len(index)), span_of(index), count)) == len(index)


def test_a_slice_has_the_latencies_of_what_begins_in_it() -> None:
    """Its maximum is that of the exchange that waited longest, of those that nobody held back."""
    index = indexed(CAPTURES / "java-produce.pcap")[0]
    one = slices(index, range(len(index)), span_of(index), 1)[0]
    known = sorted(index.latency_ns(row) for row in range(len(index)) if not index.exchange(row).waiting)
    known = [ns for ns in known if ns >= 0]
    assert (one.p50_ns, one.max_ns) == (known[len(known) // 2], known[-1])


def test_parts_of_a_span_follow_each_other() -> None:
    """Without a hole, to the last nanosecond."""
    span = Span(10, 1_007)
    parts = [span.part(at, 10) for at in range(10)]
    assert parts[0].start_ns == 10 and parts[-1].end_ns == 1_007
    assert all(one.end_ns == other.start_ns for one, other in pairwise(parts))


def test_an_empty_index_has_a_span() -> None:
    assert slices(ExchangeIndex(), (), span_of(ExchangeIndex()), 3)[0].count == 0
