"""What the doctor says of transactions left open and of partitions without a leader, from exchanges made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis.doctor.troubles import aborted_reads
from kwiresniff.model import Event, Exchange
from tests.support.exchanges import START_NS, exchange
from tests.support.incidents import findings

SECOND = 1_000_000_000


def fetched(at_s: float, stable: int, high_watermark: int, isolation_level: int = 1) -> Exchange:
    """A consumer is told where the last stable offset and the high watermark of orders-0 are."""
    told = {
        "partition_index": 0,
        "error_code": 0,
        "high_watermark": high_watermark,
        "last_stable_offset": stable,
    }
    return exchange(
        "Fetch",
        1,
        request={"isolation_level": isolation_level, "max_wait_ms": 500, "topics": []},
        response={"responses": [{"topic": "orders", "partitions": [told]}]},
        client_id="ledger",
        start_ns=START_NS + int(at_s * SECOND),
    )


def transaction(at_s: float, api: str, key: int, request: dict[str, Any], response: dict[str, Any]) -> Exchange:
    return exchange(
        api, key, request=request, response=response, client_id="payments", start_ns=START_NS + int(at_s * SECOND)
    )


def begun(at_s: float = 0) -> list[Exchange]:
    """A producer takes its transactional id and writes a record at offset 5."""
    asked = {"transactional_id": "pay-1", "transaction_timeout_ms": 60_000, "producer_id": -1}
    return [
        transaction(at_s, "InitProducerId", 22, asked, {"producer_id": 9, "producer_epoch": 0}),
        written(at_s + 0.1, 5),
    ]


def written(at_s: float, offset: int) -> Exchange:
    batch = {"is_transactional": True, "producer_id": 9, "producer_epoch": 0, "records_count": 1}
    request = {
        "transactional_id": "pay-1",
        "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": [batch]}]}],
    }
    answer = {"responses": [{"name": "orders", "partition_responses": [{"index": 0, "base_offset": offset}]}]}
    return transaction(at_s, "Produce", 0, request, answer)


def transactions_told(*events: Event) -> list[tuple[str, str]]:
    return [(one.code, one.severity) for one in findings(*events) if one.code == "transaction_open"]


STUCK = [fetched(second, 5, 10 + second) for second in range(1, 14)]


def test_a_transaction_that_holds_readers_back_is_told_with_its_producer() -> None:
    """The last stable offset is where it began; the high watermark goes on."""
    (found,) = [one for one in findings(*begun(), *STUCK) if one.code == "transaction_open"]
    assert (found.severity, found.subject) == ("error", "transactional id pay-1")
    assert "payments 10.0.0.5 (producer 9)" in found.title
    assert "orders-0 at 5 of 23" in found.title
    assert found.numbers["longest_ns"] == 12 * SECOND
    assert found.numbers["readers"] == ["ledger 10.0.0.5"]


def test_one_that_is_still_written_to_may_be_meant_so() -> None:
    """Some commit at long intervals."""
    assert transactions_told(*begun(), *STUCK, written(12.5, 20)) == [("transaction_open", "info")]


def test_a_producer_that_had_its_id_before_the_capture_is_known_by_what_it_writes() -> None:
    """Its transaction began in the capture, and only its timeout is not told."""
    (found,) = [one for one in findings(written(0.1, 5), *STUCK) if one.code == "transaction_open"]
    assert (found.severity, found.subject) == ("error", "transactional id pay-1")
    assert "transaction.timeout.ms" not in found.title


def test_without_its_producer_it_is_told_by_partition() -> None:
    """Nobody can say what that one does."""
    assert transactions_told(*STUCK) == [("transaction_open", "warning")]


def test_a_partition_that_is_known_by_its_id_at_first_is_the_same_one() -> None:
    """What was seen of it then does not stand still."""
    early = fetched(1, 5, 9)
    assert early.response is not None and early.response.body is not None
    early.response.body["responses"][0]["topic"] = "id-1"
    assert transactions_told(early, *(fetched(second, 5 + second, 10 + second) for second in range(2, 14))) == []


def test_one_that_its_coordinator_ended_is_told_with_the_other_ids_of_its_client() -> None:
    """Readers were held back all the time; a new transactional id does not end what the old one left open."""
    asked = {"transactional_id": "pay-2", "transaction_timeout_ms": 60_000, "producer_id": -1}
    again = transaction(3, "InitProducerId", 22, asked, {"producer_id": 10, "producer_epoch": 0})
    (found,) = [one for one in findings(*begun(), again, *STUCK, fetched(14, 24, 24)) if one.code == "transaction_open"]
    assert (found.severity, found.subject) == ("warning", "transactional id pay-1")
    assert found.numbers["longest_ns"] == 13 * SECOND
    assert found.details == ("its client has other transactional ids besides: pay-2",)
    ended = transaction(13, "EndTxn", 26, {"producer_id": 9, "committed": True}, {"error_code": 0})
    assert transactions_told(*begun(), *STUCK, ended, fetched(14, 24, 24)) == []


@pytest.mark.parametrize("readers", [
    [*STUCK[:9]],  # not for long
    [*STUCK[:9], fetched(10, 24, 24)],  # it was ended
    [fetched(second, 5, 10 + second, isolation_level=0) for second in range(1, 14)],  # who reads everything
    [fetched(second, 5 + second, 10 + second) for second in range(1, 14)],  # others end one after the other
])  # fmt: skip
def test_transactions_as_usual_are_no_finding(readers: list[Exchange]) -> None:
    """Each is open for a moment."""
    assert transactions_told(*begun(), *readers) == []


def metadata(at_s: float, leader: int, offline: list[int], brokers: list[int]) -> Exchange:
    part = {
        "partition_index": 0,
        "leader_id": leader,
        "replica_nodes": [1],
        "isr_nodes": [1],
        "offline_replicas": offline,
    }
    return exchange(
        "Metadata",
        3,
        response={
            "cluster_id": "c",
            "brokers": [{"node_id": one, "host": f"10.0.0.{one}", "port": 9092} for one in brokers],
            "topics": [{"name": "orders", "error_code": 0, "partitions": [part]}],
        },
        start_ns=START_NS + int(at_s * SECOND),
    )


@pytest.mark.parametrize(
    ("brokers", "words"),
    [([1, 2], "a log directory of it failed"), ([2], "their only replica is on node 1")],
)
def test_a_partition_without_a_leader_says_whose_replicas_it_has(brokers: list[int], words: str) -> None:
    """A broker that is there has lost the directory; one that is not has to come back."""
    (found,) = findings(*(metadata(second, -1, [1], brokers) for second in range(7)))
    assert (found.code, found.severity, found.subject) == ("partition_offline", "error", "orders-0")
    assert words in found.title


def test_a_partition_that_soon_has_a_leader_is_no_finding() -> None:
    """Partitions of new topics are without a leader for a moment."""
    events = [metadata(0, -1, [], [1]), metadata(4, -1, [], [1]), metadata(4.5, 1, [], [1]), metadata(30, 1, [], [1])]
    assert findings(*events) == []


# -- records that do not count ---------------------------------------------------------------------------------------


def ended(at_s: float, *, committed: bool) -> Exchange:
    return transaction(at_s, "EndTxn", 26, {"transactional_id": "pay-1", "producer_id": 9, "committed": committed}, {})


def brought(at_s: float, first: int, records: int, isolation_level: int = 0) -> Exchange:
    """A consumer is given records of orders-0."""
    batch = {"base_offset": first, "last_offset_delta": records - 1, "records_count": records, "magic": 2}
    part = {"partition_index": 0, "error_code": 0, "high_watermark": first + records, "records": [batch]}
    return exchange(
        "Fetch",
        1,
        request={"isolation_level": isolation_level, "replica_id": -1, "topics": []},
        response={"responses": [{"topic": "orders", "partitions": [part]}]},
        client_id="audit",
        start_ns=START_NS + int(at_s * SECOND),
    )


@pytest.mark.parametrize(
    ("committed", "isolation_level", "read", "expected"),
    [
        pytest.param(False, 0, (3, 10), 1, id="aborted after it was read"),
        pytest.param(True, 0, (3, 10), 0, id="committed"),
        pytest.param(False, 1, (3, 10), 0, id="a reader that wants committed records"),
        pytest.param(False, 0, (6, 10), 0, id="what was written behind it"),
        pytest.param(False, 0, (0, 5), 0, id="what was written before it"),
    ],
)
def test_records_of_aborted_transactions_are_told_to_who_was_given_them(
    committed: bool, isolation_level: int, read: tuple[int, int], expected: int
) -> None:
    """The transaction wrote offset 5 alone; it is aborted when the consumer has it already."""
    events = [*begun(), brought(1, *read, isolation_level), ended(2, committed=committed)]
    found = [one for one in findings(*events) if one.code == "aborted_records_read"]
    assert [(one.severity, one.subject, one.numbers["records"]) for one in found] == [
        ("warning", "audit 10.0.0.5", 1)
    ] * expected
    assert all("transactional id pay-1" in one.title for one in found)


@pytest.mark.parametrize("bound", ["MAX_WRITERS", "MAX_OPEN", "MAX_ABORTED", "MAX_READERS"])
def test_what_is_remembered_of_aborted_records_is_bounded(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond each of the limits nothing is told."""
    monkeypatch.setattr(aborted_reads, bound, 0)
    assert findings(*begun(), brought(1, 3, 10), ended(2, committed=False)) == []


@pytest.mark.parametrize(
    ("count", "every_s", "records", "expected"),
    [
        (120, 0.02, 1, [("small_transactions", "warning")]),
        (120, 1.0, 1, [("small_transactions", "info")]),
        (120, 0.02, 3, []),
        (90, 0.02, 1, []),
    ],
)
def test_a_transaction_for_each_record_is_told_with_what_it_costs(
    count: int, every_s: float, records: int, expected: list[tuple[str, str]]
) -> None:
    """It is a warning where the producer does little else but wait for its transactions."""
    events: list[Exchange] = []
    for number in range(count):
        events += [written(number * every_s + part / 1000, number * 3 + part) for part in range(records)]
        last = ended(number * every_s + 0.004, committed=True)
        assert last.response is not None
        last.response.first_ns += 12_000_000
        events.append(last)
    assert [(one.code, one.severity) for one in findings(*events)] == expected
