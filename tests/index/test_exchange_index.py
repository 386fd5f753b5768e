"""The columns of the index: what they cost, what they keep, and what finds no room."""

from __future__ import annotations

from array import array

import pytest

from kwiresniff.index import ExchangeIndex, IndexSink
from kwiresniff.index import columns as columns_module
from kwiresniff.index.columns import MOST, OTHER, Narrow, ValueTable
from kwiresniff.index.exchange_index import MAX_EXCHANGES, Have
from kwiresniff.index.index_sink import AND_MORE, MAX_PROBLEMS, MAX_SHOWN
from kwiresniff.model import Problem
from tests.support.exchanges import exchange
from tests.support.indexed import indexed
from tests.support.paths import CAPTURES

#: Bytes an exchange that docs/limits.md and the module promise.
PROMISED_BYTES = 86


def test_an_exchange_takes_the_bytes_that_are_promised() -> None:
    """All columns together, of a recording."""
    index = indexed(CAPTURES / "java-produce.pcap")[0]
    columns = [one for one in vars_of(index) if isinstance(one, array)]
    narrow = [one.data for one in vars_of(index) if isinstance(one, Narrow)]
    assert sum(len(one) * one.itemsize for one in columns + narrow) == PROMISED_BYTES * len(index)


def vars_of(index: ExchangeIndex) -> list[object]:
    """The members of an index, compiled or not."""
    return [getattr(index, name) for name in dir(index) if not name.startswith("_")]


@pytest.mark.parametrize("value", [0, -1, MOST, -MOST, MOST + 1, -MOST - 1, 1 << 62])
def test_numbers_of_any_size_come_back_from_four_bytes(value: int) -> None:
    """Those that do not fit stand beside the column, also in another process."""
    column, other = Narrow(), Narrow()
    column.add(5)
    column.add(value)
    other.extend(column.since(0))
    assert [other.get(0), other.get(1)] == [5, value]
    assert column.since(2).wide == {}


def test_an_index_takes_no_more_exchanges_than_it_has_room_for() -> None:
    """And counts those that it leaves out."""
    index = ExchangeIndex()
    index.started_ns = array("q", bytes(8 * (MAX_EXCHANGES - 1)))
    index.add(exchange(), (), ())
    index.add(exchange(), (), ())
    assert (len(index), index.left_out) == (MAX_EXCHANGES, 1)


def test_values_beyond_the_memory_that_they_may_take_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture can name any number of topics."""
    monkeypatch.setattr(columns_module, "MAX_VALUE_BYTES", 10_000)
    table = ValueTable()
    numbers = {table.number(("x" * 1000, str(number))) for number in range(1000)}
    assert len(numbers) < 10
    assert table.values[-1] == OTHER


def test_only_some_names_of_an_exchange_are_kept() -> None:
    """An exchange can name any number of them."""
    index = ExchangeIndex()
    sink = IndexSink(index, lambda topic_id: None)
    one = exchange()
    assert one.request is not None
    one.request.body = {"topics": [{"name": f"topic-{number}", "partitions": []} for number in range(100)]}
    sink.on_exchange(one)
    topics, _ = index.names_of(0)
    assert topics == (*(f"topic-{number}" for number in range(MAX_SHOWN)), AND_MORE)


def test_problems_that_nobody_takes_are_left_out_from_some_number_on() -> None:
    """A damaged capture can have any number of them."""
    sink = IndexSink(ExchangeIndex(), lambda topic_id: None)
    for _ in range(MAX_PROBLEMS + 10):
        sink.on_problem(Problem("gap", "bytes are missing"))
    assert len(sink.take_problems()) == MAX_PROBLEMS
    assert sink.take_problems() == []


def test_parts_of_an_index_make_the_same_index() -> None:
    """Rows, values and connections arrive, whenever they were sent."""
    whole, copy, have = ExchangeIndex(), ExchangeIndex(), Have()
    for number in range(10):
        one = exchange(correlation_id=number)
        whole.add(one, (f"t{number % 3}",), ())
        if number % 4 == 3:
            part, have = whole.since(have), whole.size
            copy.extend(part)
    copy.extend(whole.since(have))
    assert [copy.exchange(row).correlation_id for row in range(10)] == list(range(10))
    assert [copy.names_of(row) for row in range(10)] == [whole.names_of(row) for row in range(10)]
    assert {one.client for one in copy.connections.values()} == {one.client for one in whole.connections.values()}
