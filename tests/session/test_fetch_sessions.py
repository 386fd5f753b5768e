"""What incremental fetches are about, on conversations made by hand: names come from the session, not the fetch."""

from __future__ import annotations

from random import Random
from struct import pack
from sys import getsizeof
from typing import Any

import pytest

from kwiresniff.analysis.filter import compile_filter
from kwiresniff.analysis.stats import StatsTable
from kwiresniff.base.needs import Needs
from kwiresniff.model import Event, Exchange, FetchedTopics
from kwiresniff.session import checkpoint, fetch_sessions
from kwiresniff.session.analyzer import Analyzer
from tests.support.conversation import Wire, events, exchanges, heartbeat, heartbeat_response, request, response
from tests.support.encoding import encoder
from tests.support.events import analyze_with, process

SESSION = 77
BEFORE = "(session from before the capture)"


def topic(name: str, *partitions: int) -> dict[str, Any]:
    """A topic of a Fetch v12 request."""
    asked = [
        {
            "partition": index, "current_leader_epoch": -1, "fetch_offset": 0, "last_fetched_epoch": -1,
            "log_start_offset": -1, "partition_max_bytes": 1 << 20,
        }
        for index in partitions
    ]  # fmt: skip
    return {"topic": name, "partitions": asked}


def forgotten(name: str, *partitions: int) -> dict[str, Any]:
    return {"topic": name, "partitions": list(partitions)}


def fetch(correlation_id: int, epoch: int, *topics: Any, session: int = SESSION, forgets: Any = ()) -> bytes:
    """Fetch v12, which has names, compact arrays and sessions."""
    body = {
        "replica_id": -1, "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": 0,
        "session_id": session, "session_epoch": epoch, "topics": list(topics), "forgotten_topics_data": list(forgets),
        "rack_id": "",
    }  # fmt: skip
    return request(1, 12, correlation_id, encoder(1, 12, "request")(body), tags=b"\x00")


def fetched(correlation_id: int, *topics: Any, session: int = SESSION, error: int = 0) -> bytes:
    """Its answer."""
    answers = [
        {
            "topic": name,
            "partitions": [
                {
                    "partition_index": index, "error_code": 0, "high_watermark": 5, "last_stable_offset": 5,
                    "log_start_offset": 0, "aborted_transactions": None, "preferred_read_replica": -1, "records": None,
                }
                for index in partitions
            ],
        }
        for name, *partitions in topics
    ]  # fmt: skip
    body = {"throttle_time_ms": 0, "error_code": error, "session_id": session, "responses": answers}
    return response(correlation_id, encoder(1, 12, "response")(body), tags=b"\x00")


def conversation(*turns: tuple[bytes, bytes], wire: Wire | None = None) -> Wire:
    wire = wire or Wire().open()
    for asked, answered in turns:
        wire.up(asked).down(answered)
    return wire


def content(of: FetchedTopics) -> tuple[tuple[str, ...], tuple[int, ...], bool]:
    """Topics, partitions, and whether the session's beginning is in the capture."""
    return tuple(of.topics), tuple(of.partitions), of.is_whole


def fetched_by_id(
    *wires: Wire, depth: str = "errors"
) -> dict[int, tuple[tuple[str, ...], tuple[int, ...], bool] | None]:
    """By correlation id what each fetch was told of its session."""
    options: dict[str, object] = {"topics": True} if depth == "errors" else {"sessions": True}
    found = exchanges(events(*wires, depth=depth, **options))
    return {one.correlation_id: None if one.fetched is None else content(one.fetched) for one in found}


def by_topic(found: list[Event], analyzer: Analyzer) -> dict[str, int]:
    """How many exchanges ``stats --by topic`` counts for each."""
    table = StatsTable(["topic"], analyzer.topics.name)
    for event in found:
        if isinstance(event, Exchange):
            table.add(event)
    return {row.key[0]: row.count for row in table.rows()}


BEGIN = (fetch(1, 0, topic("orders", 0, 1), topic("bills", 3), session=0), fetched(1))


@pytest.mark.parametrize("depth", ["errors", "bodies", "records"])
def test_an_empty_fetch_is_about_its_session(depth: str) -> None:
    """The first fetch names two topics, the second nothing."""
    found = fetched_by_id(conversation(BEGIN, (fetch(2, 1), fetched(2))), depth=depth)
    assert found == {1: None, 2: (("orders", "bills"), (0, 1, 3), True)}


def test_a_fetch_adds_and_forgets() -> None:
    """A topic goes with its last partition, a new one comes; what the others were told stays as it was."""
    found = fetched_by_id(
        conversation(
            BEGIN,
            (fetch(2, 1, forgets=[forgotten("orders", 1), forgotten("bills", 3)]), fetched(2)),
            (fetch(3, 2, topic("goods", 9)), fetched(3)),
        )
    )
    assert found[2] == (("orders",), (0,), True)
    assert found[3] == (("orders", "goods"), (0, 9), True)


@pytest.mark.parametrize("depth", ["errors", "bodies", "records"])
def test_a_fetch_that_breaks_off_adds_nothing(depth: str) -> None:
    """One whose front was decoded, too, which names a topic: what it forgets stands at its end."""
    broken = fetch(2, 1, topic("goods", 9))[4:-3]
    found = fetched_by_id(conversation(BEGIN, (pack(">i", len(broken)) + broken, fetched(2))), depth=depth)
    assert found[2] == (("orders", "bills"), (0, 1, 3), True)


def test_a_session_goes_on_over_another_connection() -> None:
    """The broker knows it by its id; another broker's session of the same id is another."""
    other = Wire(client_port=40_001).open()
    elsewhere = Wire(client_port=40_002, broker_port=9093).open()
    found = fetched_by_id(
        conversation(BEGIN),
        conversation((fetch(2, 1), fetched(2)), wire=other),
        conversation((fetch(3, 1), fetched(3)), wire=elsewhere),
    )
    assert found[2] == (("orders", "bills"), (0, 1, 3), True)
    assert found[3] == ((), (), False)


def test_a_new_session_replaces_the_old_one() -> None:
    """Epoch 0 with the old id ends that and begins another; so does an error, after which the client begins anew."""
    found = fetched_by_id(
        conversation(
            BEGIN,
            (fetch(2, 0, topic("goods", 9)), fetched(2, session=78)),
            (fetch(3, 1), fetched(3)),
            (fetch(4, 1, session=78), fetched(4, session=0, error=70)),
            (fetch(5, 1, session=78), fetched(5)),
        )
    )
    assert found[2] is None
    assert found[3] == ((), (), False)
    assert found[4] == (("goods",), (9,), True)
    assert found[5] == ((), (), False)


def test_the_last_fetch_of_a_session_still_belongs_to_it() -> None:
    """A consumer that closes sends epoch -1 and no topics."""
    found = fetched_by_id(conversation(BEGIN, (fetch(2, -1), fetched(2, session=0)), (fetch(3, 1), fetched(3))))
    assert found[2] == (("orders", "bills"), (0, 1, 3), True)
    assert found[3] == ((), (), False)


def test_a_fetch_without_a_session_begins_none() -> None:
    """Epoch -1 from the start, or a broker that has no room for another session (id 0)."""
    found = fetched_by_id(
        conversation(
            (fetch(1, -1, topic("orders", 0), session=0), fetched(1, session=0)),
            (fetch(2, 0, topic("orders", 0), session=0), fetched(2, session=0)),
        )
    )
    assert found == {1: None, 2: None}


def test_fetches_of_a_session_that_grows_share_its_topics() -> None:
    """A list for each of a hundred fetches would be as long as the session; each has what there was at its time."""
    turns = [(fetch(2 + n, 1 + n, topic(f"t{n}", n)), fetched(2 + n)) for n in range(100)]
    found = [one.fetched for one in exchanges(events(conversation(BEGIN, *turns), depth="bodies", sessions=True))[1:]]
    names = ["orders", "bills", *(f"t{n}" for n in range(100))]
    for at, one in enumerate(found):
        assert one is not None and one.topics == names[: 3 + at]
        assert one.partitions == list(dict.fromkeys([0, 1, 3, *range(1 + at)]))
        assert one.names.values is found[0].names.values  # type: ignore[union-attr]


def test_a_session_from_before_the_capture_is_named_as_soon_as_something_in_it_is() -> None:
    """First by nothing, then by an answer, then by a fetch."""
    wire = conversation(
        (heartbeat(90), heartbeat_response(90)),
        (fetch(1, 8), fetched(1)),
        (fetch(2, 9), fetched(2, ("orders", 4))),
        (fetch(3, 10), fetched(3)),
        (fetch(4, 11, topic("bills", 1)), fetched(4)),
    )
    analyzer = Analyzer(Needs("errors", topics=True))
    found = list(analyze_with(analyzer, wire.segments))
    sessions = {one.correlation_id: content(one.fetched) for one in found if isinstance(one, Exchange) and one.fetched}
    assert sessions[1] == ((), (), False)
    assert sessions[2] == sessions[3] == (("orders",), (4,), False)
    assert sessions[4] == (("orders", "bills"), (4, 1), False)
    assert by_topic(found, analyzer) == {BEFORE: 1, "orders": 3, "bills": 1, "(no topic)": 1}


def test_filters_ask_the_session_too() -> None:
    """A topic and a partition that only the first fetch named."""
    wire = conversation(BEGIN, (fetch(2, 1), fetched(2)))
    found = exchanges(events(wire, depth="bodies", sessions=True))
    for text, expected in (("topic == bills", [1, 2]), ("partition == 3", [1, 2]), ("topic == goods", [])):
        assert [one.correlation_id for one in found if compile_filter(text).matches(one)] == expected


def share_fetch(correlation_id: int, epoch: int, *names: str) -> bytes:
    """ShareFetch v1 of member m of group g."""
    body = {
        "group_id": "g", "member_id": "m", "share_session_epoch": epoch, "max_wait_ms": 500, "min_bytes": 1,
        "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500,
        "topics": [{"topic_id": name, "partitions": [{"partition_index": 2, "acknowledgement_batches": []}]}
                   for name in names],
        "forgotten_topics_data": [],
    }  # fmt: skip
    return request(78, 1, correlation_id, encoder(78, 1, "request")(body), tags=b"\x00")


def share_fetched(correlation_id: int) -> bytes:
    body: dict[str, Any] = {
        "throttle_time_ms": 0, "error_code": 0, "error_message": None, "acquisition_lock_timeout_ms": 30_000,
        "responses": [], "node_endpoints": [],
    }  # fmt: skip
    return response(correlation_id, encoder(78, 1, "response")(body), tags=b"\x00")


def test_share_sessions_are_known_by_group_and_member() -> None:
    """KIP-932 has no session ids."""
    topic_id = "AAAAAAAAAAAAAAAAAAAAAg"
    found = fetched_by_id(
        conversation(
            (share_fetch(1, 0, topic_id), share_fetched(1)),
            (share_fetch(2, 1), share_fetched(2)),
            (share_fetch(3, -1), share_fetched(3)),
            (share_fetch(4, 5), share_fetched(4)),
        )
    )
    assert found[2] == found[3] == ((topic_id,), (2,), True)
    assert found[4] == ((), (), False)


def test_who_does_not_ask_for_topics_follows_no_sessions() -> None:
    """Fetch sessions are followed only where topics are asked for."""
    found = exchanges(events(conversation(BEGIN, (fetch(2, 1), fetched(2))), depth="errors"))
    assert [one.fetched for one in found] == [None, None]


def test_sessions_are_bounded_in_bytes_the_least_lately_used_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for two, the one that was not used since is forgotten when the third comes."""
    monkeypatch.setattr(fetch_sessions, "MAX_SESSION_BYTES", 2_220)
    turns = [(fetch(n, 0, topic(f"t{n}", 0), session=0), fetched(n, session=n)) for n in (1, 2)]
    turns += [(fetch(11, 1, session=1), fetched(11, session=1))]
    turns += [(fetch(3, 0, topic("t3", 0), session=0), fetched(3, session=3))]
    turns += [(fetch(20 + n, 1, session=n), fetched(20 + n, session=n)) for n in (1, 3, 2)]
    found = fetched_by_id(conversation(*turns))
    assert found[21] == (("t1",), (0,), True)
    assert found[23] == (("t3",), (0,), True)
    assert found[22] == ((), (), False)


def test_a_fetch_that_repeats_one_that_was_forgotten_adds_it_again() -> None:
    """Also where the fetch that adds it is equal to the one before it, byte for byte but for its numbers."""
    found = fetched_by_id(
        conversation(
            BEGIN,
            (fetch(2, 1, topic("goods", 9)), fetched(2)),
            (fetch(3, 2, topic("goods", 9)), fetched(3)),
            (fetch(4, 3, topic("goods", 9), forgets=[forgotten("orders", 0, 1)]), fetched(4)),
            (fetch(5, 4, forgets=[forgotten("goods", 9)]), fetched(5)),
            (fetch(6, 5, topic("goods", 9)), fetched(6)),
        )
    )
    assert [one[0] for one in found.values() if one is not None] == [
        ("orders", "bills", "goods"), ("orders", "bills", "goods"), ("bills", "goods"), ("bills",), ("bills", "goods"),
    ]  # fmt: skip


def test_a_session_is_bounded_in_topics_and_partitions() -> None:
    """One more of each than is remembered."""
    most = fetch_sessions.MAX_SESSION_TOPICS
    names = [topic(f"t{n}", 0) for n in range(most + 1)]
    many = topic("many", *range(fetch_sessions.MAX_SESSION_PARTITIONS + 1))
    found = fetched_by_id(
        conversation(
            (fetch(1, 0, *names, session=0), fetched(1)),
            (fetch(2, 1), fetched(2)),
            (fetch(3, 0, many, session=0), fetched(3, session=5)),
            (fetch(4, 1, session=5), fetched(4, session=5)),
        )
    )
    assert found[2] is not None
    assert found[4] is not None
    assert len(found[2][0]) == most
    assert len(found[4][1]) == fetch_sessions.MAX_SESSION_PARTITIONS


def test_a_session_goes_on_in_the_next_file() -> None:
    """What is known of sessions is part of a written state."""
    first = conversation(BEGIN, (fetch(2, 1), fetched(2)))
    whole = Analyzer(Needs("bodies", sessions=True))
    list(process(whole, first.segments))
    later = Analyzer(Needs("bodies", sessions=True))
    checkpoint.load(later, checkpoint.dump(whole))
    seen = len(first.segments)
    conversation((fetch(3, 2), fetched(3)), wire=first)
    (one,) = exchanges(list(process(later, first.segments[seen:])))
    assert one.fetched is not None and content(one.fetched) == (("orders", "bills"), (0, 1, 3), True)


def test_the_bytes_of_a_session_are_those_of_what_it_has() -> None:
    """However topics and partitions came and went: names, tables and entries counted anew."""
    rng = Random("bytes of sessions")
    session = fetch_sessions.FetchSession(is_whole=True)
    for _ in range(300):
        named = [topic(f"t{rng.randrange(40)}" * rng.randrange(1, 9), *rng.sample(range(60), rng.randrange(9)))]
        if rng.random() < 0.6:
            session.add(named)
        else:
            session.forget([forgotten(name, *rng.sample(range(60), 30)) for name in list(session.topics)[:2]])
        names = sum(getsizeof(name) + getsizeof(known) for name, known in session.topics.items())
        assert session.partitions == sum(map(len, session.topics.values()))
        assert session.size_bytes == 130 * (4 + session.partitions) + names
    sessions = fetch_sessions.FetchSessions()
    for number in range(3):
        for one in exchanges(events(conversation((fetch(1, 0, topic("a", 0, 1), session=0), fetched(1))))):
            one.connection.broker = f"broker-{number % 2}"
            sessions.follow(one)
    assert sessions.held_bytes == sum(one.size_bytes for one in sessions.sessions.values()) > 0
