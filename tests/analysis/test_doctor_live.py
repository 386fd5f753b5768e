"""Findings of traffic that does not end: they come once, go on, and are over."""

from __future__ import annotations

from kwiresniff.analysis.doctor import Doctors
from kwiresniff.analysis.doctor.live import OVER_NS, RENEW_NS, LiveExamination
from kwiresniff.model import Exchange
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import metadata, partition

SECOND = 1_000_000_000


def denied(at_ns: int, broker: str = "10.0.0.1:9092", number: int = 1) -> Exchange:
    errors = [("error_code", 29, "TOPIC_AUTHORIZATION_FAILED", False)]
    return exchange(errors=errors, outcome="error", start_ns=START_NS + at_ns, on=connection(number, broker=broker))


def test_a_finding_comes_once_and_is_over_after_a_while() -> None:
    """A finding that is over comes again when its cause is seen again."""
    live = LiveExamination(Doctors)
    told: list[tuple[int, str, str]] = []
    for second in range(200):
        if second in (1, 5, 180):
            live.add(denied(second * SECOND))
        came, over = live.review(START_NS + second * SECOND + SECOND // 2)
        told += [(second, "came", one.code) for one in came] + [(second, "over", one.code) for one in over]
    gone = 5 + OVER_NS // SECOND
    code = "topic_authorization_failed"
    assert told == [(1, "came", code), (gone, "over", code), (180, "came", code)]
    assert [one.code for one in live.going_on()] == [code]


def test_it_begins_anew_from_time_to_time() -> None:
    """What is rare now is not judged by what was then: the count is that of the newest examination."""
    live = LiveExamination(Doctors)
    for second in range(0, 2 * RENEW_NS // SECOND, 10):
        live.add(denied(second * SECOND))
        live.review(START_NS + second * SECOND + SECOND // 2)
    (found,) = live.going_on()
    assert found.count <= RENEW_NS // SECOND // 10 + 1


def test_a_finding_in_each_of_two_clusters_is_two() -> None:
    """What came when there was one cluster alone does not come again when a second one is seen."""
    live = LiveExamination(Doctors)
    told: list[tuple[str, str | None]] = []
    for second, broker in enumerate(["10.0.0.1:9092", "10.9.0.1:9092"]):
        known = metadata(partition(0, 1, 0), on=connection(second + 1, broker=broker), at_ns=second * SECOND)
        assert known.response is not None and known.response.body is not None
        known.response.body |= {"cluster_id": broker, "brokers": []}
        live.add(known)
        live.add(denied(second * SECOND, broker, second + 1))
        came, _ = live.review(START_NS + second * SECOND + SECOND // 2)
        told += [(one.subject, one.cluster) for one in came]
    (first, alone), (second_one, other) = told
    assert (first, alone, other) == (second_one, None, "10.9.0.1:9092")
    assert {one.cluster for one in live.going_on()} == {"10.0.0.1:9092", "10.9.0.1:9092"}
