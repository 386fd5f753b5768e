"""Which rows are listed, and in which order."""

from __future__ import annotations

import pytest

from kwiresniff.browse.selection import ORDERS, Order, Selection, rows_with_packets
from kwiresniff.index import ExchangeIndex, IndexSink
from tests.support.exchanges import exchange
from tests.support.indexed import indexed
from tests.support.paths import CAPTURES


def selection_of(*latencies_ns: int) -> Selection:
    """A selection of exchanges with these latencies."""
    index, sink = ExchangeIndex(), IndexSink(lambda topic_id: None)
    for number, latency_ns in enumerate(latencies_ns):
        sink.on_exchange(exchange(latency_ns=latency_ns, correlation_id=number))
    index.extend(sink.take())
    return Selection(index)


def sort(selection: Selection, order: Order) -> list[int]:
    """The rows in an order."""
    selection.take_sorted(order, selection.in_order(order))
    return list(selection.rows)


def test_rows_are_sorted_by_latency_the_longest_first_and_back() -> None:
    """As they stand in the index where nothing else is asked for."""
    selection = selection_of(3, 9, 1)
    assert list(selection.rows) == [0, 1, 2]
    assert sort(selection, Order("latency", True)) == [1, 0, 2]
    assert sort(selection, Order("latency", False)) == [2, 0, 1]
    assert sort(selection, Order("time", True)) == [2, 1, 0]
    assert sort(selection, Order("time", False)) == [0, 1, 2]


def test_rows_that_come_later_stand_behind_those_that_are_sorted() -> None:
    """Until they are sorted again; so are others that are chosen, and the order stays."""
    selection = selection_of(3, 9, 1, 5)
    selection.choose([0, 1])
    assert sort(selection, Order("latency", True)) == [1, 0]
    selection.add([2, 3])
    assert list(selection.rows) == [1, 0, 2, 3]
    assert sort(selection, selection.order) == [1, 3, 0, 2]
    selection.choose([0, 1])
    assert (list(selection.rows), selection.order) == ([0, 1], Order("latency", True))


@pytest.mark.parametrize("name", list(ORDERS))
def test_every_order_keeps_every_row(name: str) -> None:
    """Of a recording with errors and several clients."""
    index, _ = indexed(CAPTURES / "java-produce.pcap")
    selection = Selection(index)
    assert sorted(sort(selection, Order(name, True))) == list(range(len(index)))
    assert all(selection.place_of(row) is not None for row in range(len(index)))


def test_an_exchange_is_found_by_each_packet_of_its_request_and_response() -> None:
    """And by no packet between them."""
    index, _ = indexed(CAPTURES / "java-produce.pcap")
    for row in range(0, len(index), 5):
        one = index.exchange(row)
        for message in (one.request, one.response):
            if message is not None:
                assert row in rows_with_packets(index, [message.first_packet])
                assert row in rows_with_packets(index, [message.last_packet])
    assert rows_with_packets(index, [10**9]) == rows_with_packets(index, []) == []
