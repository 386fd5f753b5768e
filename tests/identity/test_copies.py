"""Which connections are other views of one, and what becomes of their events."""

from __future__ import annotations

import pytest

from kwiresniff.identity import copies, views
from kwiresniff.identity.copies import Copies
from kwiresniff.model import Connection, ConnectionAttempt, Event, EventList, Exchange, Problem
from tests.support.exchanges import START_NS, exchange

MS = 1_000_000
SEQS = (0x9A3B_11C0, 0x51D2_0F44)


def connection(number: int, client: str, broker: str, seqs: tuple[int, int] | None = SEQS) -> Connection:
    made = Connection(number, client, broker)
    made.client_iss, made.broker_iss = seqs or (-1, -1)
    made.first_ns, made.last_ns, made.bytes = START_NS, START_NS + 1_000 * MS, [100, 100]
    return made


def asked(
    on: Connection, correlation_id: int, at_ms: float, took_ms: float = 1, key: int = 3, seq: int = 0
) -> Exchange:
    """An exchange that lasts from ``at_ms`` to ``at_ms + took_ms``."""
    made = exchange(
        "Metadata", 3, 9, on=on, correlation_id=correlation_id, start_ns=START_NS + int(at_ms * MS),
        latency_ns=int(took_ms * MS) - 30_000, client_id="app",
    )  # fmt: skip
    assert made.request is not None
    made.request.end_seq = (seq or (on.initial_seqs or SEQS)[0]) + 100 * correlation_id
    on.correlation_id, on.end_seq = correlation_id, made.request.end_seq
    return made


def passed(*events: Event, all_views: bool = False) -> list[Event]:
    """What comes through."""
    through = EventList()
    give_to(Copies(through, all_views=all_views), *events)
    return through.take()


def give_to(sink: Copies, *events: Event) -> None:
    for event in events:
        if isinstance(event, Exchange):
            sink.on_exchange(event)
        elif isinstance(event, Connection):
            sink.on_connection(event)
        elif isinstance(event, Problem):
            sink.on_problem(event)
        else:
            sink.on_attempt(event)


def numbers(events: list[Event]) -> list[int]:
    """The connections of the exchanges among some events."""
    return [event.connection.id for event in events if isinstance(event, Exchange)]


def legs(seqs: bool = True) -> tuple[Connection, Connection]:
    """The leg of a proxy from its client, and the one to the broker."""
    return (
        connection(1, "10.0.0.5:40001", "10.0.0.50:9092", (0x7000_0001, 0x7000_0002) if seqs else None),
        connection(2, "10.0.0.50:55001", "10.0.0.1:9092", (0x7000_0003, 0x7000_0004) if seqs else None),
    )


def through_proxy(
    count: int, outer: Connection, inner: Connection, *, first: int = 0, late_ms: float = 0
) -> list[Event]:
    """So many exchanges on both legs, as they are complete; the clock at the inner leg is late."""
    both = [
        (asked(inner, at, 10 * at + 1 - late_ms, 2), asked(outer, at, 10 * at, 4)) for at in range(first, first + count)
    ]
    return [one for pair in both for one in pair]


@pytest.mark.parametrize(
    ("client", "broker"),
    [("10.0.0.5:40001", "10.96.0.1:9092"), ("10.7.7.7:1024", "10.0.0.1:9092"), ("10.7.7.7:1024", "10.96.0.1:31092")],
)
def test_a_translated_connection_counts_once(client: str, broker: str) -> None:
    """DNAT, SNAT, or both: the view of which a response comes first."""
    inner, outer = connection(2, "10.0.0.5:40001", "10.0.0.1:9092"), connection(1, client, broker)
    events = [asked(inner, 1, 1, 1), asked(outer, 1, 0.99, 1.02), asked(inner, 2, 5, 1), asked(outer, 2, 4.99, 1.02)]
    found = passed(*events, outer, inner)
    assert numbers(found) == [2, 2]
    assert [one for one in found if isinstance(one, Connection)] == [inner]
    assert (outer.copy_of, outer.via, outer.apart_ns, inner.copy_of) == (2, "nat", 20_000, None)
    (problem,) = (one for one in found if isinstance(one, Problem))
    assert problem.code == "other_view" and problem.details is not None
    assert (problem.details["connection"], problem.details["copy_of"]) == (1, 2)
    assert problem.details["counted"] == {"client": inner.client, "broker": inner.broker}


def test_a_translated_connection_is_known_without_its_handshake() -> None:
    """By the sequence number behind its first request, and what that says."""
    inner = connection(2, "10.0.0.5:40001", "10.0.0.1:9092", None)
    outer = connection(1, "10.0.0.5:40001", "10.96.0.1:9092", None)
    other = connection(3, "10.0.0.6:40001", "10.96.0.1:9092", None)
    events = [asked(inner, 7, 1), asked(outer, 7, 0.99, 1.02), asked(other, 7, 0.99, 1.02, seq=0x1234_5678)]
    assert numbers(passed(*events, inner, outer, other)) == [2, 3]


def test_a_view_that_begins_later_is_known_by_a_later_exchange() -> None:
    """Its first exchange was before the other one was watched, so it waits for the next."""
    inner = connection(2, "10.0.0.5:40001", "10.0.0.1:9092", None)
    outer = connection(1, "10.0.0.5:40001", "10.96.0.1:9092", None)
    before = [asked(inner, at, at) for at in range(5)]
    late = [asked(outer, 4, 3.99, 1.02), asked(inner, 5, 6), asked(outer, 5, 5.99, 1.02)]
    assert numbers(passed(*before, *late)) == [2] * 6


@pytest.mark.parametrize("broker", ["10.0.0.50:9092", "127.0.0.1:9092", "[::1]:9092"])
def test_the_legs_of_a_proxy_count_once(broker: str) -> None:
    """Also of one beside its client, which is dialled by loopback."""
    outer, inner = legs()
    outer.broker = broker
    found = passed(*through_proxy(4, outer, inner), outer, inner)
    assert numbers(found) == [2] * 4
    assert (outer.copy_of, outer.via, outer.apart_ns) == (2, "proxy", 2 * MS)


def test_the_legs_of_a_proxy_are_known_without_their_handshakes() -> None:
    """By exchange after exchange, wherever the capture begins."""
    outer, inner = legs(seqs=False)
    assert numbers(passed(*through_proxy(5, outer, inner))) == [2] * 5


@pytest.mark.parametrize(
    ("client", "late_ms"),
    [
        pytest.param("10.0.0.77:55001", 0, id="with addresses of its own on either side"),
        pytest.param("10.0.0.5:40001", 0, id="that keeps the addresses of its clients"),
        pytest.param("10.0.0.50:55001", 25, id="by a clock that is late"),
        pytest.param("10.0.0.50:55001", -25, id="by a clock that is fast"),
    ],
)
def test_the_legs_of_a_proxy_count_once_where_less_speaks_for_it(client: str, late_ms: float) -> None:
    """After ten exchanges, or as many as there are of both from their beginning to their end; not after fewer."""
    for count in (2, 3, 9, 12):
        outer, _ = legs()
        inner = connection(2, client, "10.0.0.1:9092", (0x7000_0003, 0x7000_0004))
        outer.first_ns -= MS
        inner.first_ns -= round(late_ms * MS)
        events = through_proxy(count, outer, inner, late_ms=late_ms)
        found = numbers(passed(*events, inner, outer))
        is_one = count > 2 or late_ms != 0  # few are enough where the hosts of both legs meet
        assert found == ([2] * count if is_one else [2, 2, 1, 1])
        assert (outer.copy_of, outer.via) == ((2, "proxy") if is_one else (None, ""))


def test_a_client_of_two_clusters_is_no_proxy() -> None:
    """It sends the same to both at once, from one host; what lies within the other is no leg of it."""
    one = connection(1, "10.0.0.5:40001", "10.0.0.50:9092", (0x7000_0001, 0x7000_0002))
    two = connection(2, "10.0.0.5:40002", "10.0.0.1:9092", (0x7000_0003, 0x7000_0004))
    assert numbers(passed(*through_proxy(20, one, two), one, two)) == [2, 1] * 20


def test_clients_that_send_the_same_are_no_views_of_one() -> None:
    """Eight exporters on the hosts of brokers, which ask each other's brokers the same, again and again."""
    every = [connection(at, f"10.0.0.{at}:4000{at}", f"10.0.0.{at % 8 + 1}:9092", (at << 24, at)) for at in range(1, 9)]
    events: list[Event] = []
    for turn in range(20):
        for at, one in enumerate(every):
            events.append(asked(one, turn, 100 * turn + at * 0.3 + 2 * (turn * at % 3), 1 + at % 3))
    events.sort(key=lambda one: one.response.last_ns if isinstance(one, Exchange) and one.response else 0)
    found = passed(*events, *every)
    assert sorted(numbers(found)) == sorted(one for one in range(1, 9) for _ in range(20))
    assert [one.copy_of for one in every] == [None] * 8


def test_equal_sequence_numbers_that_somebody_made_up_are_no_evidence() -> None:
    """Captures that were made or rewritten may begin all connections with the same ones."""
    every = [connection(at, f"10.0.0.{at}:40001", "10.0.9.9:9092", (1000, 5000)) for at in range(1, 4)]
    events = [asked(one, turn, 10 * turn + one.id) for turn in range(3) for one in every]
    assert numbers(passed(*events, *every)) == [1, 2, 3] * 3
    ports = [connection(at, f"10.0.0.1:{at}", "10.0.9.9:9092") for at in range(1, 4)]
    assert numbers(passed(*[asked(one, 1, 1) for one in ports])) == [1, 2, 3]


def test_what_was_held_back_comes_when_it_is_another_stream() -> None:
    """In its order, with what else belongs to the connection; with all views nothing waits."""
    outer, inner = legs()
    begun = through_proxy(2, outer, inner)
    other = Problem("gap", "bytes are missing", details={"connection": 1})
    differs = asked(outer, 2, 20, 4)
    assert differs.request is not None
    differs.request.size_bytes += 1
    assert numbers(passed(*begun)) == [2, 2]
    found = passed(*begun, other, asked(inner, 2, 21, 2), differs)
    assert numbers(found) == [2, 2, 2, 1, 1, 1]
    assert found.index(other) == 5
    assert numbers(passed(*begun, all_views=True)) == [2, 1, 2, 1]
    assert numbers(passed(begun[0], begun[1], outer, asked(inner, 1, 11, 2), inner)) == [2, 2]


def test_what_goes_on_without_an_exchange_is_another_stream() -> None:
    """One host's connections to several brokers share their correlation ids: none is equal, and none waits long."""
    one = connection(1, "127.0.0.1:40001", "127.0.0.1:9092", None)
    two = connection(2, "127.0.0.1:40002", "127.0.0.1:9094", None)
    events = [asked(one if at % 2 else two, at, 10 * at) for at in range(100, 106)]
    assert numbers(passed(*events)) == [2, 2, 1, 1, 2, 1]


def test_problems_and_attempts_of_another_view_are_not_counted() -> None:
    """But those of connections and attempts of their own are."""
    inner, outer = connection(2, "10.0.0.5:40001", "10.0.0.1:9092"), connection(1, "10.0.0.5:40001", "10.96.0.1:9092")
    gaps = [Problem("gap", "bytes are missing", details={"connection": at}) for at in (1, 2)]
    found = passed(asked(inner, 1, 1), asked(outer, 1, 0.99, 1.02), *gaps)
    assert [one for one in found if isinstance(one, Problem) and one.code == "gap"] == gaps[1:]
    tried = [
        ConnectionAttempt(client, server, 1, START_NS + at, START_NS + at, 1, True, seq)
        for at, (client, server, seq) in enumerate(
            [
                ("a:1", "s:1", SEQS[0]),
                ("a:1", "b:1", SEQS[0]),
                ("a:2", "b:1", SEQS[0]),
                ("c:1", "b:1", 5),
                ("d:1", "b:1", 5),
            ]
        )
    ]
    assert passed(*tried) == [tried[0], *tried[2:]]


def test_a_proxy_of_encrypted_connections_is_known_by_their_bytes() -> None:
    """As many each way, at the same time."""
    outer, inner = legs()
    other = connection(3, "10.0.0.50:55002", "10.0.0.1:9092", (0x7000_0005, 0x7000_0006))
    other.first_ns += 2_000 * MS
    other.last_ns += 2_000 * MS
    found = passed(inner, outer, other)
    assert [one for one in found if isinstance(one, Connection)] == [inner, other]


def test_no_more_is_held_back_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond that the connection that waits longest is taken for one of its own."""
    monkeypatch.setattr(copies, "MAX_HELD_BYTES", 1_500)
    outer, inner = legs()
    assert numbers(passed(*through_proxy(2, outer, inner))) == [2, 2, 1, 1]


def test_what_is_remembered_is_bounded() -> None:
    """The recent exchanges of a view, the connections of a host, ended ones, and the addresses that were reported."""
    _, inner = legs()
    view = views.View(inner, None)
    view.watch()
    for at in range(views.MAX_RECENT + 10):
        view.remember(views.Sighting(asked(inner, at, at)))
    assert view.recent is not None and list(view.recent) == list(range(10, views.MAX_RECENT + 10))
    through = EventList()
    sink = Copies(through)
    for at in range(copies.MAX_ENDED + 10):
        seqs = 0x1000_0000 + at, 0x2000_0000 + at
        one = connection(2 * at + 10, f"10.0.0.5:{at}", "10.0.0.1:9092", seqs)
        two = connection(2 * at + 11, f"10.0.0.5:{at}", f"10.1.{at >> 8}.{at & 255}:9092", seqs)
        give_to(sink, asked(one, 1, 1), asked(two, 1, 0.99, 1.02), two, one)
        attempt = ConnectionAttempt("a:1", "s:1", 1, START_NS, START_NS, 1, True, at)
        sink.on_attempt(attempt)
    found = through.take()
    assert sum(isinstance(one, Problem) for one in found) == copies.MAX_REPORTED
    sizes = {name: len(getattr(sink, name)) for name in ("_views", "_by_seqs", "_ended", "_attempts")}
    assert sizes["_views"] == 0 and sizes["_ended"] == sizes["_attempts"] == copies.MAX_ENDED
    assert sizes["_by_seqs"] <= copies.MAX_ENDED
    assert max(map(len, sink._alike.values())) <= copies.MAX_ALIKE


def test_no_more_connections_may_be_the_same_than_there_is_room_for() -> None:
    """Of the connections of one client that are about as far, in mid-stream."""
    sink = Copies(EventList())
    inners = [connection(at, f"10.0.0.50:{at}", "10.0.0.1:9092", None) for at in range(1, copies.MAX_CANDIDATES + 9)]
    outers = [connection(at, f"10.0.0.5:{at}", "10.0.0.50:9092", None) for at in range(1_000, 1_300)]
    give_to(sink, *[asked(one, 5, 1, seq=one.id << 22) for one in inners])
    give_to(sink, *[asked(one, 6, 1, seq=one.id << 22) for one in outers])
    undecided = [sink._views[one.id] for one in outers]
    assert max(len(one.candidates) for one in undecided) == copies.MAX_CANDIDATES
    assert max(len(view.watchers) for view in sink._views.values()) == copies.MAX_ALIKE


def test_no_more_connections_are_compared_than_there_is_room_for() -> None:
    """The oldest comparison is given up: what was not settled counts."""
    through = EventList()
    sink = Copies(through)
    pairs = copies.MAX_WATCHED // 2 + 10
    for at in range(pairs):
        outer = connection(2 * at + 1, f"10.0.0.5:{at}", f"10.1.{at >> 8}.{at & 255}:9092", (1 << 30, at))
        inner = connection(2 * at + 2, f"10.1.{at >> 8}.{at & 255}:55001", "10.0.0.1:9092", (1 << 29, at))
        give_to(sink, *through_proxy(1, outer, inner, first=at))
    given = numbers(through.take())
    assert len(sink._watched) == copies.MAX_WATCHED
    assert sorted(one for one in given if one % 2) == [2 * at + 1 for at in range(10)]
    assert len([one for one in given if not one % 2]) == pairs
