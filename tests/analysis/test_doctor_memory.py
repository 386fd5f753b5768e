"""What the doctor remembers, and that it is bounded."""

from __future__ import annotations

import tracemalloc

import pytest

from kwiresniff.analysis.doctor import evidence
from kwiresniff.analysis.doctor.cluster import Cluster
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.troubles import slow_answers
from kwiresniff.analysis.doctor.troubles.unacknowledged import UnacknowledgedWrites
from kwiresniff.analysis.memory_budget import MemoryBudget
from kwiresniff.model import Body, Problem
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import findings, produce


def test_what_brokers_took_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred APIs some percentiles are forgotten, those of the busiest stay."""
    monkeypatch.setattr(slow_answers, "MAX_HISTOGRAM_BYTES", 20_000)
    rule = slow_answers.SlowAnswers(Context())
    for number in range(100):
        for time in range(3 if number else 30):
            took_ns = 1_500_000_000 + time * 40_000_000
            rule.exchange(exchange(f"Api{number}", 100 + number, latency_ns=took_ns))
    told = {str(one.numbers["api"]): one.numbers.get("p99_ns") for one in rule.observations()}
    assert len(told) == 100
    assert told["Api0"] is not None
    assert 1 < sum(p99_ns is not None for p99_ns in told.values()) < 40


def test_the_worst_comes_first_and_subjects_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "MAX_SUBJECTS", 3)
    denied = [("error_code", 29, "TOPIC_AUTHORIZATION_FAILED", False)]
    events = [exchange(client_id=str(number), errors=denied, outcome="error") for number in range(10)]
    other = [("error_code", 5, "LEADER_NOT_AVAILABLE", True)]
    found = findings(*events, exchange(errors=other, outcome="error", client_id="0"))
    assert [(one.subject, one.count, one.severity) for one in found] == [
        ("(others)", 7, "error"),
        ("0 10.0.0.5", 1, "error"),
        ("1 10.0.0.5", 1, "error"),
        ("2 10.0.0.5", 1, "error"),
        ("(others)", 1, "info"),
    ]


def test_what_brokers_offer_is_read_once() -> None:
    """Most of a cluster's answers to ApiVersions are the same bytes; another version of the API is another answer."""
    cluster, decoded = Cluster(MemoryBudget(1 << 20)), 0

    def decode(frame: bytes, offset: int, problems: list[Problem]) -> tuple[Body, int]:
        nonlocal decoded
        decoded += 1
        return {"api_keys": [{"api_key": 0, "min_version": 3, "max_version": frame[-1]}]}, len(frame)

    answers = [(b"head" + b"keys" + b"\7", 3), (b"HEAD" + b"keys" + b"\7", 3), (b"headkeys\7", 2), (b"headkeys\x08", 3)]
    for number, (frame, version) in enumerate(answers):
        one = exchange("ApiVersions", 18, version, request={}, response={}, on=connection(number))
        one.connection.broker = f"broker-{number}"
        assert one.response is not None
        one.response.frame, one.response.body_offset, one.response.version = frame, 4, version
        one.response.size_bytes = len(frame)
        one.response.defer(None, decode)
        cluster.learn(one)
    assert [cluster.offer(f"broker-{number}")[0] for number in range(4)] == [(3, 7), (3, 7), (3, 7), (3, 8)]
    assert decoded == 3


def test_when_brokers_closed_connections_and_last_answered_on_them_is_remembered_within_the_budget() -> None:
    """The budget is charged for no less than the memory that it takes, and what is over gives it back."""
    brokers = [f"broker-{number}.example:9092" for number in range(1000)]
    over = [connection(number, broker=broker) for number, broker in enumerate(brokers * 25)]
    for number, one in enumerate(over):
        one.closed_by, one.closed_ns = "broker", START_NS + number
    answers = [exchange(on=connection(number)) for number in range(len(over), len(over) + 5000)]
    cluster, budget = Cluster(MemoryBudget(0)), MemoryBudget(1 << 30)
    cluster.ended(over[0])
    assert not cluster.went(brokers[0], START_NS)
    cluster = Cluster(budget)
    tracemalloc.start()
    try:
        for one in over:
            cluster.ended(one)
        for number, answer in enumerate(answers):
            cluster.answered(answer, START_NS + number)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 500_000 < taken < budget.held_bytes < 3 * taken
    assert cluster.went(brokers[0], over[-1].closed_ns)
    held = budget.held_bytes
    cluster.ended(answers[7].connection)
    assert cluster.ended_answer_ns == START_NS + 7
    assert budget.held_bytes < held


def test_connections_with_unacknowledged_records_are_remembered_within_the_budget() -> None:
    """The budget is charged for no less than the memory that they take, and those that have ended give it back."""
    on = [connection(number) for number in range(5000)]
    sent = [produce(number, on=one) for number, one in enumerate(on)]
    for one in sent:
        assert one.request is not None and one.request.body is not None
        one.request.body["acks"] = 0
    context = Context()
    rule, budget = UnacknowledgedWrites(context), context.budget
    rule.exchange(sent[0])  # it has what it counts of the client from here on
    before = budget.held_bytes
    tracemalloc.start()
    try:
        for one in sent[1:]:
            rule.exchange(one)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < budget.held_bytes - before < 6 * taken
    for ended in on[1:]:
        rule.connection(ended)
    assert budget.held_bytes == before
    budget.limit_bytes = budget.held_bytes
    rule.exchange(sent[1])
    assert budget.held_bytes == before
