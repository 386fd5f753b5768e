"""Clients that ask too often or wait too long, on ever new connections, and who suffers from it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from kwiresniff.analysis.doctor.troubles import client_loads, held_fetches, metadata_requests, restores
from kwiresniff.model import Connection, Event, Exchange
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import SECOND, codes, findings

MILLISECOND = 1_000_000


def at(seconds: float) -> int:
    return START_NS + round(seconds * SECOND)


def metadata(at_s: float, client: str = "cart-1", on: Connection | None = None, **more: Any) -> Exchange:
    return exchange("Metadata", 3, 12, client_id=client, request={}, response={}, start_ns=at(at_s), on=on, **more)


# -- requests for metadata -------------------------------------------------------------------------------------------


def test_clients_that_ask_at_one_interval_are_one_finding_that_names_the_setting() -> None:
    """Six clients, ten times a second each, on connections that stand, with good answers."""
    asked = [
        metadata(number * 0.1 + client * 0.01, f"cart-{client}", connection(1 + client))
        for number in range(40)
        for client in range(6)
    ]
    (found,) = findings(*asked)
    assert (found.code, found.severity, found.count) == ("metadata_storm", "warning", 240)
    assert "6 clients ask for metadata about every 100 ms" in found.title
    assert "metadata.max.age.ms" in found.remedy and found.numbers["subject_count"] == 6


def test_a_timer_that_waits_behind_a_long_poll_now_and_then_is_regular() -> None:
    """A request is late behind the answer before it, never early."""
    times, now = [], 0.0
    for number in range(60):
        times.append(now)
        now += 0.25 if number % 4 == 3 else 0.1
    (found,) = findings(*(metadata(one) for one in times))
    assert "about every 100 ms" in found.title


@pytest.mark.parametrize(
    ("events", "words"),
    [
        pytest.param(
            [
                metadata(
                    number * 0.1, errors=[("topics[0].error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION", True)],
                    outcome="error",
                )
                for number in range(40)
            ],
            "is answered with UNKNOWN_TOPIC_OR_PARTITION",
            id="a topic that is missing",
        ),
        pytest.param(
            [
                one
                for number in range(40)
                for one in (
                    exchange(
                        "Produce", 0, 9, client_id="cart-1", start_ns=at(number * 0.1 - 0.01), outcome="error",
                        errors=[("responses[0].error_code", 6, "NOT_LEADER_OR_FOLLOWER", True)],
                    ),
                    metadata(number * 0.1),
                )
            ],
            "its requests fail with NOT_LEADER_OR_FOLLOWER",
            id="a leader that moved",
        ),
        pytest.param(
            [metadata(number * 0.1, on=connection(1 + number)) for number in range(120)],
            "a new client each time",
            id="new clients",
        ),
        pytest.param(
            [metadata(number // 8 + number % 8 * 0.001) for number in range(60)],
            "at no regular interval",
            id="an application that asks",
        ),
    ],
)  # fmt: skip
def test_why_metadata_is_asked_for_is_told_by_what_is_around_it(events: list[Event], words: str) -> None:
    """The remedy is another one each time."""
    told = [one for one in findings(*events) for one in (one, *one.symptoms) if one.code == "metadata_storm"]
    assert [words in one.title for one in told] == [True]


def test_a_script_that_is_over_soon_is_no_storm() -> None:
    """It has a new client for each of its steps, and ends within ten seconds."""
    assert codes(*(metadata(number * 0.1, on=connection(1 + number)) for number in range(90))) == []


def test_metadata_now_and_then_is_none_too_much() -> None:
    """Twice a second is no storm, and a few at once are a start."""
    assert codes(*(metadata(number * 0.5) for number in range(60))) == []
    assert codes(*(metadata(number * 0.01) for number in range(10))) == []


@pytest.mark.parametrize(
    ("every_s", "count", "size", "expected"),
    [
        pytest.param(1, 15, 20_000, [("metadata_load", "warning")], id="each second"),
        pytest.param(1, 15, 5_000, [], id="small answers"),
        pytest.param(10, 15, 20_000, [], id="seldom"),
        pytest.param(1, 9, 20_000, [], id="a few"),
        pytest.param(0.1, 15, 20_000, [], id="at a start"),
        pytest.param(0.1, 150, 20_000, [("metadata_storm", "warning")], id="all the time"),
    ],
)
def test_large_answers_again_and_again_are_a_load(
    every_s: float, count: int, size: int, expected: list[tuple[str, str]]
) -> None:
    """Of all topics, though more seldom than what is a storm."""
    answers = {"topics": [{"name": f"t{number}", "partitions": []} for number in range(300)]}
    asked = [
        exchange("Metadata", 3, 12, request={}, response=answers, response_bytes=size, start_ns=at(number * every_s))
        for number in range(count)
    ]
    assert codes(*asked) == expected
    assert all("300 topics" in one.title for one in findings(*asked) if one.code == "metadata_load")


def test_many_clients_that_ask_each_second_ask_often_together() -> None:
    """Four of them do so 4 times a second, eight 8 times."""
    asked = [
        metadata(number + client * 0.1, f"cart-{client}", connection(1 + client))
        for number in range(30)
        for client in range(8)
    ]
    assert codes(*asked) == [("metadata_storm", "warning")]
    assert codes(*(one for one in asked if one.connection.id <= 4)) == []


# -- new connections -------------------------------------------------------------------------------------------------


def opened(number: int, at_s: float, lasts_s: float, broker: str = "10.0.0.1:9092") -> Connection:
    made = connection(number, f"10.0.0.5:{10_000 + number}", broker)
    made.client_id, made.handshake_seen, made.first_packet = "web-hook", True, number
    made.first_ns, made.closed_by, made.closed_ns = at(at_s), "client", at(at_s + lasts_s)
    made.last_ns, made.exchanges = made.closed_ns, {"ok": 3}
    return made


def test_churn_is_told_once_by_the_time_that_was_seen_with_what_it_is_for() -> None:
    """Three brokers, 60 connections in 20 s are 180 a minute; each of 20 producers sends one message."""
    events: list[Event] = []
    for number in range(60):
        on = opened(1 + number, number / 3, 0.1, f"10.0.0.{1 + number % 3}:9092")
        if number % 3 == 0:
            for api, key in (("InitProducerId", 22), ("Produce", 0)):
                events.append(exchange(api, key, 4, client_id="web-hook", start_ns=on.first_ns, on=on, response={}))
        events.append(on)
    (found,) = findings(*events)
    assert (found.code, found.severity, found.subject) == ("connection_churn", "warning", "web-hook 10.0.0.5")
    assert round(found.numbers["per_minute"]) == 182 and len(found.numbers["brokers"]) == 3
    assert "a new producer for every message" in found.title


def test_connections_that_last_are_no_churn_however_many_a_start_opens() -> None:
    """Thirty at once, each with a short one before it that bootstraps; and twenty that follow each other slowly."""
    start: list[Event] = [opened(1 + number, number * 0.01, 0.005) for number in range(30)]
    start += [opened(31 + number, number * 0.01 + 0.005, 60) for number in range(30)]
    assert codes(*start) == []
    assert codes(*(opened(1 + number, number * 10, 5) for number in range(25))) == []


# -- load ------------------------------------------------------------------------------------------------------------


def produce(at_s: float, wait_ms: float) -> Exchange:
    return exchange(
        "Produce", 0, 9, client_id="checkout", response={}, start_ns=at(at_s), on=connection(99),
        latency_ns=round(wait_ms * MILLISECOND),
    )  # fmt: skip


def polled(from_s: float, to_s: float, instances: int = 4) -> list[Exchange]:
    """Exporters that ask for the offsets of groups, 400 times a second."""
    count = round((to_s - from_s) * 100)
    return [
        exchange(
            "OffsetFetch", 9, 8, client_id=f"exporter-{instance}", request={}, response={},
            start_ns=at(from_s + number / 100), on=connection(1 + instance),
        )
        for number in range(count)
        for instance in range(instances)
    ]  # fmt: skip


def writes(seconds: int, slow: range, wait_ms: float = 12) -> list[Exchange]:
    """Ten Produce requests a second, which wait for 3 ms, or longer in some of the seconds."""
    return [
        produce(second + part / 10, wait_ms if second in slow else 3) for second in range(seconds) for part in range(10)
    ]


def in_order(*events: Exchange) -> list[Exchange]:
    return sorted(events, key=lambda one: one.request.first_ns if one.request is not None else 0)


def test_clients_that_are_alike_and_ask_all_the_time_are_told_with_who_suffers() -> None:
    """Four exporters ask from 5 s to 10 s; meanwhile a producer waits four times as long as before and after."""
    (found,) = findings(*in_order(*writes(20, range(5, 10)), *polled(5, 10)))
    assert (found.code, found.severity, found.subject) == ("request_load", "warning", "exporter-#")
    assert found.numbers["instances"] == 4 and found.numbers["apis"] == {"OffsetFetch": 2_000}
    assert "Produce of checkout waits 12 ms meanwhile instead of 3 ms (p50)" in found.title


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(in_order(*writes(20, range(0)), *polled(5, 10)), [("request_load", "info")], id="nobody suffers"),
        pytest.param(polled(5, 10), [], id="a capture of those clients alone"),
        pytest.param(in_order(*writes(20, range(5, 10)), *polled(5, 6)), [], id="few requests"),
        pytest.param(
            in_order(*writes(20, range(5, 10)), *(produce(5 + number / 400, 3) for number in range(2_000))), [],
            id="requests that do work",
        ),
    ],
)  # fmt: skip
def test_a_load_is_told_by_its_share_and_by_what_it_asks(
    events: list[Exchange], expected: list[tuple[str, str]]
) -> None:
    """Without harm it is good to know; a share of all that there is says nothing."""
    assert codes(*events) == expected


def test_the_time_of_a_long_capture_is_counted_in_few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts become twice as long when there are too many, and what is known of them stays."""
    monkeypatch.setattr(client_loads, "MAX_PARTS", 16)
    (found,) = findings(*in_order(*writes(20, range(5, 10)), *polled(5, 10)))
    assert found.code == "request_load" and found.numbers["slowed"][0]["client"] == "checkout"


# -- held fetches ----------------------------------------------------------------------------------------------------


def fetch(at_s: float, waited_s: float, min_bytes: int, age_s: float) -> Exchange:
    """A fetch that was held so long, with two records, the older of which was written ``age_s`` before the answer."""
    answered_ms = at(at_s + waited_s) // MILLISECOND
    batch = {
        "base_offset": 0, "last_offset_delta": 1, "records_count": 2, "magic": 2, "size_bytes": 300,
        "base_timestamp": answered_ms - round(age_s * 1000), "max_timestamp": answered_ms,
    }  # fmt: skip
    part = {"partition_index": 0, "error_code": 0, "high_watermark": 2, "records": [batch]}
    request = {"replica_id": -1, "max_wait_ms": 8_000, "min_bytes": min_bytes, "topics": []}
    response = {"responses": [{"topic": "prices", "partitions": [part]}]}
    return exchange(
        client_id="pricing", request=request, response=response, start_ns=at(at_s),
        latency_ns=round(waited_s * SECOND), waiting="long poll",
    )  # fmt: skip


def test_records_that_wait_for_others_to_come_are_late_by_their_own_timestamps() -> None:
    """The older record of each fetch is 6 s late and the newer one not at all."""
    (found,) = findings(*(fetch(10 * number, 8, 1_000_000, 6) for number in range(3)))
    assert (found.code, found.severity, found.subject) == ("late_fetches", "warning", "pricing 10.0.0.5")
    assert found.numbers["min_bytes"] == 1_000_000 and found.numbers["records"] == 6
    assert abs(found.numbers["mean_late_ns"] - 3 * SECOND) < 2 * MILLISECOND
    assert "which never come together" in found.title


def test_what_was_written_before_the_fetch_was_late_no_longer_than_the_fetch() -> None:
    """Old records that are read again, or clocks that differ, make no wait longer than it was."""
    (found,) = findings(fetch(0, 8, 1_000_000, 86_400))
    assert found.numbers["longest_late_ns"] <= 8 * SECOND


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([fetch(0, 8, 1, 0)], id="any record ends the wait"),
        pytest.param([fetch(0, 0.5, 1_000_000, 0.4)], id="a wait as long as the default"),
    ],
)
def test_consumers_that_wait_for_any_record_are_not_late(events: list[Event]) -> None:
    """What waits then is the consumer, not a record."""
    assert codes(*events) == []


def test_fetches_whose_records_are_looked_at_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs a decoded body."""
    monkeypatch.setattr(held_fetches, "MAX_FETCHES", 2)
    found = findings(*(fetch(10 * number, 8, 1_000_000, 6) for number in range(5)))
    assert [one.numbers["fetches"] for one in found if one.code == "late_fetches"] == [2]


# -- restoring -------------------------------------------------------------------------------------------------------


def restored(at_s: float, asked: int, topic: str = "shop-counts-changelog") -> Exchange:
    batch = {"base_offset": asked, "last_offset_delta": 99, "records_count": 100, "magic": 2}
    part = {"partition_index": 0, "error_code": 0, "high_watermark": 900, "records": [batch]}
    request = {
        "replica_id": -1, "topics": [{"topic": topic, "partitions": [{"partition": 0, "fetch_offset": asked}]}],
    }  # fmt: skip
    response = {"responses": [{"topic": topic, "partitions": [part]}]}
    return exchange(client_id="shop-restore-consumer", request=request, response=response, start_ns=at(at_s))


def test_a_changelog_that_is_read_from_its_beginning_is_good_to_know() -> None:
    """The state was lost; one that goes on from a checkpoint has it, and other topics are read from 0 all the time."""
    (found,) = findings(restored(0, 0), restored(1, 100))
    assert (found.code, found.severity, found.numbers["records"]) == ("state_restored", "info", 200)
    assert codes(restored(0, 50), restored(1, 150)) == []
    assert codes(restored(0, 0, "orders"), restored(1, 100, "orders")) == []


@pytest.mark.parametrize(
    ("module", "limit", "events"),
    [
        pytest.param(restores, "MAX_PARTITIONS", [restored(0, 0), restored(1, 100)], id="changelogs"),
        pytest.param(client_loads, "MAX_LOADS", in_order(*writes(20, range(5, 10)), *polled(5, 10)), id="clients"),
        pytest.param(client_loads, "MAX_CONNECTIONS", in_order(*writes(9, range(0)), *polled(5, 9)), id="connections"),
    ],
)
def test_what_is_beyond_a_limit_is_not_observed(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, limit: str, events: list[Event]
) -> None:
    """With room for it there is a finding, without none."""
    assert codes(*events) != []
    monkeypatch.setattr(module, limit, 0)
    assert codes(*events) == []


def test_intervals_are_judged_by_the_first_of_them_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too few are none."""
    monkeypatch.setattr(metadata_requests, "MAX_GAPS", 5)
    (found,) = findings(*(metadata(number * 0.1) for number in range(40)))
    assert "at no regular interval" in found.title


def copied(from_s: float, to_s: float, size: int = 1_000_000) -> list[Exchange]:
    """A consumer that is given so many bytes ten times a second."""
    return [
        exchange(
            client_id="rebuild", request={}, response={"responses": []}, response_bytes=size,
            start_ns=at(from_s + number / 10), on=connection(77),
        )
        for number in range(round((to_s - from_s) * 10))
    ]  # fmt: skip


def test_a_client_that_moves_most_bytes_is_told_with_who_suffers() -> None:
    """From 5 s to 10 s; it sends a fifth of the requests, and a producer waits 12 ms instead of 3 ms."""
    (found,) = findings(*in_order(*writes(20, range(5, 10)), *copied(5, 10)))
    assert (found.code, found.severity, found.subject) == ("byte_load", "warning", "rebuild 10.0.0.5")
    assert found.numbers["byte_share"] > 0.99 and found.numbers["share"] == 0.2
    assert "reads 50," in found.title and "Produce of checkout waits 12 ms meanwhile instead of 3 ms" in found.title


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*writes(20, range(0)), *copied(5, 10)], id="nobody suffers"),
        pytest.param([*writes(20, range(5, 10), wait_ms=7), *copied(5, 10)], id="a little"),
        pytest.param([*writes(20, range(5, 10)), *copied(5, 10, size=100_000)], id="few bytes"),
        pytest.param([*writes(20, range(20)), *copied(0, 20)], id="all the time"),
    ],
)
def test_many_bytes_alone_are_no_harm(events: list[Exchange]) -> None:
    """Others must wait longer than they linger, and twice as long as without them."""
    assert "byte_load" not in {code for code, _ in codes(*in_order(*events))}
