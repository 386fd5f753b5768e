"""Producers whose clocks are wrong."""

from __future__ import annotations

import pytest

from kwiresniff.analysis.doctor.troubles import record_clocks
from kwiresniff.model import Exchange
from tests.support.exchanges import START_NS, exchange
from tests.support.incidents import SECOND, codes, findings

START_MS = START_NS // 1_000_000


def wrote(client: str, ages_s: list[float], every_s: float = 0.25) -> list[Exchange]:
    """A batch every quarter of a second, of records that are so old."""
    found = []
    for number, age_s in enumerate(ages_s):
        at_ms = START_MS + round(number * every_s * 1_000)
        batch = {
            "magic": 2, "records_count": 1, "size_bytes": 100, "base_offset": 0, "last_offset_delta": 0,
            "base_timestamp": at_ms - round(age_s * 1_000), "max_timestamp": at_ms,
        }  # fmt: skip
        body = {"acks": -1, "topic_data": [{"name": "readings", "partition_data": [{"index": 0, "records": [batch]}]}]}
        start_ns = at_ms * 1_000_000
        found.append(exchange("Produce", 0, 9, client_id=client, request=body, response={}, start_ns=start_ns))
    return found


@pytest.mark.parametrize(
    ("ages_s", "told"),
    [
        pytest.param([300] * 30, "300 s behind", id="behind"),
        pytest.param([303, 302, *[300] * 28], "300 s behind", id="what waited at first"),
        pytest.param([-45] * 30, "45 s ahead", id="ahead"),
        pytest.param([300 + number for number in range(30)], "", id="a copy that falls behind"),
        pytest.param([5] * 30, "", id="records that waited in the producer"),
        pytest.param([300] * 10, "", id="few"),
    ],
)
def test_a_clock_that_is_not_that_of_the_others_is_told(ages_s: list[float], told: str) -> None:
    """By the same time in nearly all batches."""
    found = findings(*wrote("sensor", ages_s), *wrote("till", [0.01] * 30))
    assert [one.severity for one in found if one.code == "clock_skew"] == ["warning"] * bool(told)
    assert all(told in one.title and "till 10.0.0.5" in one.title for one in found if one.code == "clock_skew")


def test_records_that_are_refused_for_their_age_are_an_error_of_their_producer() -> None:
    """It may be the clock, or the application that copies what is a day old."""
    refused = wrote("backfill", [86_400] * 30)
    for one in refused:
        one.errors = [("responses[0].partition_responses[0].error_code", 32, "INVALID_TIMESTAMP", False)]
        one.outcome = "error"
    (found,) = findings(*refused, *wrote("till", [0.01] * 30))
    assert (found.code, found.severity) == ("clock_skew", "error")
    assert "or its application sets them" not in found.title, "another program on this machine has the right time"
    assert "brokers refuse them, 30 times" in found.title and "message.timestamp.before.max.ms" in found.remedy
    assert [one.code for one in found.symptoms] == ["invalid_timestamp"]


def test_a_clock_with_nothing_to_be_held_against_may_be_that_of_the_capture() -> None:
    """The only producer of a capture that was shifted in time looks the same."""
    assert codes(*wrote("sensor", [-SECOND / 1e9 * 60] * 30)) == [("clock_skew", "info")]


def test_producers_and_ages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many batches some ages are kept, and they say the same; of two producers the first is followed."""
    assert codes(*wrote("sensor", [300] * 500)) == [("clock_skew", "info")]
    monkeypatch.setattr(record_clocks, "MAX_PRODUCERS", 1)
    assert codes(*wrote("till", [0.01] * 30), *wrote("sensor", [300] * 30)) == []
