"""Clients that are in one cluster at one start and in another at the next."""

from __future__ import annotations

import pytest

from kwiresniff.analysis.doctor import Doctors
from kwiresniff.analysis.doctor.troubles import mixed_clusters
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.findings import Finding
from tests.support.exchanges import START_NS
from tests.support.incidents import SECOND, closed, metadata, partition

GREEN, BLUE = "10.0.0.1:9092", "10.9.0.1:9092"


def stay(number: int, broker: str, first_s: float, last_s: float) -> tuple[Exchange, Connection]:
    """A connection to one of two clusters, which says its id."""
    on = closed(number, "client", round(last_s * SECOND), broker=broker)
    on.first_ns = START_NS + round(first_s * SECOND)
    on.exchanges["ok"] = 1
    asked = metadata(partition(0, 1, 0), on=on, at_ns=round(first_s * SECOND), hosts={1: broker.partition(":")[0]})
    assert asked.response is not None and asked.response.body is not None
    asked.response.body["cluster_id"] = "green" if broker == GREEN else "blue"
    return asked, on


def found(*stays: tuple[Exchange, Connection]) -> list[Finding]:
    doctor = Doctors()
    for event in [asked for asked, _ in stays] + [on for _, on in stays]:
        doctor.add(event)
    return [one for one in doctor.findings() if one.code == "clusters_mixed"]


@pytest.mark.parametrize(
    ("stays", "is_told"),
    [
        pytest.param([(GREEN, 0, 5), (BLUE, 5, 9), (GREEN, 9, 20)], True, id="by turns"),
        pytest.param([(GREEN, 0, 5), (BLUE, 4.8, 9), (GREEN, 8.9, 20)], True, id="with ends that take a moment"),
        pytest.param([(GREEN, 0, 5), (BLUE, 5, 20)], False, id="a move"),
        pytest.param([(GREEN, 0, 5), (GREEN, 6, 9), (GREEN, 9, 20)], False, id="one cluster"),
        pytest.param([(GREEN, 0, 20), (BLUE, 5, 9), (GREEN, 9, 20)], False, id="both at a time"),
    ],
)
def test_a_client_that_is_in_two_clusters_by_turns_is_told(
    stays: list[tuple[str, float, float]], is_told: bool
) -> None:
    """Its bootstrap servers are of both; one that moves, or works with both, does so on purpose."""
    told = found(*[stay(number, *one) for number, one in enumerate(stays, 1)])
    assert bool(told) == is_told
    for one in told:
        assert (one.severity, one.count, one.numbers["clusters"]) == ("warning", 3, ["green", "blue"])
        assert one.subject == "billing-1 10.0.0.5" and one.cluster is None


@pytest.mark.parametrize("bound", ["MAX_CLIENTS", "MAX_STAYS"])
def test_stays_that_are_remembered_are_bounded(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients and connections beyond the limit are not looked at."""
    monkeypatch.setattr(mixed_clusters, bound, 0)
    assert found(*[stay(number, (GREEN, BLUE)[number % 2], number, number + 0.5) for number in range(1, 5)]) == []
