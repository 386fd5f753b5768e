"""What looks like trouble and is none, and where the doctor must not be fooled."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis.doctor import Doctor
from kwiresniff.model import Connection, Event, Exchange, Problem
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import codes, findings

SECOND = 1_000_000_000
HOST = "172.19.0.1"
BROKER = "172.19.0.3:9092"
LOADING = [("error_code", 14, "COORDINATOR_LOAD_IN_PROGRESS", True)]
AWAY = [("error_code", 15, "COORDINATOR_NOT_AVAILABLE", True)]


def metadata(host: str, at_ns: int = 0, on: Connection | None = None, **more: Any) -> Exchange:
    body = {
        "cluster_id": "c",
        "brokers": [{"node_id": 1, "host": host, "port": 9092}],
        "topics": [
            {"error_code": 0, "name": "orders", "partitions": [{"error_code": 0, "partition_index": 0, "leader_id": 1}]}
        ],
    }
    return exchange("Metadata", 3, 12, request={"topics": [{"name": "orders"}]}, response=body,
                    start_ns=START_NS + at_ns, on=on or connection(1, f"{HOST}:5000", BROKER), **more)  # fmt: skip


def ended(on: Connection, *, from_the_start: bool = True) -> Connection:
    on.handshake_seen, on.bytes, on.client_id = from_the_start, [100, 100], "billing-1"
    return on


def test_a_forwarded_port_is_no_wrong_listener() -> None:
    """The client dials localhost, and something between it and the capture point translates that."""
    fetch = exchange(on=connection(2, f"{HOST}:5001", BROKER), request={}, response={})
    asked = [metadata("localhost"), metadata("localhost", 2 * SECOND)]
    assert codes(*asked) == [("advertised_listener", "error")]
    assert codes(*asked, fetch) == []


def asks(times: int, every_ns: int, host: str = "kafka-1.internal", connections: int = 1) -> list[Event]:
    on = [connection(number + 1, f"{HOST}:{5000 + number}", BROKER) for number in range(connections)]
    return [metadata(host, number * every_ns, on[number % connections]) for number in range(times)]


def test_a_client_that_goes_on_asking_for_leaders_cannot_reach_them() -> None:
    """A name that does not resolve leaves no SYN."""
    assert codes(*asks(6, SECOND)) == [("advertised_listener", "error")]
    assert codes(*asks(4, SECOND, connections=4)) == [("advertised_listener", "error")]


def test_a_client_that_works_or_watches_is_not_told_of_listeners() -> None:
    """One that fetches elsewhere, one that asks at a leader, one that asks now and then, one that was there before."""
    fetch = exchange(on=connection(9, f"{HOST}:5009", "172.19.0.9:9092"), request={}, response={})
    assert codes(*asks(6, SECOND), fetch) == []
    assert codes(*asks(8, SECOND, connections=2)) == []
    assert codes(*asks(6, 60 * SECOND)) == []
    assert codes(*asks(6, SECOND), ended(connection(1, f"{HOST}:5000", BROKER), from_the_start=False)) == []


def searches(*at_ns: int, errors: list[tuple[str, int, str, bool]]) -> list[Event]:
    return [
        exchange("FindCoordinator", 10, 4, request={}, response={}, start_ns=START_NS + ns, errors=errors)
        for ns in at_ns
    ]


def test_a_coordinator_that_loads_twice_is_no_lasting_trouble() -> None:
    """What counts is how long it was away at a stretch, not from the first time to the last."""
    found = exchange("FindCoordinator", 10, 4, request={}, response={}, start_ns=START_NS + 70 * SECOND)
    twice = searches(0, SECOND, 60 * SECOND, 61 * SECOND, errors=LOADING)
    assert codes(*twice, found) == [("coordinator_load_in_progress", "info")]
    long = searches(*range(0, 20 * SECOND, SECOND), errors=LOADING)
    assert codes(*long, found) == [("coordinator_load_in_progress", "warning")]


def test_a_coordinator_that_cannot_store_a_commit_is_there() -> None:
    """COORDINATOR_NOT_AVAILABLE is what it answers where its own write was not replicated in time."""
    commit = exchange("OffsetCommit", 8, 9, request={"group_id": "reports"}, response={}, errors=AWAY, outcome="error")
    (found,) = findings(commit)
    assert "the coordinator of group reports could not store it (OffsetCommit)" in found.title
    assert "__consumer_offsets" in found.remedy and "in sync" in found.remedy


def test_a_coordinator_that_goes_on_storing_nothing_is_an_error() -> None:
    """That it is found each time is no comfort; what it has stored meanwhile is."""
    unstored: dict[str, Any] = {"errors": AWAY, "outcome": "error", "request": {"group_id": "reports"}, "response": {}}
    events: list[Event] = []
    for number in range(12):
        ns = START_NS + number * 5 * SECOND
        events.append(exchange("FindCoordinator", 10, 4, request={}, response={}, start_ns=ns))
        events.append(exchange("SyncGroup", 14, 5, start_ns=ns + SECOND, **unstored))
    without_3 = {"error_code": 0, "partition_index": 0, "leader_id": 1, "replica_nodes": [1, 3], "isr_nodes": [1]}
    gone = metadata(HOST)
    assert gone.response is not None and gone.response.body is not None
    gone.response.body["topics"][0]["partitions"] = [without_3]
    found = [one for one in findings(gone, *events) if one.code == "coordinator_not_available"]
    assert [one.severity for one in found] == ["error"]
    assert any("replicas that are not in sync" in detail and "node 3" in detail for detail in found[0].details)
    stored = exchange("SyncGroup", 14, 5, request={}, response={}, start_ns=START_NS + 61 * SECOND)
    assert codes(*events, stored) == [("coordinator_not_available", "warning")]


def test_a_coordinator_that_is_never_found_is_told_even_when_the_capture_is_short() -> None:
    """One refusal is a warning; refusals that go on are an error."""
    assert codes(*searches(*range(0, 3 * SECOND, SECOND // 5), errors=AWAY)) == [
        ("coordinator_not_available", "warning")
    ]
    assert codes(*searches(*range(0, 30 * SECOND, SECOND), errors=AWAY)) == [("coordinator_not_available", "error")]


def test_one_slow_answer_of_many_is_no_error() -> None:
    """Of fewer than a hundred a single one is the 99th percentile."""
    quick: list[Event] = [exchange(request={}, response={}) for _ in range(60)]
    slow: list[Event] = []
    for number in range(1, 4):
        start_ns = START_NS + number * 6 * SECOND
        other = connection(2, "10.0.0.6:50000")
        slow.append(exchange(request={}, response={}, start_ns=start_ns + SECOND, on=other))
        slow.append(exchange(request={}, response={}, start_ns=start_ns, latency_ns=2 * SECOND))
    assert codes(*quick, *slow[:2]) == [("slow", "info")]
    assert ("slow", "error") in codes(*quick, *slow)


def produce(partitions: list[int], number: int, size: int = 1000, on: int = 1) -> Exchange:
    written = [{"index": one, "records": [{"size_bytes": size}]} for one in partitions]
    body = {"topic_data": [{"name": "orders", "partition_data": written}]}
    return exchange("Produce", 0, 9, request=body, response={"responses": [], "brokers": []},
                    start_ns=START_NS + number * 10_000_000, on=connection(on))  # fmt: skip


def brokers_of_orders() -> Exchange:
    partitions = [{"error_code": 0, "partition_index": index, "leader_id": 1} for index in range(6)]
    body = {
        "cluster_id": "c",
        "brokers": [{"node_id": 1, "host": "10.0.0.1", "port": 9092}],
        "topics": [{"error_code": 0, "name": "orders", "partitions": partitions}],
    }
    return exchange("Metadata", 3, 12, request={}, response=body)


def test_keys_that_are_one_make_a_partition_hot_within_a_second() -> None:
    """The producer writes to the others in between."""
    skewed = [produce([3] if number % 4 else [number % 6], number) for number in range(100)]
    assert codes(brokers_of_orders(), *skewed) == [("hot_partition", "warning")]


def test_a_producer_without_keys_that_stays_with_a_partition_is_not_told() -> None:
    """The sticky partitioner changes partitions when a batch is full, which takes a while."""
    sticky = [produce([3 if number < 90 else 4], number) for number in range(100)]
    assert codes(brokers_of_orders(), *sticky) == []


def test_a_server_that_is_no_broker_is_named() -> None:
    """With what it speaks instead."""
    details = {"protocol": "http", "server": "10.0.0.9:8080", "client": "10.0.0.5:50000", "connections": 3}
    answered = Problem("not_kafka_answer", "", packet=7, timestamp_ns=START_NS, details=details)
    assert codes(answered) == [("not_kafka_answer", "error")]


def closed_session(lifetime_ms: int) -> list[Event]:
    """A client that authenticates, works, and is sent away a minute later."""
    on = connection()
    on.sasl = {"mechanism": "PLAIN", "principal": "alice", "outcome": "ok"}
    events: list[Event] = [
        exchange("SaslAuthenticate", 36, 2, request={}, response={"session_lifetime_ms": lifetime_ms}, on=on),
        exchange("Heartbeat", 12, 4, request={}, response={}, on=on),
        exchange("Heartbeat", 12, 4, request={}, latency_ns=None, outcome="unanswered", on=on,
                 start_ns=START_NS + 60 * SECOND),
    ]  # fmt: skip
    on.exchanges = {"ok": 2, "unanswered": 1}
    on.closed_by, on.closed_ns, on.closed_packet, on.bytes = (
        "broker",
        START_NS + 60 * SECOND + 1_000_000,
        90,
        [300, 100],
    )
    return [*events, on]


def test_a_session_that_has_expired_is_the_reason_for_being_sent_away() -> None:
    """Where the broker had said how long it lasts."""
    doctor = Doctor()
    for event in closed_session(50_000):
        doctor.add(event)
    (found,) = doctor.findings()
    assert found.code == "session_expired" and "session" in found.title and "connections.max.reauth.ms" in found.remedy
    later = Doctor()
    for event in closed_session(3_600_000):
        later.add(event)
    assert later.findings()[0].code == "closed_by_broker" and "session" not in later.findings()[0].title


def test_few_large_requests_with_all_partitions_show_a_hot_one_too() -> None:
    """A producer that waits long for its batches sends twenty requests in the time of a hundred."""
    skewed = []
    for number in range(24):
        one = produce([0, 1, 2, 3, 4, 5], number * 20)
        assert one.request is not None and one.request.body is not None
        one.request.body["topic_data"][0]["partition_data"][2]["records"][0]["size_bytes"] = 20_000
        skewed.append(one)
    assert codes(brokers_of_orders(), *skewed) == [("hot_partition", "warning")]


def test_a_broker_that_is_gone_explains_what_waited_for_it_elsewhere() -> None:
    """Until it has left the ISR, other brokers wait for it too; what failed meanwhile makes that more than info."""
    hosts = [{"node_id": node, "host": f"10.0.0.{node}", "port": 9092} for node in (1, 2, 3)]

    def leaders(leader: int, epoch: int, at: int) -> Exchange:
        led = {"error_code": 0, "partition_index": 0, "leader_id": leader, "leader_epoch": epoch}
        body = {"cluster_id": "c", "brokers": hosts, "topics": [{"error_code": 0, "name": "a", "partitions": [led]}]}
        return exchange("Metadata", 3, 12, request={}, response=body, start_ns=START_NS + at * SECOND,
                        on=connection(9, "10.0.0.5:9", "10.0.0.2:9092"))  # fmt: skip

    gone = connection(1, "10.0.0.5:1", "10.0.0.1:9092")
    gone.closed_by, gone.closed_ns, gone.closed_packet = "broker", START_NS + 9 * SECOND, 80
    waited = connection(2, "10.0.0.5:2", "10.0.0.3:9092")
    timed_out = [("error_code", 7, "REQUEST_TIMED_OUT", True)]
    third = exchange("OffsetCommit", 8, 8, request={}, response={}, errors=timed_out, outcome="error", on=waited,
                     start_ns=START_NS + 12 * SECOND)  # fmt: skip
    doctor = Doctor()
    for event in (leaders(1, 0, 0), gone, leaders(2, 1, 10), third):
        doctor.add(event)
    (found,) = doctor.findings()
    assert (found.code, found.severity) == ("leader_change", "warning")
    assert [one.code for one in found.symptoms] == ["request_timed_out"]


def test_a_muted_channel_is_no_stall() -> None:
    """The broker reads nothing of a throttled client for two seconds; it has nothing to answer."""
    before = exchange(request={}, response={})
    muted = exchange("Metadata", 3, 9, request={}, response={}, latency_ns=2 * SECOND, start_ns=START_NS + SECOND)
    muted.queued, muted.muted_ns, muted.waiting = 2 * SECOND - 1_000_000, 2 * SECOND - 1_000_000, "throttled"
    assert codes(before, muted) == []
    muted.queued, muted.muted_ns, muted.waiting = 0, 0, ""
    assert codes(before, muted) == [("broker_stalled", "error")]


def test_findings_of_one_subject_are_joined_under_its_name() -> None:
    """Six kinds of requests that one broker did not answer: nobody else is concerned."""
    on = connection(1, f"{HOST}:5000", BROKER)
    on.closed_by, on.closed_ns, on.packets = "client", START_NS + 60 * SECOND, [20, 20]
    names = {
        15: "DescribeGroups",
        8: "OffsetCommit",
        22: "InitProducerId",
        19: "CreateTopics",
        26: "EndTxn",
        0: "Produce",
    }
    asked = [
        exchange(name, key, 5, request={}, latency_ns=None, outcome="unanswered", on=on) for key, name in names.items()
    ]
    events: list[Event] = [*asked, on]
    (found,) = findings(*events)
    assert found.subject == BROKER
    assert len([line for line in found.details if line.startswith("also: ") and "was not answered" in line]) == 5


@pytest.mark.parametrize(
    "api, key, version, code", [("Produce", 0, 1, "unsupported_version"), ("Metadata", 3, 1, "sasl_wanted")]
)
def test_who_asks_a_leader_has_been_answered_without_sasl(api: str, key: int, version: int, code: str) -> None:
    """Leaders are known from Metadata; the listener that gave it to this client does not want SASL."""
    on = connection(1, f"{HOST}:5000", BROKER)
    on.handshake_seen, on.packets, on.exchanges = True, [4, 3], {"unanswered": 1}
    on.closed_by, on.closed_ns = "broker", START_NS + SECOND // 10
    doctor = Doctor()
    doctor.add(exchange(api, key, version, request={}, latency_ns=None, outcome="unanswered", on=on))
    doctor.add(on)
    (found,) = [one for one in doctor.findings() if one.severity == "error"]
    assert found.code == code
    assert "answers ApiVersions" not in found.title


def test_what_does_not_fit_a_segment_is_not_blamed_on_the_size_of_messages() -> None:
    """RECORD_LIST_TOO_LARGE is about segment.bytes, MESSAGE_TOO_LARGE about max.message.bytes."""
    for code, name, setting in (
        (18, "RECORD_LIST_TOO_LARGE", "segment.bytes"),
        (10, "MESSAGE_TOO_LARGE", "max.message"),
    ):
        doctor = Doctor()
        doctor.add(exchange("Produce", 0, 9, request={}, response={}, errors=[("", code, name, False)]))
        (found,) = doctor.findings()
        assert setting in found.remedy


def used_again(after_ns: int, number: int, *, reset: bool = True, acks_0: bool = False) -> list[Event]:
    """A connection that is answered, then used again so much later, and closed at that."""
    on = connection(number, f"{HOST}:{5000 + number}", BROKER)
    on.handshake_seen, on.packets, on.bytes, on.client_id = True, [9, 8], [300, 300], "billing-1"
    on.exchanges = {"ok": 1, "unanswered": 1} | ({"no_response_expected": 50} if acks_0 else {})
    on.closed_by, on.was_reset, on.closed_ns = "broker", reset, START_NS + after_ns + SECOND // 100
    asked = exchange("Metadata", 3, 12, request={}, latency_ns=None, outcome="unanswered", on=on,
                     start_ns=START_NS + after_ns)  # fmt: skip
    return [exchange(request={}, response={}, on=on), asked, on]


def test_connections_that_are_reset_when_used_again_were_forgotten_on_the_way() -> None:
    """Each time after some silence, and at once; requests without an answer (acks=0) are no silence."""
    titles = []
    for more in ({}, {"reset": False}, {"acks_0": True}):
        doctor = Doctor()
        for event in [*used_again(7 * SECOND, 1, **more), *used_again(5 * SECOND, 2, **more)]:
            doctor.add(event)
        (found,) = doctor.findings()
        assert (found.code, found.severity) == ("closed_by_broker" if more else "idle_forgotten", "warning")
        titles.append(found.title)
    assert "are reset when they are used again after 4 s or more without traffic, twice" in titles[0]
    assert all("closed the connection after Metadata v12 twice" in title for title in titles[1:])


@pytest.mark.parametrize(
    "count, took_s, size, expected",
    [
        (3, 6, 1_000_000, [("slow_transfer", "warning")]),
        (1, 6, 1_000_000, [("slow_transfer", "info")]),
        (3, 6, 50_000_000, []),
        (3, 0, 1_000_000, []),
    ],
    ids=["slow", "once", "large", "quick"],
)
def test_a_client_that_does_not_read_is_told(
    count: int, took_s: int, size: int, expected: list[tuple[str, str]]
) -> None:
    """What passes from a response's first to its last byte is not the broker's time."""
    events: list[Event] = []
    for number in range(count):
        one = exchange(request={}, response={}, response_bytes=size, start_ns=START_NS + number * 10 * SECOND)
        assert one.response is not None
        one.response.last_ns = one.response.first_ns + took_s * SECOND
        events.append(one)
    assert codes(*events) == expected


def versions_asked(keys: list[int], number: int, exchanges: int, client: str = "billing-1") -> list[Event]:
    """A connection on which a client learns what a server offers, and how many exchanges there are in the end."""
    on = connection(number, f"{HOST}:{5000 + number}", "172.19.0.3:9093")
    on.handshake_seen, on.packets, on.bytes, on.exchanges = True, [6, 6], [100, 600], {"ok": exchanges}
    on.client_id, on.first_packet, on.first_ns, on.closed_by, on.closed_ns = client, 1, START_NS, "client", START_NS + 9
    offered = {"error_code": 0, "api_keys": [{"api_key": key, "min_version": 0, "max_version": 9} for key in keys]}
    return [exchange("ApiVersions", 18, 4, request={}, response=offered, on=on, client_id=client), on]


@pytest.mark.parametrize(
    "keys, exchanges, client, expected",
    [
        ([1, 18, 52, 62], 1, "billing-1", [("controller_dialled", "error")]),
        ([1, 18, 52, 62], 7, "admin-1", []),
        ([1, 18, 52, 62], 1, "3", []),
        ([1, 18, 52, 62], 1, "raft-client-3", []),
        ([0, 1, 3, 18], 1, "billing-1", []),
    ],
    ids=["client", "admin", "node", "quorum", "broker"],
)
def test_who_dials_a_controller_goes_no_further_than_its_versions(
    keys: list[int], exchanges: int, client: str, expected: list[tuple[str, str]]
) -> None:
    """Admin clients and nodes ask it for more, on this connection or another, and a broker has what clients need."""
    asked = versions_asked(keys, 1, exchanges, client)
    assert codes(*asked) == expected
    assert codes(*asked, *versions_asked(keys, 2, 7, client)) == []
    assert isinstance(asked[1], Connection)
    asked[1].closed_by = ""  # the capture ends first
    assert codes(*asked) == []
