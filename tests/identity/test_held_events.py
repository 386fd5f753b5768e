"""Events wait until it is known which cluster they belong to."""

from __future__ import annotations

import pytest

from kwiresniff.identity import held_events
from kwiresniff.identity.clusters import Clusters
from kwiresniff.identity.held_events import HeldEvents
from kwiresniff.model import Connection, Event, Exchange, Problem, Sink
from tests.support.brokers import A, B, C, fetch, metadata


class Taken(Sink):
    """What came out, and for which node each exchange was."""

    def __init__(self, clusters: Clusters) -> None:
        self.nodes: list[int] = []
        self._clusters = clusters
        self._events: list[Event] = []

    def on_exchange(self, exchange: Exchange) -> None:
        self._events.append(exchange)
        self.nodes.append(self._clusters.of(exchange))

    def on_connection(self, connection: Connection) -> None:
        self._events.append(connection)

    def on_problem(self, problem: Problem) -> None:
        self._events.append(problem)

    def take(self) -> list[Event]:
        events, self._events = self._events, []
        return events


def held() -> tuple[Clusters, Taken, HeldEvents]:
    clusters = Clusters()
    taken = Taken(clusters)
    return clusters, taken, HeldEvents(taken, clusters, clusters.learn)


def test_with_one_broker_nothing_waits() -> None:
    """Nor where all brokers are joined."""
    _, taken, sink = held()
    given = [fetch(A), metadata(A, "blue", A, B), fetch(B)]
    for one in given:
        sink.on_exchange(one)
        assert taken.take() == [one]


def test_all_waits_in_its_order_until_every_broker_is_of_a_known_cluster() -> None:
    """Exchanges, the end of a connection and a problem; each exchange is then of the node that it was found to be."""
    clusters, taken, sink = held()
    first, second, told, other = fetch(A), fetch(C), metadata(A, "blue", A), metadata(C, "green", C)
    ended, problem = Connection(7, "10.0.0.5:1", A), Problem("gap", "")
    sink.on_exchange(first)
    assert taken.take() == [first]
    sink.on_exchange(second)
    sink.on_exchange(told)
    sink.on_connection(ended)
    sink.on_problem(problem)
    assert taken.take() == []
    sink.on_exchange(other)
    assert taken.take() == [second, told, ended, problem, other]
    assert [clusters.id_of(node) for node in taken.nodes] == ["blue", "green", "blue", "green"]


def test_what_was_learned_is_not_learned_again() -> None:
    """An address became another cluster while its old answers waited: passed on, they do not turn it back."""
    clusters, taken, sink = held()
    for one in (fetch(C), metadata(A, "blue", A), metadata(A, "green", A, id=2)):
        sink.on_exchange(one)
    sink.release()
    assert len(taken.take()) == 3
    assert [clusters.id_of(node) for node in taken.nodes] == ["", "blue", "green"]
    assert clusters.id_of(clusters.node_at(A)) == "green"
    assert len(clusters.changes) == 1


def test_a_sink_in_between_may_hold_an_exchange_longer() -> None:
    """It is of the cluster of its connection then, and teaches nothing any more."""
    clusters, _, sink = held()
    late, new = metadata(A, "blue", A, id=1), metadata(A, "green", A, id=2)
    for one in (late, new):
        sink.on_exchange(one)
    assert clusters.id_of(clusters.of(late)) == "blue"
    assert clusters.id_of(clusters.of(new)) == "green"
    assert (clusters.id_of(clusters.node_at(A)), len(clusters.changes)) == ("green", 1)


def test_what_waits_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that never say to which cluster they belong; beyond the limit nothing waits any more."""
    monkeypatch.setattr(held_events, "MAX_WAITING_BYTES", 10 * held_events.EVENT_BYTES)
    _, taken, sink = held()
    sink.on_exchange(fetch(A))
    taken.take()
    for number in range(11):
        assert taken.take() == []
        sink.on_exchange(fetch(C, id=number + 1))
    assert len(taken.take()) == 11
    sink.on_exchange(fetch(C, id=50))
    assert len(taken.take()) == 1
