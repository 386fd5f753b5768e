"""Which broker is slow, or which topic: by the writes that a node takes part in and those that go on without it."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.model import Event, Exchange
from kwiresniff.results.findings import Finding
from tests.support import exchanges
from tests.support.exchanges import START_NS, connection, produced
from tests.support.incidents import CLIENT, SECOND, closed, findings, metadata, partition

MILLISECOND = SECOND // 1000


def write(topic: str, broker: int, at_ns: int, took_ns: int, *, acks: int = -1, codec: str = "none") -> Exchange:
    """A Produce of ten records to partition 0 of a topic, stored at the offset that is its time in milliseconds."""
    on = connection(20 + broker, f"{CLIENT}:{20 + broker}", f"10.0.0.{broker}:9092")
    offset = at_ns // MILLISECOND
    batch = {
        "magic": 2, "crc": offset, "base_offset": 0, "last_offset_delta": 9, "records_count": 10, "size_bytes": 1000,
        "producer_id": 7, "producer_epoch": 0, "base_sequence": offset, "compression": codec,
    }  # fmt: skip
    return produced(
        [batch], topic=topic, acks=acks, offset=offset, client_id=f"{topic}-writer", on=on, latency_ns=took_ns,
        start_ns=START_NS + at_ns,
    )  # fmt: skip


def writes(topic: str, broker: int, took_ns: int = 4 * MILLISECOND, count: int = 30, **more: Any) -> list[Exchange]:
    """Writes, one every half second."""
    return [write(topic, broker, SECOND + number * SECOND // 2, took_ns, **more) for number in range(count)]


def topic(name: str, leader: int, *replicas: int) -> Exchange:
    return metadata(partition(0, leader, 4, replica_nodes=[*replicas], isr_nodes=[*replicas]), topic=name)


def found(code: str, *events: Event) -> Finding | None:
    in_order = sorted(events, key=lambda one: one.request.first_ns if isinstance(one, Exchange) and one.request else 0)
    return next((one for one in findings(*in_order) if one.code == code), None)


LED, FOLLOWED, APART = topic("led", 2, 2, 1, 3), topic("followed", 1, 1, 2, 3), topic("apart", 3, 3, 1)


def test_a_slow_broker_is_found_as_leader_and_as_replica() -> None:
    """Its topics are late wherever they are led; the one without it is not."""
    slow = 700 * MILLISECOND
    events = [LED, FOLLOWED, APART, *writes("led", 2, slow), *writes("followed", 1, slow), *writes("apart", 3)]
    one = found("slow_broker", *events)
    assert one is not None and one.severity == "warning"
    assert (one.subject, one.numbers["node"]) == ("node 2 (10.0.0.2:9092)", 2)
    assert (one.numbers["leads"], one.numbers["follows"]) == (["led"], ["followed"])
    assert (one.numbers["late"], one.numbers["writes"], one.numbers["writes_without"]) == (60, 60, 30)
    assert "apart, written without it, is not late" in one.title
    assert one.count == 60 and one.first_ns == START_NS + SECOND + 10_000
    assert "RemoteTimeMs" in one.remedy and "LocalTimeMs" in one.remedy


def test_it_is_found_though_it_is_slow_for_a_part_of_the_time_only() -> None:
    """What other writes lose at busy moments does not hide it."""
    events = [LED, APART, *writes("led", 2, count=60), *writes("apart", 3, count=60)]
    events += [write("led", 2, 40 * SECOND + number * SECOND, 900 * MILLISECOND) for number in range(5)]
    events += [write("apart", 3, 41 * SECOND, 130 * MILLISECOND), write("apart", 3, 42 * SECOND, 140 * MILLISECOND)]
    one = found("slow_broker", *events)
    assert one is not None and one.numbers["node"] == 2
    assert (one.numbers["late"], one.numbers["writes"]) == (5, 65)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([LED, *writes("led", 2, 700 * MILLISECOND)], id="without it there is nothing"),
        pytest.param(
            [LED, APART, *writes("led", 2, 700 * MILLISECOND), *writes("apart", 3, count=5)], id="too little without it"
        ),
        pytest.param(
            [LED, APART, *writes("led", 2, 700 * MILLISECOND), *writes("apart", 3, 600 * MILLISECOND)], id="all slow"
        ),
        pytest.param([LED, APART, *writes("led", 2, 90 * MILLISECOND), *writes("apart", 3)], id="not late"),
        pytest.param(
            [LED, APART, write("led", 2, SECOND, 4 * SECOND), *writes("led", 2), *writes("apart", 3)], id="once"
        ),
        pytest.param(
            [*writes("led", 2, 700 * MILLISECOND), *writes("apart", 3)], id="no Metadata"
        ),
    ],
)  # fmt: skip
def test_nobody_is_blamed_without_a_comparison(events: list[Event]) -> None:
    """Where nothing tells the nodes apart, none is named."""
    assert found("slow_broker", *events) is None


def test_a_write_that_only_the_leader_stores_needs_no_comparison() -> None:
    """With acks=1 it waits for nobody else."""
    one = found("slow_broker", LED, *writes("led", 2, 700 * MILLISECOND, acks=1))
    assert one is not None and one.numbers["node"] == 2
    assert one.contradicts == ("no write without it is in the capture, to compare it with",)


def test_a_broker_that_keeps_up_as_a_replica_is_slow_as_a_leader() -> None:
    """Its disk takes what others lead."""
    events = [LED, FOLLOWED, *writes("led", 2, 700 * MILLISECOND), *writes("followed", 1)]
    one = found("slow_broker", *events)
    assert one is None  # the nodes of both are the same, so that one topic alone is late at its leader
    events = [LED, FOLLOWED, *writes("led", 2, 700 * MILLISECOND, acks=1), *writes("followed", 1)]
    one = found("slow_broker", *events)
    assert one is not None and "its disk takes what it gets" in one.remedy


def test_a_leader_whose_topics_are_all_late_is_slow_though_it_copies_in_time() -> None:
    """All three nodes store everything: what node 2 leads is late, what it copies is not."""
    other = topic("other", 2, 2, 1, 3)
    late = [*writes("led", 2, 700 * MILLISECOND), *writes("other", 2, 700 * MILLISECOND)]
    one = found("slow_broker", LED, other, FOLLOWED, *late, *writes("followed", 1, count=60))
    assert one is not None and (one.numbers["node"], one.numbers["leads"]) == (2, ["led", "other"])
    assert "its disk takes what it gets" in one.remedy
    assert found("slow_broker", LED, other, FOLLOWED, *late, *writes("followed", 1, 600 * MILLISECOND)) is None


def test_a_leader_that_is_late_most_of_all_is_told_with_the_doubt() -> None:
    """It copies what the other one leads, which is late now and then, too."""
    other, beside = topic("other", 2, 2, 1, 3), topic("beside", 1, 1, 2, 3)
    late = [*writes("led", 2, 700 * MILLISECOND), *writes("other", 2, 700 * MILLISECOND)]
    prompt = [*writes("followed", 1, count=60), *writes("beside", 1, count=60)]
    some = [*writes("followed", 1, 700 * MILLISECOND, count=10), *writes("beside", 1, 700 * MILLISECOND, count=10)]
    one = found("slow_broker", LED, other, FOLLOWED, beside, *late, *prompt, *some)
    assert one is not None and one.numbers["node"] == 2
    assert "what others lead is late, too, but not as much" in one.details[0]


PAIR = [topic("there", 1, 1, 2), topic("back", 2, 2, 1), topic("third", 3, 3, 1, 2)]


def test_the_way_between_two_nodes_is_slow_where_both_are_prompt_with_others() -> None:
    """Node 3 leads a topic that both of the two copy."""
    slow = 700 * MILLISECOND
    one = found("slow_replication", *PAIR, *writes("there", 1, slow), *writes("back", 2, slow), *writes("third", 3))
    assert one is not None and (one.severity, one.numbers["nodes"]) == ("warning", [1, 2])
    assert one.subject == "node 1 (10.0.0.1:9092), node 2 (10.0.0.2:9092)" and "network between" in one.remedy
    assert found("slow_broker", *PAIR, *writes("there", 1, slow), *writes("back", 2, slow), *writes("third", 3)) is None


@pytest.mark.parametrize(
    ("there", "back", "third"),
    [
        pytest.param(700, 4, 4, id="one direction only"),
        pytest.param(700, 700, 600, id="and with others"),
    ],
)
def test_the_way_between_two_nodes_is_not_blamed_for(there: int, back: int, third: int) -> None:
    events = [
        *writes("there", 1, there * MILLISECOND),
        *writes("back", 2, back * MILLISECOND),
        *writes("third", 3, third * MILLISECOND),
    ]
    assert found("slow_replication", *PAIR, *events) is None


def test_writes_of_one_host_that_are_late_alone_are_not_their_brokers() -> None:
    """Another host writes to the same topic in time."""
    events = [LED, APART, *writes("led", 2, 700 * MILLISECOND), *writes("apart", 3)]
    assert found("slow_broker", *events) is not None
    other = writes("led", 2)
    for one in other:
        one.connection = connection(40, "10.0.0.6:40", "10.0.0.2:9092")
    assert found("slow_broker", *events, *other) is None
    left = found("late_writes", *events, *other)
    assert left is not None and "30 of 30 writes of 10.0.0.5 to led" in left.title


def test_a_topic_alone_that_is_late_is_not_its_broker() -> None:
    """The same broker takes another topic, which the same nodes store, in time."""
    same = topic("same", 2, 2, 1, 3)
    events = [LED, same, APART, *writes("led", 2, 700 * MILLISECOND), *writes("same", 2), *writes("apart", 3)]
    assert found("slow_broker", *events) is None
    one = found("slow_topic", *events)
    assert one is not None and (one.subject, one.numbers["other_topics"]) == ("topic led", ["same"])


def fetched(topic_name: str, first: int, codec: str, at_ns: int) -> Exchange:
    """A fetch that brings a consumer ten records from an offset on."""
    batch = {
        "magic": 2, "crc": 1, "base_offset": first, "last_offset_delta": 9, "records_count": 10, "size_bytes": 900,
        "producer_id": -1, "compression": codec,
    }  # fmt: skip
    on = connection(50, f"{CLIENT}:50", "10.0.0.2:9092")
    return exchanges.fetched([batch], topic=topic_name, on=on, start_ns=START_NS + at_ns)


@pytest.mark.parametrize(("stored", "expected"), [("zstd", True), ("gzip", False)])
def test_a_topic_whose_leader_compresses_again_says_what_was_sent_and_what_is_stored(
    stored: str, expected: bool
) -> None:
    """The same offsets have another codec, and the other topic of the broker is not late."""
    same = topic("same", 2, 2, 1, 3)
    late = writes("led", 2, 700 * MILLISECOND, codec="gzip")
    reads = [
        fetched("led", (SECOND + number * SECOND // 2) // MILLISECOND, stored, 20 * SECOND) for number in range(30)
    ]
    one = found("recompression", LED, same, *late, *writes("same", 2), *reads)
    assert (one is not None) == expected
    if one is not None:
        assert (one.severity, one.numbers["produced"], one.numbers["fetched"]) == ("warning", ["gzip"], ["zstd"])
        assert "compression.type=zstd" in one.remedy and "same there is not late" in one.title
        assert "replica" not in one.remedy


def test_recompression_explains_late_writes_where_no_other_topic_tells() -> None:
    """Rather than the broker's disk, or replicas that are not there; not where another topic is late as well."""
    alone = topic("led", 2, 2)
    late = writes("led", 2, 700 * MILLISECOND, codec="gzip")
    reads = [
        fetched("led", (SECOND + number * SECOND // 2) // MILLISECOND, "zstd", 20 * SECOND) for number in range(30)
    ]
    first = findings(alone, *late, *reads)[0]
    assert (first.code, first.severity, first.numbers["longest_ns"]) == ("recompression", "warning", 700 * MILLISECOND)
    both = found("recompression", alone, topic("same", 2, 2), *late, *writes("same", 2, 600 * MILLISECOND), *reads)
    assert both is not None and both.numbers["longest_ns"] is None


def test_recompression_that_makes_nothing_late_is_good_to_know() -> None:
    """It costs the broker's CPU, and nobody waits."""
    reads = [fetched("led", (SECOND + number * SECOND // 2) // MILLISECOND, "lz4", 20 * SECOND) for number in range(30)]
    one = found("recompression", LED, *writes("led", 2), *reads)
    assert one is not None and one.severity == "info"


@pytest.mark.parametrize(
    ("every", "took_ms", "severities"),
    [
        pytest.param(2, 400, ["warning"], id="half of them"),
        pytest.param(20, 400, [], id="one in twenty"),
        pytest.param(20, 1200, ["warning"], id="one in twenty, of more than a second"),
    ],
)
def test_few_writes_that_are_a_little_late_are_what_a_busy_moment_costs(
    every: int, took_ms: int, severities: list[str]
) -> None:
    """Of those of the same time; one that takes a second counts anyway."""
    sent = [
        write("orders", 1, n * SECOND // 10, (took_ms if n % every == 0 else 4) * MILLISECOND) for n in range(200)
    ]  # fmt: skip
    assert [one.severity for one in findings(*sent) if one.code == "late_writes"] == severities


@pytest.mark.parametrize(
    ("lost", "severity"),
    [
        pytest.param({"retransmits": [8, 12], "recovered": [0, 0]}, "info", id="all came to the capture point twice"),
        pytest.param({"retransmits": [8, 11], "recovered": [0, 1]}, "warning", id="one was lost before it"),
    ],
)
def test_late_writes_show_loss_where_a_segment_was_lost(lost: dict[str, list[int]], severity: str) -> None:
    """Tail loss probes, which late acknowledgements bring about, are sent on busy machines as well."""
    sent = [write("orders", 1, n * SECOND // 10, (1200 if n % 20 == 0 else 4) * MILLISECOND) for n in range(200)]
    ends = closed(21, "client", 60 * SECOND, broker="10.0.0.1:9092", packets=[800, 800], bytes=[9, 9], **lost)
    (one,) = [one for one in findings(*sent, ends) if one.code in {"retransmits", "late_writes"}]
    assert (one.code, one.severity) == ("retransmits", severity)
