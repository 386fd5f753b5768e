"""The doctor's findings, each at the edge between a finding and none."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kwiresniff.analysis.doctor import Doctor, Observer
from kwiresniff.analysis.doctor.error_meanings import MEANINGS
from kwiresniff.digest import Digest
from kwiresniff.model import Connection, Exchange, Problem
from kwiresniff.schema import error as known_error
from tests.support.exchanges import START_NS, connection, exchange, produced
from tests.support.incidents import SECOND, codes, failed, findings, many


def test_a_quiet_conversation_has_no_findings() -> None:
    assert findings(*many(1_000, SECOND // 10), connection()) == []


@pytest.mark.parametrize(("count", "severity"), [(3, "info"), (4, "warning")])
def test_a_few_retriable_errors_are_normal(count: int, severity: str) -> None:
    """Named are the partition that the code stands beneath, the broker's own words, and where it is."""
    answer = failed("KAFKA_STORAGE_ERROR", 56, "a", 2, error_message="disk is gone")
    answer["errors"] = [(path, code, "LISTENER_NOT_FOUND", True) for path, code, _, _ in answer["errors"]]
    (found,) = findings(*many(count, SECOND, **answer, request={"topics": [{"topic": "a"}, {"topic": "b"}]}))
    assert (found.code, found.severity, found.count) == ("listener_not_found", "info", count)
    answer["errors"] = [(path, code, "LEADER_NOT_AVAILABLE", True) for path, code, _, _ in answer["errors"]]
    (found,) = findings(*many(count, SECOND, **answer, request={"topics": [{"topic": "a"}, {"topic": "b"}]}))
    assert (found.code, found.severity, found.count) == ("leader_not_available", severity, count)
    assert found.subject == "billing-1 10.0.0.5"
    assert found.numbers["concerns"] == ["Fetch", "a-2"]
    assert found.named("topic") == ["a"]
    assert found.details == ("the broker says: disk is gone",)
    assert found.evidence[0] == (3, START_NS + 10_000 + 1_000_000)


@pytest.mark.parametrize(
    ("message", "words"),
    [("Group g is not a share group.", "a group of another kind"), ("Group g not found.", "does not exist")],
)
def test_a_group_of_another_kind_is_no_group_that_is_missing(message: str, words: str) -> None:
    """Only the message beside the code shows it, which Kafka 4 has for both."""
    (found,) = findings(
        exchange(
            "ShareGroupHeartbeat", 76, 1, request={"group_id": "g"}, response={"error_message": message},
            errors=[("error_code", 69, "GROUP_ID_NOT_FOUND", False)], outcome="error",
        )
    )  # fmt: skip
    assert words in found.title and message in found.details[0]
    described = exchange(
        "ShareGroupDescribe", 77, 1, request={"group_ids": ["g"]}, response={"groups": [{"error_message": message}]},
        errors=[("groups[0].error_code", 69, "GROUP_ID_NOT_FOUND", False)], outcome="error",
    )  # fmt: skip
    assert [one.severity for one in findings(described)] == ["info"]


@pytest.mark.parametrize(
    ("api", "key", "error", "request_", "words"),
    [
        ("JoinGroup", 11, (26, "INVALID_SESSION_TIMEOUT"), {"session_timeout_ms": 1000}, ": session.timeout.ms=1000"),
        (
            "InitProducerId", 22, (50, "INVALID_TRANSACTION_TIMEOUT"), {"transaction_timeout_ms": 3_600_000},
            ": transaction.timeout.ms=3600000",
        ),
    ],
)  # fmt: skip
def test_a_setting_that_is_refused_is_told_with_its_value(
    api: str, key: int, error: tuple[int, str], request_: dict[str, int], words: str
) -> None:
    """As the request has it."""
    errors, answer = [("error_code", *error, False)], {"error_code": error[0]}
    (found,) = findings(exchange(api, key, 4, request=request_, response=answer, errors=errors, outcome="error"))
    assert found.severity == "error" and found.title.endswith(words)


def test_a_topic_that_may_not_be_named_so_is_told_with_its_name() -> None:
    """INVALID_TOPIC_EXCEPTION stands beneath it in Metadata."""
    body = {"topics": [{"error_code": 17, "name": "orders/eu", "partitions": []}]}
    errors = [("topics[0].error_code", 17, "INVALID_TOPIC_EXCEPTION", False)]
    (found,) = findings(exchange("Metadata", 3, 12, request={}, response=body, errors=errors, outcome="error"))
    assert found.title.endswith("as none may be named: orders/eu")


QUORUM = failed("NOT_LEADER_OR_FOLLOWER", 6, "__cluster_metadata")


@pytest.mark.parametrize(
    ("count", "every_ns", "severity"),
    [(500, SECOND // 100, "info"), (11, SECOND, "info"), (12, SECOND, "warning"), (5, 60 * SECOND, "info")],
)
def test_an_election_of_controllers_is_one_finding_and_normal_unless_it_does_not_end(
    count: int, every_ns: int, severity: str
) -> None:
    """All that look for the leader are counted together, however many ask whomever."""
    asked = many(count, every_ns, **QUORUM)
    for number, one in enumerate(asked):
        one.client_id = f"raft-client-{number % 2}"
    (found,) = findings(*asked)
    assert (found.code, found.subject, found.severity) == ("quorum_election", "metadata quorum", severity)
    assert found.count == count
    assert found.numbers["concerns"] == ["raft-client-0 10.0.0.5", "raft-client-1 10.0.0.5"]


def test_the_same_code_twice_in_an_answer_is_one_occurrence() -> None:
    denied = [(f"topics[{at}].error_code", 29, "TOPIC_AUTHORIZATION_FAILED", False) for at in range(3)]
    assert findings(exchange(errors=denied, outcome="error"))[0].count == 1


@pytest.mark.parametrize("name", ["MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS"])
def test_steps_of_the_protocol_are_no_findings(name: str) -> None:
    assert findings(exchange("JoinGroup", 11, 5, errors=[("error_code", 79, name, True)], outcome="error")) == []


def test_an_answer_to_a_version_too_new_is_only_normal_for_api_versions() -> None:
    errors = [("error_code", 35, "UNSUPPORTED_VERSION", False)]
    assert codes(exchange("ApiVersions", 18, 5, errors=errors, outcome="error")) == []
    assert codes(exchange("Fetch", 1, 3, errors=errors, outcome="error")) == [("unsupported_version", "error")]


def test_every_error_with_a_meaning_is_one_of_kafkas() -> None:
    names = {known_error(code).name for code in range(-1, 200)}
    assert set(MEANINGS) <= names


@pytest.mark.parametrize(
    ("latencies", "severity"),
    [
        ([2 * SECOND] * 2, "info"),
        ([2 * SECOND] * 3, "warning"),
        ([6 * SECOND], "warning"),
        ([2 * SECOND] * 25, "error"),
        ([1_000_000] * 400 + [2 * SECOND] * 3, "warning"),
    ],
)
def test_slowness_is_an_error_when_it_is_the_rule(latencies: list[int], severity: str) -> None:
    """Once or twice two seconds is what happens when brokers start."""
    (found,) = findings(*[exchange("AddOffsetsToTxn", 25, 3, latency_ns=ns, queued=0, held=0) for ns in latencies])
    assert (found.code, found.severity, found.subject) == ("slow", severity, "10.0.0.1:9092")
    assert found.numbers["worst_ns"] == max(latencies)


def test_deliberate_waits_and_queues_are_not_slow() -> None:
    """A request that waits behind others of its connection, or is held back, does not make a broker slow."""
    held = [exchange(latency_ns=5 * SECOND, queued=0, held=5 * SECOND, waiting="long poll") for _ in range(50)]
    behind = [exchange("Produce", 0, 9, latency_ns=5 * SECOND, queued=5 * SECOND - 1, held=0) for _ in range(50)]
    (found,) = findings(*held, *behind)
    assert (found.code, found.severity, found.count) == ("own_queue", "info", 50)
    assert found.numbers == {"mean_queued_ns": 5 * SECOND - 1, "mean_broker_ns": 1}
    assert findings(*held, *behind[:19]) == []
    muted = exchange("Produce", 0, 9, queued=0, held=0, on=behind[0].connection, response={"throttle_time_ms": 1})
    assert "own_queue" not in [one.code for one in findings(muted, *behind)]
    stalled = exchange("Produce", 0, 9, latency_ns=4 * SECOND, queued=0, held=0, on=behind[0].connection)
    assert "own_queue" not in [one.code for one in findings(stalled, *behind)]


def ended(number: int, closed_by: str, at_ns: int, **more: Any) -> Connection:
    """A connection that has ended, with one request that was not answered."""
    made = connection(number, f"10.0.0.5:{10_000 + number}")
    made.client_id, made.closed_by, made.closed_ns = "billing-1", closed_by, START_NS + at_ns if closed_by else 0
    made.first_ns, made.first_packet, made.handshake_seen = START_NS, number, True
    made.bytes, made.exchanges = [200, 0], {"unanswered": 1}
    for name, value in more.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("api", "key", "closed_by", "after_ns", "severities"),
    [
        ("Produce", 0, "", 10 * SECOND, ["error"]),
        ("Produce", 0, "", SECOND, []),
        ("Produce", 0, "client", 10 * SECOND, ["error"]),
        ("Produce", 0, "client", SECOND // 2, []),
        ("StopReplica", 5, "", 10 * SECOND, ["warning"]),
    ],
)
def test_unanswered_is_an_error_unless_there_was_no_time(
    api: str, key: int, closed_by: str, after_ns: int, severities: list[str]
) -> None:
    """By how long the client, or the capture, waited for the answer; what a client leaves behind is no news."""
    on = ended(1, closed_by, after_ns)
    lost = exchange(api, key, 3, latency_ns=None, outcome="unanswered", on=on)
    assert codes(lost, exchange(start_ns=START_NS + after_ns), on) == [
        ("unanswered", severity) for severity in severities
    ]


@pytest.mark.parametrize(("after_ns", "expected"), [(2 * SECOND, []), (20 * SECOND, ["unanswered"])])
def test_a_long_poll_under_way_is_ordinary(after_ns: int, expected: list[str]) -> None:
    """A consumer that closes leaves one behind, as long as the broker was allowed to wait."""
    on = ended(1, "client", after_ns, closed_ns=START_NS + after_ns)
    request = {"max_wait_ms": 5_000, "min_bytes": 1, "topics": []}
    lost = exchange(latency_ns=None, outcome="unanswered", on=on, request=request)
    answered = [exchange(start_ns=START_NS + after_ns * part // 10) for part in range(11)]
    assert [code for code, _ in codes(lost, *answered, on)] == expected


def test_throttling_is_told_with_user_and_cost() -> None:
    """What two answers of a connection cost is not counted twice where their mutes overlap."""
    on = connection()
    on.sasl = {"principal": "alice"}
    first = exchange("Produce", 0, 9, response={"throttle_time_ms": 900}, on=on)
    second = exchange("Produce", 0, 9, response={"throttle_time_ms": 500}, on=on, start_ns=START_NS + SECOND // 2)
    (found,) = findings(first, second, exchange(response={}), exchange(start_ns=START_NS + 100 * SECOND))
    assert (found.code, found.severity, found.count) == ("throttled", "warning", 2)
    assert (found.numbers["user"], found.numbers["longest_ms"], found.numbers["total_ms"]) == ("alice", 900, 1400)
    assert found.numbers["lost_ns"] == SECOND
    assert "produce quota" in found.title and "alice" in found.title


def test_clients_that_share_a_quota_are_named_to_each_other() -> None:
    """By user and client id, from two hosts; another client id has a quota of its own."""
    clients, response = ((5, "billing-1"), (6, "billing-1"), (7, "other")), {"throttle_time_ms": 900}
    told = [
        exchange("Produce", 0, 9, response=response, on=connection(number, f"10.0.0.{number}:1"), client_id=client)
        for number, client in clients
    ]
    details = {one.subject: one.details for one in findings(*told, exchange(start_ns=START_NS + 100 * SECOND))}
    assert details["billing-1 10.0.0.5"] == (
        "10.0.0.6 has the same user and client id billing-1, and shares its quota",
    )
    assert details["other 10.0.0.7"] == ()


@pytest.mark.parametrize(
    ("api", "key", "every_ns", "expected"),
    [
        ("Metadata", 3, SECOND // 10, ["metadata_storm"]),
        ("Metadata", 3, SECOND, []),
        ("OffsetCommit", 8, SECOND // 50, ["commit_storm"]),
        ("OffsetCommit", 8, SECOND // 5, []),
        ("OffsetCommit", 8, SECOND // 25, []),
    ],
)
def test_asking_too_often_is_waste(api: str, key: int, every_ns: int, expected: list[str]) -> None:
    found = findings(*many(120, every_ns, lambda **more: exchange(api, key, 8, **more)))
    assert [finding.code for finding in found] == expected


def produce(*batches: dict[str, Any], acks: int = -1, **more: Any) -> Exchange:
    return produced(list(batches), acks=acks, **more)


@pytest.mark.parametrize(("records", "expected"), [(1, ["small_batches"]), (2, [])])
def test_tiny_batches_are_told_when_there_are_many(records: int, expected: list[str]) -> None:
    one = {"magic": 2, "records_count": records}
    assert [finding.code for finding in findings(*[produce(one) for _ in range(500)])] == expected
    assert findings(*[produce(one) for _ in range(499)]) == []


def test_records_that_are_spread_over_partitions_one_by_one_are_tiny_batches() -> None:
    """Four batches of one record in each request; with two records in each they are none."""
    for records, expected in ((1, ["small_batches"]), (2, [])):
        made = [produce({"magic": 2, "records_count": 4 * records}) for _ in range(125)]
        for one in made:
            assert one.request is not None
            one.request.digest = Digest()
            one.request.digest.batches, one.request.digest.records = 4, 4 * records
        assert [finding.code for finding in findings(*made)] == expected


def test_records_that_come_one_by_one_and_not_often_are_no_tiny_batches() -> None:
    """Twenty a second: nothing else is there that could go along."""
    one = {"magic": 2, "records_count": 1}
    assert findings(*[produce(one, start_ns=START_NS + number * SECOND // 20) for number in range(600)]) == []


def test_old_formats_and_missing_acknowledgements_are_told() -> None:
    one = produce({"magic": 1, "compression": "gzip"}, acks=0)
    assert codes(one) == [("acks_0", "info"), ("old_message_format", "info")]
    assert codes(*[one] * 100)[0] == ("old_message_format", "warning")


@pytest.mark.parametrize(
    ("took_ms", "every_ms", "records", "expected"),
    [
        pytest.param(25, 30, 1, [("one_at_a_time", "info")], id="one after the other"),
        pytest.param(25, 60, 1, [], id="with pauses in between"),
        pytest.param(25, 10, 1, [], id="several under way"),
        pytest.param(2, 2, 1, [], id="answers that come at once"),
        pytest.param(25, 30, 5, [], id="batches"),
    ],
)
def test_a_producer_that_waits_for_each_record_is_told(
    took_ms: int, every_ms: int, records: int, expected: list[tuple[str, str]]
) -> None:
    """Seen must be that nothing else is under way, and that it waits for most of its time."""
    one, ms = {"magic": 2, "records_count": records}, SECOND // 1000
    sent = [produce(one, start_ns=START_NS + n * every_ms * ms, latency_ns=took_ms * ms) for n in range(200)]
    found = [one for one in findings(*sent) if one.code != "small_batches"]
    assert [(one.code, one.severity) for one in found] == expected
    assert all("25 ms each" in one.title and "40 records a second" in one.title for one in found)


def test_a_producer_that_waits_for_each_record_on_a_long_path_is_told_before_the_path() -> None:
    """The path takes 20 of the 25 ms."""
    on = ended(1, "client", 9 * SECOND, path_ns=20_000_000, exchanges={"ok": 200})
    one, ms = {"magic": 2, "records_count": 1}, SECOND // 1000
    sent = [produce(one, start_ns=START_NS + n * 30 * ms, latency_ns=25 * ms, on=on) for n in range(200)]
    (found,) = [one for one in findings(*sent, on) if one.code != "small_batches"]
    assert (found.code, found.severity) == ("one_at_a_time", "warning")
    assert "of which the path takes 20 ms" in found.title
    assert [one.code for one in found.symptoms] == ["long_path"]


def test_fetches_that_bring_nothing_are_told_when_they_come_fast() -> None:
    nothing = {"responses": [{"topic": "a", "partitions": [{"partition_index": 0, "records": []}]}]}
    assert codes(*many(600, SECOND // 100, response=nothing)) == [("empty_fetches", "info")]
    assert codes(*many(600, SECOND // 400, response=nothing)) == [("empty_fetches", "warning")]
    assert codes(*many(600, SECOND // 2, response=nothing)) == []
    something = {"responses": [{"topic": "a", "partitions": [{"records": [{"magic": 2}]}]}]}
    assert codes(*many(600, SECOND // 100, response=something)) == []


@pytest.mark.parametrize(
    ("max_wait_ms", "took_ms", "words"),
    [
        (0, 1, "fetch.max.wait.ms"),
        (1, 2, "fetch.max.wait.ms"),
        (400, 402, "fetch.max.wait.ms"),
        (400, 1, "min.insync.replicas"),
    ],
)
def test_fetches_that_the_broker_does_not_hold_are_no_fault_of_the_consumer(
    max_wait_ms: int, took_ms: int, words: str
) -> None:
    """Where they may wait and the broker answers long before that, a longer wait would change nothing."""
    nothing = {"responses": [{"topic": "a", "partitions": [{"partition_index": 0, "records": []}]}]}
    asked, took_ns = {"max_wait_ms": max_wait_ms}, took_ms * SECOND // 1000
    (found,) = findings(*many(600, SECOND // 100, request=asked, response=nothing, latency_ns=took_ns))
    assert (found.code, words in found.remedy) == ("empty_fetches", True)
    assert ("the broker answers at once" in found.title) == (words == "min.insync.replicas")


def test_fetches_that_are_answered_with_errors_are_no_empty_ones() -> None:
    """A broker that refuses them at once has another trouble."""
    refused = [("responses[0].partitions[0].error_code", 56, "KAFKA_STORAGE_ERROR", True)]
    told = codes(*many(600, SECOND // 100, request={}, response={"responses": []}, errors=refused, outcome="error"))
    assert told == [("kafka_storage_error", "error")]


def join(generation: int, member: str, latency_ns: int = 1_000_000) -> Exchange:
    asked, answer = {"group_id": "g", "reason": "away"}, {"generation_id": generation, "member_id": member}
    return exchange("JoinGroup", 11, 9, request=asked, response=answer, latency_ns=latency_ns, waiting="rebalance")


def test_rebalances_are_counted_by_generation() -> None:
    assert findings(*[join(generation, member) for generation in range(3) for member in "ab"]) == []
    (found,) = findings(*[join(generation, member) for generation in range(6) for member in "ab"])
    assert (found.code, found.subject, found.count) == ("rebalances", "group g", 6)
    assert found.numbers["reasons"] == ["away"]
    assert found.numbers["generations"] == 6


def test_a_long_rebalance_is_told() -> None:
    (found,) = findings(join(1, "a", 12 * SECOND))
    assert (found.code, found.numbers["longest_ns"]) == ("long_rebalance", 12 * SECOND)


def opened(number: int, at_ns: int, **more: Any) -> Connection:
    made = connection(number, f"10.0.0.5:{10_000 + number}")
    made.handshake_seen, made.first_ns = True, START_NS + at_ns
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_connections_opened_all_the_time_are_churn() -> None:
    assert codes(*[opened(number, number * SECOND) for number in range(60)]) == [("connection_churn", "warning")]
    assert codes(*[opened(number, number * 10 * SECOND) for number in range(60)]) == []


def test_packets_sent_twice_are_told_above_one_in_a_hundred() -> None:
    (found,) = findings(opened(1, 0, packets=[500, 500], retransmits=[10, 1], first_packet=7))
    assert (found.code, found.severity, found.evidence) == ("retransmits", "info", ((7, START_NS),))
    assert codes(opened(1, 0, packets=[500, 500], retransmits=[5, 5])) == []


def test_a_refused_tls_handshake_is_an_error() -> None:
    alert = {"sender": "client", "description": "handshake_failure"}
    (found,) = findings(opened(1, 0, protocol="tls", tls={"alert": alert, "version": "TLSv1.2"}))
    assert (found.code, found.severity) == ("tls_refused", "error")
    assert "refused by the client: handshake_failure" in found.title


def test_damage_and_gaps_are_told() -> None:
    damaged = exchange(problems=[Problem("bad_crc", "the CRC says 0x1, the bytes give 0x2")])
    gap = Problem("gap", "bytes are missing", packet=7, timestamp_ns=START_NS, details={"missing_bytes": 1448})
    found = findings(damaged, gap, gap)
    assert [(one.code, one.severity) for one in found] == [("bad_crc", "error"), ("capture_gaps", "info")]
    assert found[1].numbers == {"missing_bytes": 2896}


class Counted(Observer):
    """Notes what it is called with."""

    seen: ClassVar[list[int]] = []
    apis: ClassVar[frozenset[int] | None] = None

    def exchange(self, exchange: Exchange) -> None:
        self.seen.append(exchange.correlation_id)


class Stored(Counted):
    seen: ClassVar[list[int]] = []
    apis = frozenset({0})


def test_observers_are_called_with_exchanges_of_their_apis() -> None:
    """One of all APIs with every one, one of Produce with no other."""
    doctor = Doctor(None, [Counted, Stored])
    for number, (api, key) in enumerate((("Fetch", 1), ("Produce", 0), ("EndTxn", 26)), start=1):
        doctor.add(exchange(api, key, request={}, response={}, correlation_id=number))
    assert (Counted.seen, Stored.seen) == ([1, 2, 3], [2])


class Slow(Observer):
    """Notes what it is told is slow."""

    seen: ClassVar[list[int]] = []

    def slow(self, exchange: Exchange) -> None:
        self.seen.append(exchange.correlation_id)


def test_what_takes_a_second_from_its_first_byte_to_its_last_is_slow() -> None:
    """Also of a response whose request is missing, and of a request that is not answered."""
    doctor = Doctor(None, [Slow])
    for number, around_ns in enumerate((SECOND - 30_001, SECOND - 30_000)):  # 30 us are those of the messages
        doctor.add(exchange("Fetch", 1, request={}, response={}, latency_ns=around_ns, correlation_id=number))
        for is_response in (False, True):
            half = exchange("Fetch", 1, request={}, latency_ns=None, correlation_id=10 + number)
            assert half.request is not None
            half.request.last_ns = half.request.first_ns + SECOND - 1 + number
            if is_response:
                half.request, half.response = None, half.request
            doctor.add(half)
    assert Slow.seen == [1, 11, 11]


class Named(Observer):
    """Notes what it is called with of one API, and how often it is asked for that."""

    seen: ClassVar[list[int]] = []
    asked: ClassVar[list[None]] = []

    @property
    def apis(self) -> frozenset[int]:  # type: ignore[override]
        self.asked.append(None)
        return frozenset({4000})

    def exchange(self, exchange: Exchange) -> None:
        self.seen.append(exchange.correlation_id)


def test_observers_are_not_asked_about_each_api_that_somebody_invents() -> None:
    """API keys are INT16, so there are tens of thousands that no observer knows of."""
    doctor = Doctor(None, [Named])
    for number in range(5000):
        doctor.add(exchange("UNKNOWN_API", 3000 + number, correlation_id=number))
    assert Named.seen == [1000]
    assert 0 < len(Named.asked) < 500


def test_more_than_a_few_findings_alike_are_one() -> None:
    """With all whom they concern."""
    denied = [("error_code", 29, "TOPIC_AUTHORIZATION_FAILED", False)]
    events = [exchange(client_id=f"c{number}", errors=denied, outcome="error") for number in range(8)]
    (found,) = findings(*events)
    assert found.count == 8 and found.subject == "c0 10.0.0.5 and 7 others"
    assert len(found.numbers["subjects"]) == 8 and len(found.named("client")) == 8
