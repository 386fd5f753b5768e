"""Producers by their ids, held to recordings in which it is known what they did, and to made-up conversations."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis import producer_table
from kwiresniff.analysis.producer_ledger import ProducerLedger
from kwiresniff.analysis.producer_sequences import MAX_RECENT, Sequence
from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.digest import Digest, PartitionDigest, TopicDigest
from kwiresniff.model import Exchange
from kwiresniff.results.producers import Producer
from kwiresniff.session import Analyzer
from tests.support.events import analyze_with
from tests.support.exchanges import START_NS, exchange, produced
from tests.support.paths import CAPTURES

MS = 1_000_000
FENCED = [("error_code", 47, "INVALID_PRODUCER_EPOCH", False)]


def recorded(file: str) -> dict[str | None, Producer]:
    """The producers of a recording by their transactional ids."""
    analyzer = Analyzer("bodies")
    ledger = ProducerLedger(analyzer.topics.name)
    for event in analyze_with(analyzer, open_captures([str(CAPTURES / file)])):
        if isinstance(event, Exchange):
            ledger.exchange(event)
    return {one.transactional_id: one for one in ledger.producers()}


def only_producer(*exchanges: Exchange) -> Producer:
    ledger = ProducerLedger()
    for one in exchanges:
        ledger.exchange(one)
    (producer,) = ledger.producers()
    return producer


def init(epoch: int, at_ms: int, client: str = "old", **more: Any) -> Exchange:
    asked = {"transactional_id": "tx", "transaction_timeout_ms": 4000, "producer_id": -1, "producer_epoch": -1}
    return exchange("InitProducerId", 22, 5, request=asked, response={"producer_id": 7, "producer_epoch": epoch},
                    start_ns=START_NS + at_ms * MS, client_id=client, **more)  # fmt: skip


def produce(epoch: int, base: int, at_ms: int, client: str = "old", offset: int = 0, **more: Any) -> Exchange:
    batch = {"producer_id": 7, "producer_epoch": epoch, "base_sequence": base, "records_count": 2,
             "is_transactional": True}  # fmt: skip
    one = produced([batch], offset=offset, start_ns=START_NS + at_ms * MS, client_id=client, **more)
    one.request.body["transactional_id"] = "tx"  # type: ignore[union-attr, index]
    return one


def end(epoch: int, at_ms: int, *, committed: bool = True, client: str = "old", **more: Any) -> Exchange:
    asked = {"transactional_id": "tx", "producer_id": 7, "producer_epoch": epoch, "committed": committed}
    return exchange("EndTxn", 26, 3, request=asked, response={}, start_ns=START_NS + at_ms * MS, client_id=client,
                    **more)  # fmt: skip


def test_a_fenced_producer_is_told_with_the_one_that_fenced_it() -> None:
    """payments-new fenced payments-old, whose transaction was aborted; its own was committed."""
    producer = recorded("incidents/fenced.pcap.xz")["payments-tx"]
    assert [name.split()[0] for name in producer.clients] == ["payments-old", "payments-new"]
    first, second = producer.transactions
    assert (first.state, first.by, first.partitions) == ("fenced", "payments-new 10.9.0.2", ("parcels-0",))
    assert (second.state, second.by, second.partitions) == ("committed", "", ("parcels-1",))
    (fencing,) = producer.fencings
    assert (fencing.client, fencing.by_client) == ("payments-old 10.9.0.2", "payments-new 10.9.0.2")


def test_a_transaction_that_is_left_open_is_aborted_by_its_coordinator() -> None:
    """After transaction.timeout.ms (4 s); the other producer committed four and aborted two."""
    producers = recorded("incidents/transaction-left-open.pcap.xz")
    (left,) = producers["payments-left"].transactions
    assert (left.state, left.by) == ("aborted", "its coordinator")
    assert left.begin_ns is not None and left.end_ns is not None and left.end_ns - left.begin_ns >= 4_000 * MS
    assert dict(producers["payments"].ended) == {"committed": 4, "aborted": 2}
    assert [one.state for one in producers["payments"].transactions] == [
        "committed", "committed", "aborted", "committed", "committed", "aborted",
    ]  # fmt: skip


@pytest.mark.parametrize("file", ["fenced.pcap.xz", "transaction-left-open.pcap.xz"])
def test_digests_lead_to_the_same_producers(file: str) -> None:
    """Bodies are decoded of what names producers or brokers alone, and of fetches of committed records."""
    analyzer = Analyzer(Needs("bodies", digests=True))
    ledger, left = ProducerLedger(analyzer.topics.name), 0
    for event in analyze_with(analyzer, open_captures([str(CAPTURES / "incidents" / file)])):
        if isinstance(event, Exchange):
            ledger.exchange(event)
            left += event.request is not None and event.request.is_deferred
    assert {one.transactional_id: one for one in ledger.producers()} == recorded(f"incidents/{file}")
    assert left > 0


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_a_produce_without_ids_of_producers_is_not_decoded(is_idempotent: bool) -> None:
    """Its digest says whether a batch has one."""
    digest, topic = Digest(), TopicDigest()
    topic.partitions += [PartitionDigest(), PartitionDigest()]
    topic.partitions[1].is_idempotent = is_idempotent
    digest.parts = [topic]
    one = exchange("Produce", 0, 9, request={}, response={})
    assert one.request is not None
    one.request.frame = b"frame"
    one.request.defer(digest, lambda frame, offset, problems: ({}, 0))
    ProducerLedger().exchange(one)
    assert one.request.is_deferred is not is_idempotent


def test_sound_sequences_have_no_flaws() -> None:
    """Nobody retried, nothing is missing in these recordings; the marks of EndTxn are no records."""
    for file in ("java-transactions.pcap", "librdkafka-transactions.pcap", "latency/client.pcap.xz"):
        assert [one.flaws for one in recorded(file).values() if one.flaws] == []


@pytest.mark.parametrize(
    ("batches", "missing", "duplicates"),
    [
        ([(0, 0, 2), (0, 2, 2), (0, 4, 1)], 0, 0),
        ([(0, 5, 2), (0, 7, 2)], 0, 0),
        ([(0, 0, 2), (0, 0, 2), (0, 2, 2)], 0, 1),
        ([(0, 0, 2), (0, 7, 2)], 5, 0),
        ([(0, 0, 2), (0, 7, 2), (0, 2, 3)], 2, 0),
        ([(0, 0, 2), (0, 7, 2), (0, 2, 3), (0, 5, 2)], 0, 0),
        ([(0, 8, 2), (1, 0, 2), (1, 2, 1)], 0, 0),
        ([(0, 0, 1), (1, 3, 1)], 3, 0),
        ([(1, 0, 1), (0, 0, 1)], 0, 0),
        ([(0, (1 << 31) - 2, 2), (0, 0, 3), (0, 3, 1)], 0, 0),
    ],
)
def test_what_a_sequence_lacks_and_repeats(batches: list[tuple[int, int, int]], missing: int, duplicates: int) -> None:
    """Late batches fill holes, epochs begin at 0, and numbers begin anew after the greatest one."""
    sequence = Sequence()
    for batch in batches:
        sequence.add(*batch, 0)
    assert (sequence.missing, sequence.duplicates) == (missing, duplicates)


def test_a_transaction_lasts_from_its_first_produce_to_its_end() -> None:
    producer = only_producer(init(0, 0), produce(0, 0, 10), produce(0, 2, 20), end(0, 35))
    (one,) = producer.transactions
    assert (one.state, one.records, one.end_ns and one.begin_ns and one.end_ns - one.begin_ns) == (
        "committed",
        4,
        25 * MS,
    )
    assert producer.longest_ns == 25 * MS and producer.timeout_ms == 4000


def test_what_is_open_when_the_capture_ends_is_open() -> None:
    producer = only_producer(init(0, 0), produce(0, 0, 10))
    assert producer.ended == (("open", 1),) and producer.transactions[0].end_ns is None


def test_an_end_without_a_beginning_counts_without_a_duration() -> None:
    """The capture began in between."""
    (one,) = only_producer(end(3, 5, committed=False)).transactions
    assert (one.state, one.begin_ns, one.epoch) == ("aborted", None, 3)


def test_markers_that_nobody_asked_for_are_the_coordinators() -> None:
    """Unless a new instance comes then: it was for that one."""
    marker = {"markers": [{"producer_id": 7, "producer_epoch": 1, "transaction_result": False}]}
    marked = exchange("WriteTxnMarkers", 27, 1, request=marker, response={}, start_ns=START_NS + 50 * MS)
    (one,) = only_producer(init(0, 0), produce(0, 0, 10), marked).transactions
    assert (one.state, one.by) == ("aborted", "its coordinator")
    producer = only_producer(init(0, 0), produce(0, 0, 10), marked, init(2, 60, "new"))
    assert (producer.transactions[0].state, producer.transactions[0].by.split()[0]) == ("fenced", "new")
    assert producer.ended == (("fenced", 1),)


def test_markers_before_the_answer_to_the_end_are_its_own() -> None:
    """A coordinator may tell brokers before it tells the producer."""
    marker = {"markers": [{"producer_id": 7, "producer_epoch": 0, "transaction_result": True}]}
    marked = exchange("WriteTxnMarkers", 27, 1, request=marker, response={}, start_ns=START_NS + 22 * MS)
    producer = only_producer(init(0, 0), produce(0, 0, 10), marked, end(0, 20))
    assert producer.ended == (("committed", 1),) and producer.transactions[0].by == ""


def test_a_batch_of_a_fenced_instance_opens_no_transaction() -> None:
    """The old instance is reported as fenced by the newest one that was given an epoch."""
    producer = only_producer(init(0, 0), init(1, 5, "new"), produce(0, 0, 10, errors=FENCED))
    assert producer.ended == ()
    assert [
        (one.client.split()[0], one.epoch, one.by_client.split()[0], one.by_epoch) for one in producer.fencings
    ] == [("old", 0, "new", 1)]


def test_what_is_remembered_stays_within_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever invents producers finds no room, and is counted."""
    monkeypatch.setattr(producer_table, "MAX_REMEMBERED_BYTES", 100_000)
    ledger = ProducerLedger()
    for number in range(1_000):
        one = produce(0, 0, number)
        assert one.request is not None and one.request.body is not None
        one.request.body["topic_data"][0]["partition_data"][0]["records"][0]["producer_id"] = number
        ledger.exchange(one)
    assert 0 < len(ledger.producers()) < 50 and ledger.left_out > 900


def test_a_transactional_id_that_is_no_text_is_shown_escaped() -> None:
    """Not as Python would print its bytes."""
    one = end(0, 5)
    assert one.request is not None and one.request.body is not None
    one.request.body["transactional_id"] = b"tx\xff"
    assert only_producer(one).transactional_id == "tx\\xff"


def test_a_sequence_with_other_bytes_is_told_apart_from_a_batch_sent_again() -> None:
    """By the checksum; among as many batches as brokers remember, and not across epochs."""
    sequence = Sequence()
    for epoch, base, crc in (
        (0, 76, 1),
        (0, 77, 2),
        (0, 78, 3),
        (0, 77, 2),
        (0, 78, 4),
        (0, 79, 5),
        (1, 0, 6),
        (1, 1, 7),
    ):
        sequence.add(epoch, base, 1, crc)
    assert (sequence.reused, sequence.duplicates, sequence.missing) == (1, 1, 0)
    for base in range(2, 2 + MAX_RECENT):
        sequence.add(1, base, 1, base)
    sequence.add(1, 1, 1, 99)
    assert (sequence.reused, sequence.duplicates) == (1, 2)
