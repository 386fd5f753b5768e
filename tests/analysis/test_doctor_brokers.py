"""Brokers that stall, leaders that move, replicas that are missing: what is named, and how long it took."""

from __future__ import annotations

import pytest

from kwiresniff.model import Event, Exchange
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import BROKER, CLIENT, SECOND, closed, codes, findings, lost, metadata, partition, produce


def test_a_stall_is_one_broker_and_its_slow_answers_are_symptoms() -> None:
    """From the last sign of it to the first; the requests behind each other do not count as many."""
    on = connection()
    before = exchange("ListOffsets", 2, 7, response={}, on=on)
    stuck = exchange(
        "ListOffsets", 2, 7, response={}, on=on, start_ns=START_NS + SECOND, latency_ns=4 * SECOND, queued=0, held=0
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


@pytest.mark.parametrize(
    ("leader", "served", "code"),
    [
        (2, False, "wrong_address"),
        (-1, False, "wrong_address"),
        (3, False, "stale_metadata"),
        (2, True, "not_leader_or_follower"),
    ],
)
def test_an_address_that_denies_what_its_node_leads_is_another_brokers(leader: int, served: bool, code: str) -> None:
    """Metadata names node 2 as the leader, and so do answers of newer versions. A broker that names another leader, or
    that serves other partitions, is in its place."""
    events: list[Event] = [metadata(partition(0, 2, 4))]
    events += [not_leader(at * SECOND, leader=leader, epoch=5) for at in range(12)]
    if served:
        events.insert(7, produce(5 * SECOND, 1, on=connection(2, f"{CLIENT}:2", "10.0.0.2:9092")))
    found = findings(*events)[0]
    assert found.code == code
    if code == "wrong_address":
        assert (found.severity, found.subject, found.count) == ("error", "10.0.0.2:9092", 12)
        assert "10.0.0.2:9092 is not node 2" in found.title
        assert [one.code for one in found.symptoms] == ["not_leader_or_follower"]
        assert any("cut off from its controller" in one for one in found.details) == (leader == -1)


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
    late = exchange(
        "Produce", 0, 9, response={"error_code": 7}, errors=[("error_code", 7, "REQUEST_TIMED_OUT", True)],
        outcome="error", start_ns=START_NS + 21 * SECOND, on=connection(4, f"{CLIENT}:4", "10.0.0.2:9092"),
    )  # fmt: skip
    (found,) = findings(metadata(partition(0, 1, 0, **replicas)), late, second, refused)
    assert [one.code for one in found.symptoms] == ["request_timed_out"]


def written(broker: int, at_ns: int, waited_s: float, acks: int = -1) -> Exchange:
    """A write at a node, answered after so long."""
    on = connection(20 + broker, f"{CLIENT}:{20 + broker}", f"10.0.0.{broker}:9092")
    made = produce(at_ns, on=on, latency_ns=round(waited_s * SECOND), queued=0, held=0)
    assert made.request is not None and made.request.body is not None
    made.request.body["acks"] = acks
    return made


def beat_at(broker: int, at_ns: int, waited_s: float = 0.001) -> Exchange:
    on = connection(30 + broker, f"{CLIENT}:{30 + broker}", f"10.0.0.{broker}:9092")
    latency_ns = round(waited_s * SECOND)
    return exchange("Heartbeat", 12, 4, response={}, on=on, start_ns=START_NS + at_ns, latency_ns=latency_ns)


def polled(broker: int, at_ns: int, waited_s: float) -> Exchange:
    """A fetch that should have been answered in half a second."""
    on = connection(40 + broker, f"{CLIENT}:{40 + broker}", f"10.0.0.{broker}:9092")
    request, latency_ns = {"replica_id": -1, "max_wait_ms": 500}, round(waited_s * SECOND)
    return exchange(request=request, response={}, on=on, start_ns=START_NS + at_ns, latency_ns=latency_ns)


def test_writes_that_wait_for_a_broker_that_went_name_it() -> None:
    """The broker led nothing, and closed its connections; one that goes on answering has only dropped some."""
    seen = metadata(partition(0, 1, 4))
    gone = closed(9, "broker", SECOND, "10.0.0.2:9092", exchanges={"ok": 3})
    (found,) = findings(seen, beat_at(2, 0), gone, written(1, SECOND, 4))
    assert (found.code, found.severity, found.subject) == ("replica_wait", "warning", "10.0.0.2:9092 (node 2)")
    assert "waited up to 4 s at 10.0.0.1:9092 (node 1)" in found.title
    assert [one.code for one in found.symptoms] == ["slow"]
    still_there = beat_at(2, 3 * SECOND)
    assert [one.code for one in findings(seen, beat_at(2, 0), gone, still_there, written(1, SECOND, 4))] == ["slow"]


def test_writes_at_several_brokers_wait_for_the_one_that_stands_still() -> None:
    """The broker lets wait what it can answer at once; each time counts."""
    events: list[Event] = [metadata(partition(0, 1, 4))]
    for at_ns in (SECOND, 10 * SECOND):
        events += [written(1, at_ns, 1.8), written(3, at_ns, 1.8), polled(2, at_ns + SECOND // 10, 1.7)]
    (found,) = findings(*events)
    assert found.code == "replica_wait"
    assert found.subject == "10.0.0.2:9092 (node 2)" and found.numbers["still"] == ["10.0.0.2:9092"]
    assert "twice" in found.title and "stood still" in found.title


def test_a_coordinator_whose_heartbeats_wait_for_replicas_does_not_stand_still() -> None:
    """Since 4.0 they wait for what it wrote last for the group: its request log has them as RemoteTimeMs."""
    events = [metadata(partition(0, 1, 4)), written(1, SECOND, 4), written(3, SECOND, 4), beat_at(1, SECOND, 3.9)]
    (found,) = findings(*events)
    assert found.code == "replica_wait" and found.numbers["still"] == [] and "stood still" not in found.title
    assert "broker_stalled" not in dict(codes(beat_at(1, 0), beat_at(1, SECOND, 4)))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([written(1, SECOND, 6), written(3, SECOND, 6)], "replica_wait", id="at two brokers"),
        pytest.param([written(1, SECOND, 6)], "slow", id="at one"),
        pytest.param([written(1, SECOND, 6), written(3, 30 * SECOND, 6)], "slow", id="not at a time"),
        pytest.param(
            [written(1, SECOND, 6, acks=1), written(3, SECOND, 6, acks=1)],
            "broker_stalled",
            id="for no replica",
        ),
    ],
)
def test_whether_writes_wait_for_replicas(events: list[Event], expected: str) -> None:
    assert findings(metadata(partition(0, 1, 4)), *events)[0].code == expected


@pytest.mark.parametrize(
    ("in_sync", "answered_s", "expected"),
    [
        pytest.param([1, 2], 2.5, [2], id="answers others meanwhile"),
        pytest.param([1, 2, 3], 2.5, [2, 3], id="several followers"),
        pytest.param([1, 2], 1.1, None, id="and answers nothing after its beginning"),
        pytest.param([1], 2.5, None, id="no other replica"),
    ],
)
def test_a_leader_that_answers_others_waits_for_its_followers(
    in_sync: list[int], answered_s: float, expected: list[int] | None
) -> None:
    """Which they are, Metadata says; without any it is the leader that is slow."""
    seen = metadata(partition(0, 1, 4, replica_nodes=in_sync, isr_nodes=in_sync))
    (found,) = findings(seen, beat_at(1, round(answered_s * SECOND)), written(1, SECOND, 6))
    if expected is None:
        assert found.code == "slow"
        return
    assert (found.code, found.severity, found.numbers["followers"]) == ("replica_wait", "warning", expected)
    several = "one of " if len(expected) > 1 else "so "
    assert f"{several}node 2 (10.0.0.2:9092)" in found.title and "or its own disk" in found.title
    assert [one.code for one in found.symptoms] == ["slow"]


def test_a_heartbeat_behind_a_commit_that_waits_for_replicas_is_no_stall() -> None:
    """A broker works on one request of a connection at a time."""
    on = connection(4, f"{CLIENT}:4", "10.0.0.1:9092")
    before = exchange("Heartbeat", 12, 4, response={}, on=on)
    commit = exchange(
        "OffsetCommit", 8, 8, request={}, response={}, on=on, start_ns=START_NS + SECOND, latency_ns=4 * SECOND
    )
    behind = exchange(
        "Heartbeat", 12, 4, response={}, on=on, start_ns=START_NS + SECOND + 1, latency_ns=4 * SECOND + 1000,
        queued=4 * SECOND, held=0,
    )  # fmt: skip
    assert [one.code for one in findings(before, commit, behind)] == ["slow"]


def authenticates(number: int, at_s: int, took_s: float, user: str = "alice") -> list[Event]:
    """A connection that authenticates, and is closed a second after that."""
    on = closed(number, "client", int((at_s + took_s + 1) * SECOND), first_ns=START_NS + at_s * SECOND, bytes=[99, 99])
    on.sasl = {"mechanism": "PLAIN", "principal": user, "outcome": "ok"}
    return [
        exchange("SaslAuthenticate", 36, 2, request={}, response={}, start_ns=START_NS + at_s * SECOND,
                 latency_ns=int(took_s * SECOND), on=on),
        on,
    ]  # fmt: skip


def waits_meanwhile(at_s: int, took_s: float) -> list[Event]:
    """Requests of somebody else: one is answered at once, the next waits as long as the authentication."""
    on = connection(90, "10.0.0.6:50000")
    start_ns = START_NS + at_s * SECOND
    return [
        exchange("ListOffsets", 2, 7, request={}, response={}, start_ns=start_ns - SECOND // 10, on=on),
        exchange("ListOffsets", 2, 7, request={}, response={}, start_ns=start_ns + SECOND // 10,
                 latency_ns=int((took_s - 0.05) * SECOND), on=on),
    ]  # fmt: skip


def test_a_broker_that_waits_for_a_directory_does_not_stall() -> None:
    """Each time it answers nobody, an authentication had come first; one that stalls is prompt with some."""
    slow: list[Event] = []
    for number in range(4):
        asked, ended = authenticates(number, 10 * number, 3)
        before, after = waits_meanwhile(10 * number, 3)
        slow += [before, asked, after, ended]
    (found,) = findings(*slow)
    assert (found.code, found.severity) == ("slow_authentication", "error")
    assert "3 s to 3 s (4 connections, user alice), and it answers nobody meanwhile" in found.title
    assert "LDAP" in found.remedy
    prompt = [event for number in range(4) for event in authenticates(50 + number, 60 + number, 0.01)]
    assert "slow_authentication" not in dict(codes(*slow, *prompt))
    at_once = [event for number in range(4) for event in authenticates(number, 10, 3)]
    assert "slow_authentication" not in dict(codes(*at_once)), "one pause delays all of them"
    alone = [event for number in range(4) for event in authenticates(number, 10 * number, 3)]
    assert ("slow_authentication", "warning") in codes(*alone)


def test_a_gap_in_a_sequence_follows_from_a_leader_that_moved() -> None:
    """What was in flight behind a refused batch is refused as well, and sent again with it."""
    moved = [metadata(partition(0, 1, 0)), metadata(partition(0, 2, 1), at_ns=10 * SECOND)]
    answer = {"responses": [{"name": "orders", "partition_responses": [{"index": 0, "error_code": 45}]}]}
    errors = [("responses[0].partition_responses[0].error_code", 45, "OUT_OF_ORDER_SEQUENCE_NUMBER", False)]
    gap = produce(11 * SECOND, response=answer, errors=errors, outcome="error")
    (found,) = findings(*moved, gap)
    assert (found.code, found.severity) == ("leader_change", "info")
    assert [one.code for one in found.symptoms] == ["out_of_order_sequence_number"]
    assert codes(gap) == [("out_of_order_sequence_number", "error")]
