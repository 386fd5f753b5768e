"""Sinks in front of sinks: what each passes on, and in which order."""

from __future__ import annotations

import pytest

from kwiresniff.analysis.sinks import CallingSink, CaptureEvents, Counted, Limited, Narrowed, WholeEvents
from kwiresniff.model import Connection, Event, EventList, Exchange, Problem


def exchange(connection: int = 1, problems: int = 0) -> Exchange:
    found = Exchange(Connection(connection, "c", "b"), 18, 0, 1, None, None, None)
    found.problems = [Problem("gap", "inside")] * problems
    return found


def test_a_problem_of_the_capture_follows_the_first_event_after_it() -> None:
    """So that it stands in its place, whatever passes in front of it."""
    problems: list[Problem] = []
    found = EventList()
    sink = CaptureEvents(found, problems, ["a.pcap"])
    one, two = exchange(), exchange()
    sink.on_exchange(one)
    problems.append(Problem("capture_damaged", "x"))
    sink.on_exchange(two)
    problems.append(Problem("capture_cut", "y"))
    sink.report()
    sink.report()
    assert found.take() == [one, two, *problems]
    assert sink.exchanges == 2


def test_a_problem_says_its_file_where_there_are_several() -> None:
    """The index of the file is in the packet reference, above the 40 bits of the packet's number."""
    found = EventList()
    problem = Problem("gap", "x", packet=(1 << 40) + 7)
    CaptureEvents(found, [], ["a.pcap", "b.pcap"]).on_problem(problem)
    CaptureEvents(found, [], ["a.pcap"]).on_problem(problem)
    named, plain = found.take()
    assert isinstance(named, Problem)
    assert named.details == {"file": "b.pcap"}
    assert plain == problem


def test_a_connection_without_a_wanted_exchange_is_left_out() -> None:
    """Problems are always passed on."""
    found, connections = EventList(), set[int]()
    sink = Narrowed(found, lambda one: one.connection.id == 2, connections)
    wanted, problem = exchange(2), Problem("gap", "x")
    sink.on_exchange(exchange(1))
    sink.on_exchange(wanted)
    assert connections == {2}
    sink.on_problem(problem)
    sink.on_connection(exchange(1).connection)
    sink.on_connection(wanted.connection)
    assert found.take() == [wanted, problem, wanted.connection]
    assert not connections


def test_nothing_but_problems_passes_a_limit_that_is_reached() -> None:
    """It is full from the last exchange on."""
    found = EventList()
    sink = Limited(found, 2)
    for _ in range(2):
        assert not sink.full
        sink.on_exchange(exchange())
    assert sink.full
    sink.on_exchange(exchange())
    sink.on_connection(exchange().connection)
    sink.on_problem(Problem("capture_cut", "x"))
    assert [type(event) for event in found.take()] == [Exchange, Exchange, Problem]


def test_problems_inside_exchanges_are_counted() -> None:
    """And those of captures, one of which says that a file could not be read."""
    sink = Counted(EventList())
    sink.on_exchange(exchange(problems=2))
    sink.on_problem(Problem("gap", "x"))
    assert (sink.exchanges, sink.problems, sink.unreadable) == (1, 3, False)
    sink.on_problem(Problem("capture_unreadable", "x"))
    assert (sink.problems, sink.unreadable) == (4, True)


def test_whole_events_stop_behind_the_event_in_use() -> None:
    """KeyboardInterrupt is raised when the next sink has returned."""
    used: list[Event] = []

    def use(event: Event) -> None:
        assert sink.busy
        sink.stopped = True
        used.append(event)

    sink = WholeEvents(CallingSink(use, use))
    with pytest.raises(KeyboardInterrupt):
        sink.on_exchange(exchange())
    assert len(used) == 1
    assert not sink.busy
