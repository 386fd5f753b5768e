"""Producers whose clocks are wrong."""

from __future__ import annotations

import pytest

from kwiresniff.analysis.doctor.troubles import record_clocks
from kwiresniff.model import Exchange
from tests.support.exchanges import START_NS, connection, exchange, fetched
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


def given(broker: str, ages_s: list[float], behind: int = 0) -> list[Exchange]:
    """A batch every quarter of a second, from a broker, of records that are so old; ``behind`` follow in the log."""
    found = []
    for number, age_s in enumerate(ages_s):
        at_ms = START_MS + number * 250
        batch = {
            "magic": 2, "records_count": 1, "size_bytes": 100, "base_offset": number, "last_offset_delta": 0,
            "base_timestamp": at_ms - round(age_s * 1_000), "max_timestamp": at_ms - round(age_s * 1_000),
        }  # fmt: skip
        on = connection(int(broker[-1]), "10.0.0.5:5", f"{broker}:9092")
        high = number + 1 + behind
        found.append(
            fetched([batch], topic="readings", offset=number, high_watermark=high, start_ns=at_ms * 1_000_000, on=on)
        )
    return found


def test_a_broker_whose_clock_is_wrong_gives_its_records_another_time_than_the_others() -> None:
    """Where these have the right time, producers too, and the consumer is at the end of the log."""
    one, other, third = "10.0.0.1", "10.0.0.2", "10.0.0.3"
    right = [*wrote("till", [0.01] * 30), *given(other, [0.02] * 30)]
    for age_s, told in ((-90, "90 s ahead"), (47, "47 s behind")):
        found = [one for one in findings(*right, *given(one, [age_s] * 30)) if one.code == "broker_clock"]
        assert [(each.severity, each.subject) for each in found] == [("warning", f"{one}:9092")]
        assert told in found[0].title and f"those from {other}:9092 the right one" in found[0].title
    for events in (
        [*right, *given(one, [47] * 30, behind=9)],  # it lags
        [*right, *given(one, [-90] * 10)],  # few
        given(one, [-90] * 30),  # nothing to compare with
        [*right, *given(one, [-90] * 30), *given(third, [-90] * 30)],
        [*wrote("sensor", [-90] * 30), *right, *given(one, [-90] * 30)],  # a producer's clock
    ):
        assert "broker_clock" not in dict(codes(*events))


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


@pytest.mark.parametrize(
    ("per_second", "unit", "severity"),
    [(1, "seconds", "error"), (10**6, "microseconds", "warning"), (10**9, "nanoseconds", "warning")],
)
def test_timestamps_in_another_unit_are_told_with_what_retention_made_of_them(
    per_second: int, unit: str, severity: str
) -> None:
    """Records of 1970 are deleted at once, and whoever comes later has lost them; those of a far future stay."""
    events = wrote("meter", [0] * 6)
    for one in events:
        assert one.request is not None and one.request.body is not None
        (batch,) = one.request.body["topic_data"][0]["partition_data"][0]["records"]
        batch["base_timestamp"] = batch["max_timestamp"] = batch["max_timestamp"] * per_second // 1_000
    asked = {"topics": [{"topic": "readings", "partitions": [{"partition": 0, "fetch_offset": 155}]}]}
    errors = [("responses[0].partitions[0].error_code", 1, "OFFSET_OUT_OF_RANGE", False)]
    parts = [{"partition_index": 0, "error_code": 1}]
    answer = {"responses": [{"topic": "readings", "partitions": parts}]}
    failed = exchange(request=asked, response=answer, errors=errors, outcome="error", client_id="loader")

    def begins(**part: int) -> dict[str, object]:
        return {"topics": [{"name": "readings", "partitions": [{"partition_index": 0, **part}]}]}

    listed = exchange("ListOffsets", 2, 7, request=begins(timestamp=-2), response=begins(offset=202))
    told = findings(*events, failed, listed)
    (found,), others = [[one for one in told if (one.code == "timestamp_unit") == of_unit] for of_unit in (True, False)]
    assert (found.code, found.severity, found.subject) == ("timestamp_unit", severity, "meter 10.0.0.5")
    assert f"the time in {unit}" in found.title and "readings" in found.title
    assert [one.code for one in others] == (["offset_out_of_range"] if unit != "seconds" else [])
    assert unit != "seconds" or "47 records were deleted before loader 10.0.0.5 had read them" in found.title
