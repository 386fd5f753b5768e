"""The columns of the index: what they cost, what they keep, and what finds no room."""

from __future__ import annotations

from array import array

import pytest

import kwiresniff
from kwiresniff.index import ExchangeIndex, IndexSink
from kwiresniff.index.columns import MOST, Narrow, narrow_part
from kwiresniff.index.index_sink import AND_MORE, MAX_PROBLEMS, MAX_SHOWN
from kwiresniff.index.value_table import OTHER, ValueTable
from kwiresniff.model import Exchange, Problem
from tests.support.exchanges import exchange
from tests.support.indexed import indexed
from tests.support.paths import CAPTURES

#: Bytes an exchange that docs/limits.md and the module promise.
PROMISED_BYTES = 86


def no_name(topic_id: str) -> str | None:
    return None


def index_of(*exchanges: Exchange) -> ExchangeIndex:
    """An index of these exchanges."""
    index, sink = ExchangeIndex(), IndexSink(no_name)
    for one in exchanges:
        sink.on_exchange(one)
    index.extend(sink.take())
    return index


def test_an_exchange_takes_the_bytes_that_are_promised() -> None:
    """All columns together, of a recording."""
    index, _ = indexed(CAPTURES / "java-produce.pcap")
    members = [getattr(index, name) for name in dir(index) if not name.startswith("_")]
    columns = [one for one in members if isinstance(one, array)]
    columns += [one.data for one in members if isinstance(one, Narrow)]
    assert sum(len(one) * one.itemsize for one in columns) == PROMISED_BYTES * len(index)


@pytest.mark.parametrize("value", [0, -1, MOST, -MOST, MOST + 1, -MOST - 1, 1 << 62])
def test_numbers_of_any_size_come_back_from_four_bytes(value: int) -> None:
    """Those that do not fit stand beside the column, in every part at the row that is theirs."""
    column = Narrow()
    column.extend(narrow_part([5]))
    column.extend(narrow_part([7, value]))
    assert [column.get(row) for row in range(3)] == [5, 7, value]


def test_an_index_takes_no_more_exchanges_than_it_has_room_for() -> None:
    """And counts those that it leaves out."""
    sink, index = IndexSink(no_name, most=2), ExchangeIndex()
    for _ in range(5):
        sink.on_exchange(exchange())
    index.extend(sink.take())
    assert (len(index), index.left_out) == (2, 3)


def test_values_beyond_the_memory_that_they_may_take_are_one() -> None:
    """A capture can name any number of topics."""
    table = ValueTable(most_bytes=10_000)
    numbers = {table.number(("x" * 1000, str(number))) for number in range(1000)}
    assert len(numbers) < 10
    assert table.take_new()[-1] == OTHER


def test_only_some_names_of_an_exchange_are_kept() -> None:
    """An exchange can name any number of them."""
    topics = [{"name": f"topic-{number}", "partitions": []} for number in range(100)]
    index = index_of(exchange(request={"topics": topics}))
    assert index.names_of(0)[0] == (*(f"topic-{number}" for number in range(MAX_SHOWN)), AND_MORE)


def test_problems_that_nobody_takes_are_left_out_from_some_number_on() -> None:
    """A damaged capture can have any number of them."""
    sink = IndexSink(no_name)
    for _ in range(MAX_PROBLEMS + 10):
        sink.on_problem(Problem("gap", "bytes are missing"))
    assert len(sink.take_problems()) == MAX_PROBLEMS
    assert sink.take_problems() == []


def test_parts_of_an_index_make_the_same_index() -> None:
    """Rows, values and connections arrive, whenever they were sent."""
    exchanges = [exchange(correlation_id=number, client_id=f"client-{number % 3}") for number in range(10)]
    whole, parts, sink = index_of(*exchanges), ExchangeIndex(), IndexSink(no_name)
    for number, one in enumerate(exchanges):
        sink.on_exchange(one)
        if number % 4 == 3:
            parts.extend(sink.take())
    parts.extend(sink.take())
    for row in range(10):
        found, wanted = parts.exchange(row), whole.exchange(row)
        assert (found.correlation_id, found.client_id) == (wanted.correlation_id, wanted.client_id)


class Ends(kwiresniff.Sink):
    """The ends of connections, as they are when these are over."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[str, str]] = {}

    def on_connection(self, connection: kwiresniff.Connection) -> None:
        self.found[connection.id] = (connection.client, connection.broker)


def test_the_ends_of_a_connection_are_those_that_it_has_at_last() -> None:
    """They are taken with its first exchange."""
    path, last = CAPTURES / "java-moved-leader.pcap", Ends()
    kwiresniff.read_into(last, path)
    index, _ = indexed(path)
    assert {one.id: (one.client, one.broker) for one in index.connections.values()}.items() <= last.found.items()
    assert len(index.connections) > 1
