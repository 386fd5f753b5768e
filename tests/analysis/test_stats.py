"""Exchanges counted into tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import pytest

from kwiresniff.analysis import followed_sessions, stats, stats_row
from kwiresniff.analysis.stats import StatsTable
from kwiresniff.base.fastint import COMPILED
from kwiresniff.model import Exchange, SessionIdentity
from kwiresniff.results.stats import StatRow
from tests.support.exchanges import connection, exchange, fetched_topics
from tests.support.sample import sampled

FAILED = [("error_code", 6, "NOT_LEADER_OR_FOLLOWER", True)]


def table(*by: str, given: list[Exchange]) -> StatsTable:
    made = StatsTable(by)
    for one in given:
        made.add(one)
    return made


def rows(*by: str, given: list[Exchange]) -> dict[tuple[str, ...], StatRow]:
    return {row.key: row for row in table(*by, given=given).rows()}


def test_a_row_counts_exchanges_errors_unanswered_and_bytes_each_way() -> None:
    row = rows(
        "api",
        given=[
            exchange(request_bytes=10, response_bytes=100),
            exchange(request_bytes=20, response_bytes=200, outcome="error", errors=FAILED),
            exchange(request_bytes=30, latency_ns=None, outcome="unanswered"),
        ],
    )[("Fetch",)]
    assert (row.count, row.errors, row.unanswered, row.request_bytes, row.response_bytes) == (3, 1, 1, 60, 300)
    assert row.latency is not None
    assert row.latency.count == 2


def test_deliberate_waits_are_kept_apart_by_reason() -> None:
    row = rows(
        "api",
        given=[
            exchange(latency_ns=1_000),
            exchange(latency_ns=500_000_000, waiting="long poll"),
            exchange(latency_ns=9_000_000, waiting="throttled"),
        ],
    )[("Fetch",)]
    assert row.latency is not None
    assert row.latency.max_ns == 1_000
    assert [(reason, summary.max_ns) for reason, summary in row.waiting] == [
        ("long poll", 500_000_000),
        ("throttled", 9_000_000),
    ]


def test_a_row_says_what_its_waits_are_made_of() -> None:
    """Queued and held count those that were; the broker's own time is there for all but those that were held alone."""
    row = rows(
        "api",
        given=[
            exchange(latency_ns=1_000),
            exchange(latency_ns=10_000, queued=7_000),
            exchange(latency_ns=500_000, held=490_000, waiting="long poll"),
            exchange(latency_ns=800_000, waiting="rebalance"),
            exchange(latency_ns=600_000, queued=-1, held=-1),
            exchange(latency_ns=None, outcome="unanswered"),
        ],
    )[("Fetch",)]
    assert row.latency is not None
    assert (row.latency.count, row.latency.max_ns) == (3, 600_000)
    assert row.queued is not None
    assert (row.queued.count, row.queued.max_ns) == (1, 7_000)
    assert row.held is not None
    assert (row.held.count, row.held.min_ns, row.held.max_ns) == (2, 490_000, 800_000)
    assert row.broker is not None
    assert (row.broker.count, row.broker.min_ns, row.broker.max_ns) == (3, 1_000, 10_000)


def test_where_nothing_was_queued_or_held_all_is_the_brokers() -> None:
    """Both distributions are then the same."""
    row = rows("api", given=[exchange(latency_ns=1_000), exchange(latency_ns=3_000)])[("Fetch",)]
    assert row.broker == row.latency
    assert (row.queued, row.held) == (None, None)


def test_a_client_is_its_id_and_its_address_but_not_its_port() -> None:
    given = [
        exchange(client_id="app", on=connection(1, "10.0.0.5:1111")),
        exchange(client_id="app", on=connection(2, "10.0.0.5:2222")),
        exchange(client_id="app", on=connection(3, "[::1]:3333")),
        exchange(client_id=None, on=connection(4, "10.0.0.5:4444")),
    ]
    assert {key: row.count for key, row in rows("client", given=given).items()} == {
        ("app 10.0.0.5",): 2,
        ("app [::1]",): 1,
        ("(no client id) 10.0.0.5",): 1,
    }


def test_brokers_and_connections_have_their_own_rows() -> None:
    given = [exchange(on=connection(1, broker="b1:1")), exchange(on=connection(2, broker="b1:1"))]
    assert [row.count for row in rows("broker", given=given).values()] == [2]
    assert [row.count for row in rows("connection", given=given).values()] == [1, 1]


def test_an_exchange_with_two_topics_counts_for_both() -> None:
    both = exchange(request={"topics": [{"topic": "a"}, {"topic": "b"}]})
    made = table("topic", given=[both, exchange(topics=("a",)), exchange("Heartbeat", 12)])
    assert {row.key[0]: row.count for row in made.rows()} == {"a": 2, "b": 1, "(no topic)": 1}


def test_dimensions_combine() -> None:
    given = [exchange(topics=("a", "b")), exchange("Produce", 0, topics=("a",))]
    assert {key: row.count for key, row in rows("api", "topic", given=given).items()} == {
        ("Fetch", "a"): 1,
        ("Fetch", "b"): 1,
        ("Produce", "a"): 1,
    }


def test_the_busiest_row_comes_first() -> None:
    given = [exchange("Produce", 0), exchange(), exchange()]
    assert [row.key for row in table("api", given=given).rows()] == [("Fetch",), ("Produce",)]


def test_a_response_without_its_request_is_counted_without_latency() -> None:
    alone = exchange(api="", api_key=-1, outcome="request_missing")
    alone.request = None
    row = rows("api", given=[alone])[("(request missing)",)]
    assert (row.count, row.response_bytes, row.latency) == (1, 2_000, None)


def test_too_many_keys_share_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "MAX_ROWS", 2)
    given = [exchange(topics=(str(number),)) for number in range(5)]
    assert {key: row.count for key, row in rows("topic", given=given).items()} == {
        ("0",): 1,
        ("1",): 1,
        ("(others)",): 3,
    }


def test_steps_of_the_protocol_are_counted_apart_from_errors() -> None:
    """An exchange with an error beside a step is an error."""
    step, other = (
        ("error_code", 79, "MEMBER_ID_REQUIRED", False),
        ("error_code", 29, "TOPIC_AUTHORIZATION_FAILED", False),
    )
    fallback = ("error_code", 35, "UNSUPPORTED_VERSION", False)
    table = StatsTable(("client",))
    table.add(exchange("JoinGroup", 11, 5, errors=[step], outcome="error"))
    table.add(exchange("JoinGroup", 11, 5, errors=[step, other], outcome="error"))
    table.add(exchange("ApiVersions", 18, 5, errors=[fallback], outcome="error"))
    table.add(exchange("Fetch", 1, 5, errors=[fallback], outcome="error"))
    table.add(exchange(latency_ns=None, outcome="unanswered", waiting="long poll"))
    table.add(exchange(latency_ns=None, outcome="unanswered"))
    (row,) = table.rows()
    assert (row.count, row.errors, row.unanswered, row.negotiation) == (6, 2, 1, 3)


def polls(rng: Random, count: int) -> Iterator[Exchange]:
    """Fetches of three sessions that grow, lose topics and stand still, and name some topics themselves; their ids are
    given names in between."""
    connections = [connection(number, f"10.0.0.{number}:50000") for number in (1, 2, 3)]
    topics: dict[int, list[str]] = {one.id: [f"t{one.id * 5 + at}" for at in range(20)] for one in connections}
    sessions = {number: SessionIdentity() for number in topics}
    content = {number: fetched_topics(names, session=sessions[number]) for number, names in topics.items()}
    for at in range(count):
        on = rng.choice(connections)
        names = topics[on.id]
        if rng.random() < 0.4:
            new = rng.choice(["t", f"{'id' * 9}x-"]) + str(rng.randrange(10, 99))
            if new not in names and rng.random() < 0.8:
                names.append(new)
            else:
                del names[rng.randrange(len(names))]
            content[on.id] = fetched_topics(names, session=sessions[on.id])
        failed = rng.random() < 0.1
        yield exchange(
            latency_ns=rng.choice([None, 0, -5, rng.randrange(1, 10**9)]) if failed else rng.randrange(1, 10**9),
            waiting=rng.choice(["", "long poll"]),
            request_bytes=at,
            outcome="error" if failed else "ok",
            errors=FAILED if failed else [],
            on=on,
            topics=tuple(rng.sample(["t1", "t7", "else", names[-1]], rng.choice([0, 0, 1, 2]))),
            fetched=content[on.id],
        )


#: How many topics of sessions are followed, and how often one changes before its topics are counted by themselves.
LIMITS = list(product([20, 60, followed_sessions.MAX_FOLLOWED], [3, stats.MAX_APART]))


@pytest.mark.parametrize("limits", sampled(LIMITS, 5, 1), ids=str)
def test_what_is_counted_for_all_topics_of_a_session_at_once_is_what_each_of_them_gets(
    limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each topic by itself: of an exchange that names all of its session. Looking in between changes nothing."""
    followed, apart = limits
    monkeypatch.setattr(stats, "MAX_APART", apart)
    monkeypatch.setattr(followed_sessions, "MAX_FOLLOWED", followed)
    names: dict[str, str] = {}
    one, two = StatsTable(("topic",), names.get), StatsTable(("topic", "api"), names.get)
    by_itself = StatsTable(("topic",), names.get)
    rng = Random(f"polls {followed} {apart}")
    for at, poll in enumerate(polls(rng, 1_500)):
        one.add(poll)
        two.add(poll)
        assert poll.fetched is not None
        of_session = [names.get(topic) or topic for topic in poll.fetched.topics]
        poll.topics, poll.fetched = tuple(dict.fromkeys([*poll.topics, *of_session])), None
        by_itself.add(poll)
        if at % 400 == 399:
            names[f"{'id' * 9}x-{at // 40 + 1}"] = f"named-{at}"
            assert one.rows() == by_itself.rows()
            both = [row._replace(by=("topic", "api"), key=(*row.key, "Fetch")) for row in one.rows()]
            assert two.rows() == both
    assert len(one) == len(two) > 100


@pytest.mark.skipif(COMPILED, reason="a compiled class cannot be made to count")
def test_a_fetch_of_a_session_of_thousands_of_topics_is_counted_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the session grows by a topic with every fetch, and while it stands."""
    work = 0

    def counted(method: Any) -> Any:
        def count(*arguments: Any) -> None:
            nonlocal work
            work += 1
            method(*arguments)

        return count

    monkeypatch.setattr(stats_row.Row, "add", counted(stats_row.Row.add))
    monkeypatch.setattr(stats_row.Row, "merge", counted(stats_row.Row.merge))
    made, names = StatsTable(("topic",)), tuple(f"topic-{number}" for number in range(1_000))
    sizes = [*range(16, 1_000), *[1_000] * 2_000]
    session = SessionIdentity()
    content = {size: fetched_topics(list(names[:size]), session=session) for size in set(sizes)}
    for size in sizes:
        made.add(exchange(topics=(), fetched=content[size]))
    found = {row.key[0]: row.count for row in made.rows()}
    assert (found["topic-0"], found["topic-999"]) == (len(sizes), 2_000)
    assert work < 5 * len(sizes)
