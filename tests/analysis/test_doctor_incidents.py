"""Incidents as their packets tell them: what is said first, and what is not said."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis.doctor import Doctor
from kwiresniff.digest import Digest, PartitionDigest, TopicDigest
from kwiresniff.model import Connection, ConnectionAttempt, Event, Exchange
from kwiresniff.results.findings import Finding
from tests.support.exchanges import START_NS, connection, exchange

SECOND = 1_000_000_000
CLIENT, BROKER = "10.0.0.5", "10.0.0.1:9092"


def findings(*events: Event) -> list[Finding]:
    doctor = Doctor({"id-1": "orders"}.get)
    for event in events:
        doctor.add(event)
    return doctor.findings()


def codes(*events: Event) -> list[tuple[str, str]]:
    return [(one.code, one.severity) for one in findings(*events)]


def closed(number: int, by: str, at_ns: int = SECOND, broker: str = BROKER, **more: Any) -> Connection:
    """A connection that has ended."""
    made = connection(number, f"{CLIENT}:{10_000 + number}", broker)
    made.client_id, made.closed_by, made.closed_ns, made.closed_packet = "billing-1", by, START_NS + at_ns, 90 + number
    made.first_ns, made.first_packet, made.handshake_seen, made.bytes = START_NS, number, True, [200, 0]
    for name, value in more.items():
        setattr(made, name, value)
    return made


def lost(on: Connection, api: str = "Metadata", key: int = 3, version: int = 12, **more: Any) -> Exchange:
    """A request without an answer."""
    on.exchanges["unanswered"] = on.exchanges.get("unanswered", 0) + 1
    return exchange(api, key, version, latency_ns=None, outcome="unanswered", on=on, **more)


def partition(index: int, leader: int, epoch: int, **more: Any) -> dict[str, Any]:
    return {"error_code": 0, "partition_index": index, "leader_id": leader, "leader_epoch": epoch, **more}


def metadata(
    *partitions: dict[str, Any],
    hosts: dict[int, str] | None = None,
    at_ns: int = 0,
    topic: str = "orders",
    on: Connection | None = None,
    **more: Any,
) -> Exchange:
    """A Metadata answer of a cluster whose nodes listen at 10.0.0.ID:9092."""
    hosts = hosts if hosts is not None else {node: f"10.0.0.{node}" for node in (1, 2, 3)}
    body = {
        "cluster_id": "c",
        "brokers": [{"node_id": node, "host": host, "port": 9092} for node, host in hosts.items()],
        "topics": [{"error_code": 0, "name": topic, "partitions": list(partitions)}],
    }
    return exchange("Metadata", 3, 12, request={}, response=body, start_ns=START_NS + at_ns, on=on, **more)


def attempt(server: str, at_ns: int = SECOND, *, refused: bool = False, number: int = 1) -> ConnectionAttempt:
    ns = START_NS + at_ns
    return ConnectionAttempt(f"{CLIENT}:{20_000 + number}", server, 50 + number, ns, ns + 3 * SECOND, 3, refused)


# -- addresses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refused", [False, True])
def test_an_advertised_address_that_nobody_reaches_is_a_wrong_listener(refused: bool) -> None:
    """With the address dialled and the one advertised; the storms of the client are its symptoms."""
    asked = [metadata(hosts={1: "10.9.9.9"}, at_ns=number * SECOND // 20) for number in range(60)]
    found = findings(*asked, attempt("10.9.9.9:9092", refused=refused), closed(1, "client", bytes=[100, 100]))
    assert [(one.code, one.severity) for one in found] == [("advertised_listener", "error")]
    assert "10.0.0.1:9092" in found[0].title and "10.9.9.9:9092" in found[0].title
    assert found[0].numbers["dialled"] == BROKER and found[0].numbers["advertised"] == ["10.9.9.9:9092"]
    assert found[0].evidence == ((51, START_NS + SECOND),)
    assert [one.code for one in found[0].symptoms] == ["metadata_storm"]


@pytest.mark.parametrize(
    ("advertised", "client", "expected"),
    [
        ("localhost", CLIENT, ["advertised_listener"]),
        ("127.0.0.1", CLIENT, ["advertised_listener"]),
        ("127.0.0.1", "127.0.0.1", []),
        ("10.1.1.1", CLIENT, []),
    ],
)
def test_a_loopback_address_is_nobody_elses(advertised: str, client: str, expected: list[str]) -> None:
    """Without a SYN in the capture, since it never left the client's machine."""
    on = connection(1, f"{client}:5000", "127.0.0.1:9092" if client.startswith("127") else BROKER)
    assert [code for code, _ in codes(metadata(hosts={1: advertised}, on=on))] == expected


def test_a_private_address_handed_out_from_a_public_one_is_wrong() -> None:
    """A client outside cannot reach the private address behind an address translation."""
    on = connection(1, "93.184.216.1:5000", "93.184.216.34:9092")
    assert [code for code, _ in codes(metadata(hosts={1: "10.1.1.1"}, on=on))] == ["advertised_listener"]


def test_a_bootstrap_address_of_its_own_is_no_wrong_listener() -> None:
    """A load balancer is dialled, the brokers behind it are reached."""
    asked = metadata(hosts={1: "10.0.0.1"}, on=connection(1, f"{CLIENT}:5000", "10.0.0.200:9092"))
    assert findings(asked, closed(1, "client", bytes=[100, 100])) == []


@pytest.mark.parametrize(("lasting", "severity"), [(5, "warning"), (60, "error")])
def test_a_broker_that_is_away_is_told_as_such(lasting: int, severity: str) -> None:
    """The other brokers are there, and it is known by what it answered before."""
    before = exchange("ApiVersions", 18, 3, response={}, on=connection(1, f"{CLIENT}:5000", "10.0.0.2:9092"))
    refused = [attempt("10.0.0.2:9092", at * SECOND, refused=True, number=at) for at in range(1, lasting)]
    (found,) = findings(metadata(partition(0, 1, 0)), before, *refused)
    assert (found.code, found.severity, found.subject) == ("broker_unreachable", severity, "10.0.0.2:9092 (node 2)")
    assert "refuses connections" in found.title


def test_a_broker_that_served_in_between_was_away_twice() -> None:
    """A minute lies between its start and its stop, in which it was there; without that it was away all the time."""
    before = [attempt(BROKER, at_s * SECOND, refused=True) for at_s in (1, 2)]
    after = [attempt(BROKER, at_s * SECOND, refused=True) for at_s in (60, 61)]
    there = Connection(7, "10.0.0.5:50000", BROKER)
    there.first_ns, there.last_ns, there.bytes = START_NS + 9 * SECOND, START_NS + 50 * SECOND, [100, 100]
    metadata_answer = exchange("Metadata", 3, response={"brokers": []}, start_ns=START_NS + 10 * SECOND)
    twice: list[Event] = [*before, metadata_answer, there, *after]
    once: list[Event] = [metadata_answer, *before, *after]
    for events, severities in ((twice, ["warning", "info"]), (once, ["error"])):
        found = [one for one in findings(*events) if one.code == "broker_unreachable"]
        assert [one.severity for one in found] == severities
        assert all(("then is back" in one.title) == (one.severity == "info") for one in found)


def test_what_is_no_broker_is_not_told() -> None:
    """Other servers refuse connections too."""
    assert findings(*[attempt("10.0.0.50:5432", at * SECOND, refused=True, number=at) for at in range(40)]) == []


@pytest.mark.parametrize(("times", "severity"), [(2, "info"), (10, "warning"), (40, "error")])
def test_a_usual_port_where_nobody_answers_is_told_with_the_doubt(times: int, severity: str) -> None:
    """The only broker that a client knows is down: nothing in the capture says that it is one."""
    refused = [attempt("10.0.0.50:9092", at * SECOND, refused=True, number=at) for at in range(times)]
    (found,) = findings(*refused)
    assert (found.code, found.severity) == ("broker_unreachable", severity)
    assert "refuses connections" in found.title and "whether it is a broker, the capture does not show" in found.title
    served = Connection(99, f"{CLIENT}:6000", BROKER)
    served.bytes, served.first_ns, served.last_ns = [100, 100], START_NS, START_NS + SECOND
    assert [one.severity for one in findings(*refused, served)] == ["info"]


# -- TLS, SASL, versions --------------------------------------------------------------------------------------------


def test_tls_on_a_plaintext_port_and_the_reverse_are_named() -> None:
    """With the client; both ports close the connection."""
    hello = closed(1, "broker", protocol="tls", client_id=None, tls={"version": None, "alert": None})
    answered = closed(2, "broker", broker="10.0.0.1:9093", bytes=[74, 7])
    found = findings(hello, lost(answered, "ApiVersions", 18, 3), answered)
    assert [(one.code, one.subject) for one in found] == [
        ("plaintext_to_tls", "billing-1 10.0.0.5"),
        ("tls_to_plaintext", "10.0.0.5 → 10.0.0.1:9092"),
    ]
    assert all(one.severity == "error" and one.evidence for one in found)


@pytest.mark.parametrize(
    ("sender", "alert", "words"),
    [
        ("client", "unknown_ca", "does not trust the certificate"),
        ("client", "certificate_expired", "does not take the certificate"),
        ("broker", "bad_certificate", "its certificate is not taken"),
    ],
)
def test_certificates_are_told_by_the_alert(sender: str, alert: str, words: str) -> None:
    """Whose certificate it is follows from who refuses."""
    tls = {"version": "TLSv1.3", "alert": {"sender": sender, "description": alert}}
    (found,) = findings(closed(1, "client", protocol="tls", tls=tls))
    assert found.code == "untrusted_certificate"
    assert words in found.title and alert in found.title


def refused_requests(count: int, sasl: dict[str, Any] | None = None) -> list[Event]:
    """Connections that a broker closes after the first request that is not ApiVersions."""
    events: list[Event] = []
    for number in range(1, count + 1):
        on = closed(number, "broker", SECOND // 100, exchanges={"ok": 1}, bytes=[130, 700], sasl=sasl)
        events += [exchange("ApiVersions", 18, 3, response={}, on=on), lost(on), on]
    return events


def test_a_listener_that_wants_sasl_is_named() -> None:
    """The listener answers ApiVersions and closes; where a client without SASL gets answers, it is no such listener."""
    assert codes(*refused_requests(3)) == [("sasl_wanted", "error")]
    served = exchange("Heartbeat", 12, 4, response={}, on=connection(99, "10.0.0.6:1000"))
    assert codes(served, *refused_requests(3)) == [("closed_by_broker", "warning")]


def test_a_version_that_the_broker_does_not_offer_is_named() -> None:
    """Produce is named from v0 on by brokers of 4.x and taken from v3 on (KAFKA-18659)."""
    offer = [{"api_key": 0, "min_version": 0, "max_version": 13}, {"api_key": 1, "min_version": 4, "max_version": 18}]
    asked = exchange("ApiVersions", 18, 3, response={"api_keys": offer}, on=connection(9, "10.0.0.7:1000"))
    on = closed(1, "broker", SECOND // 100, exchanges={})
    (found,) = findings(asked, lost(on, "Produce", 0, 2), on)
    assert (found.code, found.subject) == ("unsupported_version", "billing-1 10.0.0.5")
    assert "Produce v2" in found.title and "closes the connection" in found.title
    on = closed(2, "broker", SECOND // 100, exchanges={})
    assert [code for code, _ in codes(asked, lost(on, "Produce", 0, 3), on)] != ["unsupported_version"]


def test_a_version_that_newer_brokers_gave_up_is_named_without_knowing_the_broker() -> None:
    """Produce v1 went with 4.0: whoever closes on it is newer, but for a broker that has answered such requests."""
    on, other = closed(1, "broker"), closed(2, "client")
    (found,) = findings(exchange("Metadata", 3, 0, response={"brokers": []}, on=other), lost(on, "Produce", 0, 1), on)
    assert (found.code, found.severity) == ("unsupported_version", "error")
    assert "v3" in found.title
    served = exchange("Produce", 0, 1, response={"responses": []}, on=other)
    assert codes(served, lost(on, "Produce", 0, 1), on) == [("closed_by_broker", "warning")]


def test_a_broker_that_closes_again_and_again_is_told_with_the_request() -> None:
    """Of a size that it does not take, it says so."""
    on = closed(1, "broker", SECOND // 100, exchanges={"ok": 5})
    large = lost(on, "Produce", 0, 9, request_bytes=150 << 20)
    (found,) = findings(exchange("Heartbeat", 12, 4, response={}), large, on)
    assert (found.code, found.severity) == ("closed_by_broker", "error")
    assert "Produce v9 of 157,286,400 bytes" in found.title and "socket.request.max.bytes" in found.remedy


def test_a_failed_authentication_names_user_mechanism_and_what_the_broker_says() -> None:
    """The connection that ends in the middle of it is its symptom."""
    on = closed(1, "client", SECOND // 2, sasl={"principal": "alice", "mechanism": "PLAIN", "outcome": "failed"})
    answer = {"error_code": 58, "error_message": "invalid credentials"}
    errors = [("error_code", 58, "SASL_AUTHENTICATION_FAILED", False)]
    refused = exchange("SaslAuthenticate", 36, 2, response=answer, errors=errors, outcome="error", on=on)
    (found,) = findings(refused, lost(on, "SaslAuthenticate", 36, 2), on)
    assert found.code == "sasl_authentication_failed"
    assert found.numbers["users"] == ["alice"] and found.numbers["mechanisms"] == ["PLAIN"]
    assert found.details == ("the broker says: invalid credentials",)
    assert [one.code for one in found.symptoms] == ["unanswered"]


# -- brokers and leaders --------------------------------------------------------------------------------------------


def produce(at_ns: int, index: int = 0, *, on: Connection | None = None, **more: Any) -> Exchange:
    batch = {"magic": 2, "records_count": 10, "size_bytes": 1000, "producer_id": 7, "producer_epoch": 0}
    body = {"acks": -1, "topic_data": [{"name": "orders", "partition_data": [{"index": index, "records": [batch]}]}]}
    return exchange("Produce", 0, 9, request=body, start_ns=START_NS + at_ns, on=on, **{"response": {}, **more})


def test_a_stall_is_one_broker_and_its_slow_answers_are_symptoms() -> None:
    """From the last sign of it to the first; the requests behind each other do not count as many."""
    on = connection()
    before = exchange("Heartbeat", 12, 4, response={}, on=on)
    stuck = exchange(
        "Heartbeat", 12, 4, response={}, on=on, start_ns=START_NS + SECOND, latency_ns=4 * SECOND, queued=0, held=0
    )
    behind = produce(2 * SECOND, on=on, latency_ns=3 * SECOND + 1_000_000, queued=3 * SECOND, held=0)
    (found,) = findings(before, stuck, behind)
    assert (found.code, found.severity, found.subject) == ("broker_stalled", "error", BROKER)
    assert (found.first_ns, found.last_ns) == (START_NS + SECOND + 10_000, START_NS + 5 * SECOND + 10_000)
    assert [one.code for one in found.symptoms] == ["slow"]


def test_waiting_for_replicas_is_no_stall_of_the_broker_that_waits() -> None:
    """The one that answered nothing itself is named, the other is counted."""
    events: list[Event] = []
    for host in ("10.0.0.1", "10.0.0.2"):
        events.append(exchange("Heartbeat", 12, 4, response={}, on=connection(1, f"{CLIENT}:1", f"{host}:9092")))
    waits = produce(SECOND, on=connection(2, f"{CLIENT}:2", "10.0.0.1:9092"), latency_ns=5 * SECOND)
    assert [one for one in findings(*events, waits) if one.code == "broker_stalled"] == []
    silent = exchange(
        "Metadata", 3, 9, response={}, start_ns=START_NS + SECOND, latency_ns=5 * SECOND,
        on=connection(3, f"{CLIENT}:3", "10.0.0.2:9092"),
    )  # fmt: skip
    (found,) = findings(*events, waits, silent)
    assert found.code == "broker_stalled" and "2 brokers stalled" in found.title
    assert found.numbers["brokers"] == ["10.0.0.2:9092"] and found.numbers["waiting_brokers"] == ["10.0.0.1:9092"]


def not_leader(at_ns: int, broker: str = "10.0.0.2:9092", leader: int = -1, epoch: int = -1) -> Exchange:
    answer = {"index": 0, "error_code": 6, "current_leader": {"leader_id": leader, "leader_epoch": epoch}}
    body = {"responses": [{"name": "orders", "partition_responses": [answer]}]}
    errors = [("responses[0].partition_responses[0].error_code", 6, "NOT_LEADER_OR_FOLLOWER", True)]
    on = connection(2, f"{CLIENT}:2", broker)
    return produce(at_ns, on=on, response=body, errors=errors, outcome="error")


@pytest.mark.parametrize("told_by", ["metadata", "the answer"])
def test_a_leader_change_has_partitions_from_to_and_how_long(told_by: str) -> None:
    """Slow answers of the new leader meanwhile are its symptoms."""
    events: list[Event] = [metadata(partition(0, 2, 4), partition(1, 3, 4))]
    if told_by == "metadata":
        events += [not_leader(SECOND), metadata(partition(0, 3, 5), partition(1, 3, 4), at_ns=SECOND + 1)]
    else:
        events += [not_leader(SECOND, leader=3, epoch=5)]
    new = connection(3, f"{CLIENT}:3", "10.0.0.3:9092")
    events += [produce(SECOND + SECOND // 2, on=new, latency_ns=2 * SECOND, queued=0, held=0)]
    (found,) = findings(*events)
    assert (found.code, found.severity, found.subject) == ("leader_change", "warning", "orders-0")
    assert "from node 2 (10.0.0.2:9092) to node 3 (10.0.0.3:9092)" in found.title
    assert 2 * SECOND < found.numbers["longest_ns"] < 3 * SECOND
    assert [one.code for one in found.symptoms] == ["slow"]


def test_each_of_two_changes_has_its_own_wait() -> None:
    """A rolling restart moves a partition there and back; in between its clients were served."""
    there, back = connection(3, f"{CLIENT}:3", "10.0.0.3:9092"), connection(4, f"{CLIENT}:4", "10.0.0.2:9092")
    events = [
        metadata(partition(0, 2, 4)),
        not_leader(SECOND, leader=3, epoch=5),
        produce(SECOND + SECOND // 5, on=there),
        produce(20 * SECOND, on=there),
        not_leader(26 * SECOND, "10.0.0.3:9092", leader=2, epoch=6),
        produce(26 * SECOND + SECOND // 2, on=back),
    ]
    found = sorted(findings(*events), key=lambda one: one.first_ns)
    assert [(one.code, one.severity) for one in found] == [("leader_change", "info")] * 2
    assert [round(one.numbers["longest_ns"] / SECOND, 1) for one in found] == [0.2, 0.5]


def test_an_answer_of_before_is_no_change_back() -> None:
    """A broker that is behind tells an older leader epoch; and two clusters may have a topic of one name."""
    moved = [metadata(partition(0, 2, 4)), metadata(partition(0, 3, 5)), metadata(partition(0, 2, 4))]
    (found,) = findings(*moved)
    assert (found.code, found.severity, found.numbers["partitions"]) == ("leader_change", "info", ["orders-0"])
    other = metadata(partition(0, 1, 9), on=connection(8, f"{CLIENT}:8", "10.7.0.1:9092"), hosts={1: "10.7.0.1"})
    assert other.response is not None and other.response.body is not None
    other.response.body["cluster_id"] = "another"
    assert findings(moved[0], other) == []


def test_a_client_that_never_learns_has_stale_metadata() -> None:
    """The client goes on asking the old leader although Metadata has named the new one."""
    events: list[Event] = [metadata(partition(0, 3, 5))]
    events += [not_leader(at * SECOND) for at in range(12)]
    found = {one.code: one for one in findings(*events)}
    assert found["stale_metadata"].subject == "billing-1 10.0.0.5"
    assert "orders-0, which node 3 (10.0.0.3:9092) leads" in found["stale_metadata"].title


def test_too_few_replicas_name_the_broker_that_left() -> None:
    """By elimination: the others answer. What the producer waited for in vain is its symptom."""
    replicas = {"replica_nodes": [1, 2, 3], "isr_nodes": [1, 2, 3]}
    on = closed(1, "client", 20 * SECOND)
    waited = lost(on, "Produce", 0, 9, start_ns=START_NS + SECOND)
    answer = {"responses": [{"name": "orders", "partition_responses": [{"index": 0, "error_code": 19}]}]}
    errors = [("responses[0].partition_responses[0].error_code", 19, "NOT_ENOUGH_REPLICAS", True)]
    refused = produce(22 * SECOND, response=answer, errors=errors, outcome="error", on=connection(2, f"{CLIENT}:2"))
    second = exchange(
        "ApiVersions", 18, 3, response={}, start_ns=START_NS + 22 * SECOND,
        on=connection(3, f"{CLIENT}:3", "10.0.0.2:9092"),
    )  # fmt: skip
    (found,) = findings(metadata(partition(0, 1, 0, **replicas)), waited, on, second, refused)
    assert (found.code, found.numbers["missing"]) == ("not_enough_replicas", [3])
    assert "orders-0" in found.title and "node 3 (10.0.0.3:9092)" in found.title
    assert [one.code for one in found.symptoms] == ["unanswered"]


# -- topics, offsets, producers -------------------------------------------------------------------------------------


def unknown(at_ns: int, client_id: str = "billing-1", api: str = "Metadata", key: int = 3) -> Exchange:
    body = {"topics": [{"error_code": 3, "name": "orders", "partitions": []}]}
    errors = [("topics[0].error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION", True)]
    return exchange(
        api, key, 12, response=body, errors=errors, outcome="error", start_ns=START_NS + at_ns, client_id=client_id
    )


def test_a_topic_that_is_produced_to_and_does_not_exist_is_an_error() -> None:
    """Who asks again and again and does not consume means to produce; a consumer is warned, a look is nothing."""
    asked = [unknown(number * SECOND) for number in range(5)]
    (found,) = findings(*asked)
    assert (found.code, found.severity) == ("unknown_topic_or_partition", "error")
    assert "topic orders" in found.title and "nothing is delivered" in found.title
    assert found.named("topic") == ["orders"]
    joins = exchange("JoinGroup", 11, 9, request={"group_id": "g"}, response={"generation_id": 1, "member_id": "m"})
    assert codes(joins, *asked) == [("unknown_topic_or_partition", "warning")]
    for key_type, severity in ((0, "warning"), (1, "error")):  # the coordinator of a group, or of a transaction
        finds = exchange("FindCoordinator", 10, 4, request={"key_type": key_type}, response={})
        assert codes(finds, *asked) == [("unknown_topic_or_partition", severity)]
    assert codes(unknown(0)) == [("unknown_topic_or_partition", "info")]
    assert codes(*asked, metadata(partition(0, 1, 0), at_ns=9 * SECOND)) == [("unknown_topic_or_partition", "info")]


def test_a_topic_deleted_in_use_names_who_did_it() -> None:
    """The finding also names the clients that still ask for the topic."""
    on = connection(5, "10.0.0.9:1000")
    on.sasl = {"principal": "mallory"}
    deleted = {"responses": [{"name": "orders", "error_code": 0}]}
    delete = exchange("DeleteTopics", 20, 6, response=deleted, client_id="cleanup", on=on, start_ns=START_NS + SECOND)
    (found,) = findings(metadata(partition(0, 1, 0)), delete, *[unknown(at * SECOND) for at in (2, 3, 4)])
    assert (found.code, found.severity, found.subject) == ("topic_deleted", "error", "topic orders")
    assert "by cleanup 10.0.0.9, user mallory" in found.title and "billing-1 10.0.0.5" in found.title
    (found,) = findings(metadata(partition(0, 1, 0)), *[unknown(at * SECOND) for at in (2, 3, 4)])
    assert found.code == "topic_deleted" and "by whom is not in the capture" in found.title


def test_an_offset_out_of_range_has_the_offset_and_the_range() -> None:
    """The ends come from ListOffsets, or from a later fetch."""
    asked = {"topics": [{"topic_id": "id-1", "partitions": [{"partition": 2, "fetch_offset": 999}]}]}
    answer = {"responses": [{"topic_id": "id-1", "partitions": [{"partition_index": 2, "error_code": 1}]}]}
    errors = [("responses[0].partitions[0].error_code", 1, "OFFSET_OUT_OF_RANGE", False)]
    failed = exchange(request=asked, response=answer, errors=errors, outcome="error")
    later = {"partition_index": 2, "error_code": 0, "log_start_offset": 10, "high_watermark": 500, "records": []}
    fetched = exchange(request=asked, response={"responses": [{"topic_id": "id-1", "partitions": [later]}]})
    (found,) = findings(failed, fetched)
    assert found.code == "offset_out_of_range"
    assert "orders-2 from offset 999; the log holds 10 to 500" in found.title
    told = {"partition": "orders-2", "offset": 999, "log_start_offset": 10, "log_end_offset": 500}
    assert found.numbers["partitions"] == [told]
    (found,) = findings(failed)
    assert "its range is not in the capture" in found.title


def test_fencing_names_the_id_and_both_producers() -> None:
    """By the newer epoch; the fenced one is told by its batch."""
    init = {"transactional_id": "pay"}
    first = exchange("InitProducerId", 22, 4, request=init, response={"producer_id": 7, "producer_epoch": 0})
    second = exchange(
        "InitProducerId", 22, 4, request=init, response={"producer_id": 7, "producer_epoch": 1}, client_id="other"
    )
    answer = {"responses": [{"name": "orders", "partition_responses": [{"index": 0, "error_code": 47}]}]}
    errors = [("responses[0].partition_responses[0].error_code", 47, "INVALID_PRODUCER_EPOCH", False)]
    (found,) = findings(first, second, produce(SECOND, response=answer, errors=errors, outcome="error"))
    assert (found.code, found.subject) == ("producer_fenced", "transactional id pay")
    assert "billing-1 10.0.0.5 (producer 7 epoch 0) was fenced by other 10.0.0.5" in found.title
    assert found.numbers["transactional_id"] == "pay" and found.numbers["by"] == "other 10.0.0.5"


def test_a_hot_partition_is_told_over_what_can_be_seen() -> None:
    """Partitions of brokers that are not in the capture prove nothing."""
    spread = metadata(*[partition(index, 1, 0) for index in range(6)])
    sent = [produce(number * SECOND // 50, 0 if number % 10 else 1) for number in range(1000)]
    (found,) = findings(spread, *sent)
    assert (found.code, found.subject) == ("hot_partition", "orders-0")
    assert found.numbers["partitions"] == 6 and found.numbers["share"] > 0.8
    elsewhere = metadata(*[partition(index, 1 if index < 2 else 2, 0) for index in range(6)])
    assert findings(elsewhere, *sent) == []
    even = [produce(number * SECOND // 50, number // 8 % 6) for number in range(1000)]
    assert findings(spread, *even) == []


def test_partitions_are_as_hot_by_digests_as_by_bodies() -> None:
    """A topic by its name or by an id; a digest that leaves out a batch that is cut does not count."""

    def digested(number: int, index: int, name: str, *, is_cut: bool = False) -> Exchange:
        made = produce(number * SECOND // 50, index)
        assert made.request is not None
        size = made.request.body["topic_data"][0]["partition_data"][0]["records"][0]["size_bytes"]  # type: ignore[index]
        part, topic, digest = PartitionDigest(), TopicDigest(), Digest()
        part.index, part.size_bytes, part.batches = index, size, 1
        topic.name, topic.is_id, topic.partitions = name, name == "id-1", [part]
        digest.parts, digest.batches, digest.records, digest.is_cut = [topic], 1, 100, is_cut
        made.request.digest = digest
        if not is_cut:
            made.request.body = None
        return made

    spread = metadata(*[partition(index, 1, 0) for index in range(6)])
    (by_body,) = findings(spread, *[produce(number * SECOND // 50, 0 if number % 10 else 1) for number in range(1000)])
    for name in ("orders", "id-1"):
        sent = [digested(number, 0 if number % 10 else 1, name) for number in range(1000)]
        assert findings(spread, *sent) == [by_body]
    cut = [digested(number, 0 if number % 10 else 1, "other", is_cut=True) for number in range(1000)]
    assert findings(spread, *cut) == [by_body]


# -- groups ---------------------------------------------------------------------------------------------------------


def beat(
    at: int, client_id: str, asked: int, epoch: int, api: str = "ConsumerGroupHeartbeat", key: int = 68
) -> Exchange:
    request = {"group_id": "g", "member_id": client_id, "member_epoch": asked}
    response = {"member_id": client_id, "member_epoch": epoch}
    return exchange(
        api, key, 0, request=request, response=response, client_id=client_id, start_ns=START_NS + at * SECOND
    )


@pytest.mark.parametrize(
    ("api", "key", "protocol"),
    [
        ("ConsumerGroupHeartbeat", 68, "consumer"),
        ("ShareGroupHeartbeat", 76, "share"),
        ("StreamsGroupHeartbeat", 88, "streams"),
    ],
)
def test_churn_in_groups_of_the_newer_protocols_is_told_with_each_member(api: str, key: int, protocol: str) -> None:
    """A group that only starts and grows is none."""
    grows = [beat(at, f"m{at}", 0, at + 1, api, key) for at in range(8)]
    assert findings(*grows) == []
    churn: list[Event] = []
    for at in range(0, 12, 2):
        churn += [beat(at, "flaky", 0, at + 1, api, key), beat(at + 1, "flaky", -1, -1, api, key)]
        churn += [beat(at + 1, "steady", at, at + 2, api, key)]
    (found,) = findings(*churn)
    assert (found.code, found.subject, found.numbers["protocol"]) == ("rebalances", "group g", protocol)
    assert "epochs" in found.title and "6 leaves" in found.title
    assert found.details[0] == "flaky 10.0.0.5 joined 6 times, left 6 times, came back 5 times on the same connection"


def test_a_member_that_polls_too_late_is_named_with_its_interval() -> None:
    """The member leaves when max.poll.interval.ms is over, and comes back on the same connection."""
    events: list[Event] = []
    for number in range(4):
        at = number * 20 * SECOND
        asked = {"group_id": "g", "rebalance_timeout_ms": 6_000}
        joined = {"generation_id": number * 2 + 1, "member_id": f"m-{number}"}
        events.append(exchange("JoinGroup", 11, 7, request=asked, response=joined, start_ns=START_NS + at))
        left = {"group_id": "g", "members": [{"member_id": f"m-{number}"}]}
        events.append(exchange("LeaveGroup", 13, 4, request=left, response={}, start_ns=START_NS + at + 7 * SECOND))
    (found,) = findings(*events)
    assert found.code == "rebalances"
    assert "billing-1 10.0.0.5 was longer between polls (7 s) than max.poll.interval.ms (6 s)" in found.title


# -- the network ----------------------------------------------------------------------------------------------------


def join(client_id: str, asked_s: float, waited_s: float, generation: int = 7) -> Exchange:
    request = {"group_id": "packers", "member_id": client_id, "rebalance_timeout_ms": 30_000}
    return exchange(
        "JoinGroup", 11, 9, request=request, response={"generation_id": generation, "member_id": client_id},
        client_id=client_id, start_ns=START_NS + int(asked_s * SECOND), latency_ns=int(waited_s * SECOND),
        waiting="rebalance" if waited_s else "",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (join("slow", 12, 0.1), "it waited for slow 10.0.0.5, which joined last (its max.poll.interval.ms is 30 s)"),
        (join("second", 1, 11), "it waited for a member that did not come back in time"),
    ],
)
def test_a_long_rebalance_names_the_member_that_it_waited_for(last: Exchange, words: str) -> None:
    """The one that joined last; where that one waited for long as well, somebody else did not come back."""
    (found,) = findings(join("first", 0, 12.1), last)
    assert (found.code, found.severity) == ("long_rebalance", "warning")
    assert words in found.title


def test_syns_sent_again_are_told_by_broker() -> None:
    """When they are more than one in twenty."""
    late = [closed(number, "client", bytes=[9, 9], syn_retransmits=1) for number in range(3)]
    (found,) = findings(*late)
    assert (found.code, found.severity, found.subject) == ("syn_retransmits", "warning", BROKER)
    others = [closed(100 + number, "client", number * SECOND, bytes=[9, 9]) for number in range(100)]
    for one in others:
        one.first_ns = one.closed_ns * 1
        one.client_id = f"c{one.id}"
    assert [code for code, _ in codes(*late, *others)] == []


def test_more_than_a_few_findings_alike_are_one() -> None:
    """With all whom they concern."""
    denied = [("error_code", 29, "TOPIC_AUTHORIZATION_FAILED", False)]
    events = [exchange(client_id=f"c{number}", errors=denied, outcome="error") for number in range(8)]
    (found,) = findings(*events)
    assert found.count == 8 and found.subject == "c0 10.0.0.5 and 7 others"
    assert len(found.numbers["subjects"]) == 8 and len(found.named("client")) == 8
