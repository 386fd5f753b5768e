"""Waits of clients for partitions of fetch sessions: which fetch ends them, and what a fetch costs meanwhile."""

from __future__ import annotations

import random
import sys
from types import FrameType
from typing import Any

import pytest

from kwiresniff.analysis.doctor import leader_waits
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.leader_waits import MAX_WAITING, LeaderWaits
from kwiresniff.model import Exchange
from kwiresniff.session.fetch_sessions import FetchSession
from tests.support.exchanges import exchange


def waits_with(names: dict[str, str]) -> LeaderWaits:
    return LeaderWaits(Context(names.get))


def fetch(session: FetchSession) -> Exchange:
    """An incremental fetch that says nothing itself."""
    one = exchange(request={"topics": []})
    one.fetched = session.content()
    return one


def unserved(waits: LeaderWaits) -> set[tuple[str, int]]:
    return {(topic, number) for _, (_, topic, number), wait in waits.waits if wait.recovered_ns < 0}


@pytest.mark.parametrize("seed", range(10))
def test_a_fetch_ends_the_waits_for_what_its_session_is_about(seed: int) -> None:
    """Sessions change, waits begin anew and topic ids get their names late; each fetch is compared with all waits."""
    rng, names = random.Random(seed), dict[str, str]()
    waits, sessions = waits_with(names), [FetchSession(is_whole=True) for _ in range(2)]
    cluster = waits.context.cluster.of(exchange().connection.broker)
    client = client_of(exchange())
    expected: set[tuple[str, int]] = set()
    ids = [f"{number:022}" for number in range(6)]
    for _ in range(400):
        session = rng.choice(sessions)
        topic_id, number = rng.choice(ids), rng.randrange(4)
        part = {"topic": topic_id, "partitions": [number]}
        what = rng.random()
        if what < 0.25:
            session.add([part])
        elif what < 0.4:
            session.forget([part])
        elif what < 0.45:
            names[topic_id] = f"t-{topic_id[-1]}"
        elif what < 0.7:
            topic = names.get(topic_id, topic_id)
            waits.begin(client, (cluster, topic, number), exchange(), None)
            expected.add((topic, number))
        one = fetch(session)
        assert one.fetched is not None
        topics = {names.get(topic, topic) for topic in one.fetched.topics}
        expected -= {wait for wait in expected if wait[0] in topics and wait[1] in one.fetched.partitions}
        waits.end(one)
        assert unserved(waits) == expected
        assert waits.unserved == len(expected)


def lines_run(waits: LeaderWaits, one: Exchange) -> int:
    """How many lines of the module are run to take a fetch in."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        if frame.f_code.co_filename != leader_waits.__file__:
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        waits.end(one)
    finally:
        sys.settrace(before)
    return lines


def test_an_empty_fetch_costs_the_same_for_any_number_of_waits_and_topics() -> None:
    """The first fetch of a session is compared with all waits, a later one with what has changed."""
    steps: list[int] = []
    for count in (10, MAX_WAITING):
        waits, session = waits_with({}), FetchSession(is_whole=True)
        session.add([{"topic": f"t-{number}", "partitions": [0]} for number in range(min(count, 500))])
        cluster, client = waits.context.cluster.of(exchange().connection.broker), client_of(exchange())
        for number in range(count):
            assert waits.begin(client, (cluster, "other", number), exchange(), None)
        waits.end(fetch(session))
        session.add([{"topic": "new", "partitions": [0]}])
        steps.append(lines_run(waits, fetch(session)))
        steps.append(lines_run(waits, fetch(session)))
        assert waits.unserved == count
    assert steps[:2] == steps[2:]
