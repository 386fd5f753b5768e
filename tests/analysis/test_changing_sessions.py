"""Fetch sessions that gain and lose topics: what is counted for all of a session at once is what each topic has."""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Callable
from statistics import median
from time import process_time

import pytest

from kwiresniff.analysis.clients import NamesInTraffic
from kwiresniff.analysis.filter import compile_filter
from kwiresniff.analysis.followed_sessions import Followed, FollowedSessions
from kwiresniff.analysis.stats import StatsTable
from kwiresniff.base.fastint import COMPILED
from kwiresniff.model import Exchange
from kwiresniff.session.fetch_sessions import FetchSession
from tests.support.exchanges import exchange

#: Exchanges of a session; more than twice as often as all of its topics get their counts.
FETCHES = 300


def fetches(topics: int, rng: random.Random, *, count: int = FETCHES) -> list[tuple[Exchange, list[str]]]:
    """Fetches of a session with so many topics at first, and the topics that each is about.

    Most forget a topic and add another one; some add one, some nothing, and some bring one back.
    """
    session, has, found = FetchSession(is_whole=True), [f"t-{number}" for number in range(topics)], []
    session.add([{"topic": name, "partitions": [0]} for name in has])
    forgotten: list[str] = []
    for number in range(count):
        what = rng.random()
        if what < 0.7:
            gone = has.pop(rng.randrange(len(has)))
            forgotten.append(gone)
            session.forget([{"topic": gone, "partitions": list(range(7))}])
        if what < 0.8:
            new = forgotten.pop(0) if what < 0.1 and forgotten else f"n-{number}"
            if new not in has:
                has.append(new)
                session.add([{"topic": new, "partitions": [number % 7]}])
        one = exchange(latency_ns=1_000 * (number + 1), topics=(rng.choice(["t-0", has[-1]]),))
        one.fetched = session.content()
        found.append((one, list(has)))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_each_topic_has_the_fetches_that_are_about_it(seed: int) -> None:
    rng = random.Random(seed)
    table, expected, longest = StatsTable(["topic"]), Counter[str](), {}
    for one, has in fetches(rng.choice([17, 60, 200]), rng):
        table.add(one)
        for name in {*has, *one.topics}:
            expected[name] += 1
            longest[name] = one.latency_ns
    rows = {row.key[0]: row for row in table.rows()}
    assert {name: row.count for name, row in rows.items()} == expected
    for name, row in rows.items():
        assert row.latency is not None
        assert (row.latency.count, row.latency.max_ns) == (expected[name], longest[name])


def test_a_session_has_the_numbers_of_the_partitions_that_it_has() -> None:
    session = FetchSession(is_whole=True)
    session.add([{"topic": "a", "partitions": [1, 2]}, {"topic": "b", "partitions": [2, 3]}])
    session.forget([{"topic": "a", "partitions": [1, 2]}])
    assert (session.content().topics, sorted(session.content().partitions)) == (["b"], [2, 3])
    session.forget([{"topic": "b", "partitions": [3, 9]}, {"topic": "c", "partitions": [2]}])
    session.add([{"topic": "a", "partitions": [4]}])
    assert (session.content().topics, sorted(session.content().partitions)) == (["b", "a"], [2, 4])


def test_a_filter_knows_which_topics_a_session_has_now() -> None:
    """The name of one becomes known only after it has been asked for."""
    names: dict[str, str] = {}
    given = fetches(40, random.Random(1))
    tests = [compile_filter(f"topic {test}", names.get, lambda: len(names)) for test in ("== t-3", "~ n-1", "!= t-3")]
    for number, (one, has) in enumerate(given):
        if number == 100:
            names["t-5"] = "t-3"
        now = {names.get(name, name) for name in (*has, *one.topics)}
        told = "t-3" in {*one.topics, *[names.get(name, name) for name in has]}
        expected = [told, any("n-1" in name for name in now), not told]
        assert [test.matches(one) for test in tests] == expected, number


WHO: dict[str, Callable[[], Callable[[Exchange], object]]] = {
    "stats --by topic": lambda: StatsTable(["topic"]).add,
    "stats -Y": lambda: compile_filter("topic == orders").matches,
    "clients": NamesInTraffic,
}


@pytest.mark.slow
@pytest.mark.parametrize("who", WHO)
def test_a_fetch_costs_little_more_where_its_session_has_many_topics(who: str) -> None:
    """Twenty times as many topics: what looks at each of them takes twenty times as long. Medians, in turns."""
    few, many = ([one for one, _ in fetches(count, random.Random(2), count=1_000)] for count in (50, 1_000))

    def seconds(given: list[Exchange]) -> float:
        take = WHO[who]()
        began = process_time()
        for one in given:
            take(one)
        return process_time() - began

    gc.disable()
    try:
        measured = [(seconds(few), seconds(many)) for _ in range(5)]
    finally:
        gc.enable()
    few_cost, many_cost = (median(costs) for costs in zip(*measured, strict=True))
    assert many_cost < 12 * few_cost, f"{many_cost / few_cost:.1f} times"


def test_fetches_of_sessions_that_take_turns_cost_what_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of sessions on one connection: nothing that follows them asks for a session's members again."""
    asked = 0

    class Counted(FollowedSessions):
        def weigh(self, followed: Followed, more: int = 0) -> list[Followed]:
            nonlocal asked
            asked += 1
            return super().weigh(followed, more)

    if not COMPILED:
        for module in ("clients", "stats", "filter.of_sessions"):
            monkeypatch.setattr(f"kwiresniff.analysis.{module}.FollowedSessions", Counted)
    sessions = [FetchSession(is_whole=True) for _ in range(300)]
    for session in sessions:
        session.add([{"topic": f"t-{number}", "partitions": [0]} for number in range(100)])
    takers: list[Callable[[Exchange], object]] = [made() for made in WHO.values()]
    for _ in range(3):
        for session in sessions:
            one = exchange(topics=())
            one.fetched = session.content()
            for take in takers:
                take(one)
    assert asked <= len(takers) * len(sessions)
    if not COMPILED:
        assert asked == len(takers) * len(sessions)


def test_a_dropped_session_is_taken_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """More topics than are followed, and more rows apart than there is room for: the counts stay what they are."""
    monkeypatch.setattr("kwiresniff.analysis.followed_sessions.MAX_FOLLOWED", 100)
    monkeypatch.setattr("kwiresniff.analysis.stats.MAX_ALL_APART", 2)
    rng = random.Random(7)
    table, expected = StatsTable(["topic"]), Counter[str]()
    given = [fetches(40, rng, count=50) for _ in range(5)]
    for turn in zip(*given, strict=True):
        for one, has in turn:
            table.add(one)
            expected.update({*has, *one.topics})
    assert {row.key[0]: row.count for row in table.rows()} == expected
