"""The JSON objects users script against, member by member as they are promised."""

from __future__ import annotations

import json

from kwiresniff.base.packet_references import PACKET_BITS
from kwiresniff.export.json_objects import connection_json, exchange_json, problem_json, stat_json
from kwiresniff.model import Message, Problem
from kwiresniff.results.stats import LatencySummary, StatRow
from tests.support.exchanges import START_NS, connection, exchange


def test_what_a_proxy_tells_stands_behind_the_ends_of_the_connection() -> None:
    """In exchanges and connections; there is no such member without a proxy."""
    on = connection()
    assert "proxied" not in connection_json(on)
    on.proxied = {"client": "203.0.113.7:51515", "broker": None, "by": "PROXY v1"}
    for made in (exchange_json(exchange(on=on)), connection_json(on)):
        assert made["proxied"] == on.proxied
        assert list(made)[3:6] == ["client", "broker", "proxied"]
        assert (made["client"], made["broker"]) == ("10.0.0.5:50000", "10.0.0.1:9092")


def test_an_exchange_says_who_asked_what_and_how_long_it_took() -> None:
    """Members stand in this order."""
    made = exchange_json(exchange(request={"replica_id": -1}, response={"throttle_time_ms": 0}))
    promised = {
        "schema_version": 1,
        "kind": "exchange",
        "connection": 1,
        "client": "10.0.0.5:50000",
        "broker": "10.0.0.1:9092",
        "api_key": 1,
        "api": "Fetch",
        "api_version": 12,
        "correlation_id": 7,
        "client_id": "billing-1",
        "outcome": "ok",
        "latency_ns": 1_000_000,
        "timing": {
            "request_ns": 10_000,
            "wait_ns": 1_000_000,
            "response_ns": 20_000,
            "queued_ns": 0,
            "held_ns": 0,
            "broker_ns": 1_000_000,
        },
        "request": {
            "time": "2023-11-14T22:13:20.000000000Z",
            "timestamp_ns": START_NS,
            "first_packet": 1,
            "last_packet": 2,
            "size_bytes": 100,
            "header_version": 2,
            "body": {"replica_id": -1},
        },
        "response": {
            "time": "2023-11-14T22:13:20.001010000Z",
            "timestamp_ns": START_NS + 1_010_000,
            "first_packet": 3,
            "last_packet": 5,
            "size_bytes": 2_000,
            "header_version": 1,
            "body": {"throttle_time_ms": 0},
        },
        "errors": [],
        "problems": [],
    }
    assert json.dumps(made) == json.dumps(promised)


def test_an_unanswered_request_has_no_response_and_no_latency() -> None:
    made = exchange_json(exchange(latency_ns=None, outcome="unanswered"))
    assert made["response"] is None
    assert made["latency_ns"] is None
    assert made["timing"] == {"request_ns": 10_000} | dict.fromkeys(
        ("wait_ns", "response_ns", "queued_ns", "held_ns", "broker_ns")
    )


def test_a_response_alone_has_no_request() -> None:
    alone = exchange(api="", api_key=-1, api_version=-1, outcome="request_missing", queued=-1, held=-1)
    alone.request = None
    made = exchange_json(alone)
    assert made["request"] is None
    assert made["timing"] == {"response_ns": 20_000} | dict.fromkeys(
        ("request_ns", "wait_ns", "queued_ns", "held_ns", "broker_ns")
    )


def test_the_parts_of_a_wait_add_up() -> None:
    """What was queued and held is told; the rest of the millisecond is the broker's."""
    timing = exchange_json(exchange(queued=200_000, held=300_000))["timing"]
    assert (timing["queued_ns"], timing["held_ns"], timing["broker_ns"]) == (200_000, 300_000, 500_000)


def test_errors_and_problems_are_objects() -> None:
    bad = exchange(
        outcome="error",
        errors=[("topics[0].partitions[2].error_code", 6, "NOT_LEADER_OR_FOLLOWER", True)],
        problems=[Problem("trailing_bytes", "4 bytes are left", 30, "", details={"bytes": 4})],
    )
    made = exchange_json(bad)
    assert made["errors"] == [
        {"path": "topics[0].partitions[2].error_code", "code": 6, "name": "NOT_LEADER_OR_FOLLOWER", "retriable": True}
    ]
    assert made["problems"] == [
        {"code": "trailing_bytes", "message": "4 bytes are left", "offset": 30, "path": "", "bytes": 4}
    ]


def test_the_file_is_named_beside_packets_when_there_are_several() -> None:
    over_two_files = exchange()
    assert over_two_files.response is not None
    over_two_files.response.first_packet = 1 << PACKET_BITS | 9
    made = exchange_json(over_two_files, ["a.pcap", "b.pcap"])
    assert (made["request"]["file"], made["request"]["first_packet"]) == ("a.pcap", 1)
    assert (made["response"]["file"], made["response"]["first_packet"]) == ("b.pcap", 9)
    assert "file" not in exchange_json(exchange(), ["a.pcap"])["request"]


def test_notes_of_plugins_are_there_only_when_there_are_any() -> None:
    assert exchange_json(exchange(notes=[{"plugin": "p", "message": "hm"}]))["notes"] == [
        {"plugin": "p", "message": "hm"}
    ]


def test_a_time_that_no_calendar_has_is_null() -> None:
    far = exchange()
    far.request = Message(1, 10**21, 1, 10**21, 1, None)
    made = exchange_json(far)["request"]
    assert made["time"] is None
    assert made["timestamp_ns"] == 10**21


def test_a_connection_counts_each_way() -> None:
    made = connection()
    made.first_ns, made.last_ns = START_NS, START_NS + 1
    made.bytes, made.packets, made.retransmits, made.skipped_bytes = [1, 2], [3, 4], [5, 6], [7, 8]
    made.handshake_seen, made.handshake_rtt_ns = True, 250
    made.sasl = {"mechanism": "PLAIN", "principal": "alice", "outcome": "ok"}
    made.exchanges = {"ok": 3}
    assert connection_json(made) == {
        "schema_version": 1,
        "kind": "connection",
        "connection": 1,
        "client": "10.0.0.5:50000",
        "broker": "10.0.0.1:9092",
        "protocol": "kafka",
        "first_time": "2023-11-14T22:13:20.000000000Z",
        "first_timestamp_ns": START_NS,
        "last_time": "2023-11-14T22:13:20.000000001Z",
        "last_timestamp_ns": START_NS + 1,
        "bytes": {"to_broker": 1, "to_client": 2},
        "packets": {"to_broker": 3, "to_client": 4},
        "retransmits": {"to_broker": 5, "to_client": 6},
        "skipped_bytes": {"to_broker": 7, "to_client": 8},
        "handshake_seen": True,
        "handshake_rtt_ns": 250,
        "client_software": None,
        "sasl": {"mechanism": "PLAIN", "principal": "alice", "outcome": "ok"},
        "tls": None,
        "exchanges": {"ok": 3},
    }


def test_a_problem_carries_its_details_without_losing_its_own_members() -> None:
    problem = Problem("gap", "lost", packet=1 << PACKET_BITS | 4, details={"skipped_bytes": 9, "code": "other"})
    assert problem_json(problem, ["a", "b"]) == {
        "schema_version": 1,
        "kind": "problem",
        "code": "gap",
        "message": "lost",
        "offset": None,
        "path": "",
        "file": "b",
        "packet": 4,
        "skipped_bytes": 9,
    }


def test_a_row_of_statistics_has_its_dimensions_as_members() -> None:
    summary = LatencySummary(2, 1, 2, 1, 3, 3, 3, 3, ((1_000, 2),))
    row = StatRow(("api", "topic"), ("Fetch", "orders"), 3, 1, 0, 10, 20, None, (("long poll", summary),))
    made = stat_json(row)
    assert (made["kind"], made["api"], made["topic"], made["latency"]) == ("stats", "Fetch", "orders", None)
    assert made["waiting"]["long poll"]["histogram"] == [{"below_ns": 1_000, "count": 2}]
