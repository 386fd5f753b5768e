"""Logs that lost records: how far they went before, and where they went on."""

from __future__ import annotations

import pytest

from kwiresniff.model import Exchange
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import SECOND, findings, metadata, partition, produce


def written(broker: str, base_offset: int, at_ns: int) -> Exchange:
    """A Produce to one record of orders-0, which the broker gave that offset."""
    answer = {"responses": [{"name": "orders", "partition_responses": [
        {"index": 0, "error_code": 0, "base_offset": base_offset}]}]}  # fmt: skip
    on = connection(int(broker[-1]), f"10.0.0.5:5000{broker[-1]}", f"{broker}:9092")
    return produce(at_ns, on=on, response=answer)


def read(broker: str, base_offset: int, at_ns: int) -> Exchange:
    """A Fetch that brought ten records of orders-0 from that offset on."""
    batch = {"base_offset": base_offset, "last_offset_delta": 9, "records_count": 10, "size_bytes": 500, "magic": 2}
    part = {"partition_index": 0, "error_code": 0, "high_watermark": base_offset + 10, "records": [batch]}
    on = connection(int(broker[-1]), f"10.0.0.5:5000{broker[-1]}", f"{broker}:9092")
    answer = {"responses": [{"topic": "orders", "partitions": [part]}]}
    return exchange(start_ns=START_NS + at_ns, on=on, request={"replica_id": -1}, response=answer)


def test_what_a_log_lost_stays_as_it_was_however_far_the_log_goes_later() -> None:
    """The old leader had acknowledged offset 100; the new one gives out 40 again, and then goes on."""
    late = [written("10.0.0.2", offset, (3 + offset) * SECOND) for offset in (41, 200, 500)]
    (found,) = findings(written("10.0.0.1", 90, 0), written("10.0.0.1", 100, SECOND),
                        written("10.0.0.2", 40, 2 * SECOND), *late)  # fmt: skip
    assert (found.code, found.numbers["offsets"], found.numbers["lost_records"]) == ("records_lost", [[41, 101]], 61)
    assert "written up to offset 100;" in found.details[0] and "went on from 40" in found.details[0]


def leads(node: int, epoch: int, at_ns: int) -> Exchange:
    """A Metadata answer of node 3."""
    on = connection(3, "10.0.0.5:50003", "10.0.0.3:9092")
    return metadata(partition(0, node, epoch, replica_nodes=[1, 2], isr_nodes=[1, 2]), at_ns=at_ns, on=on)


@pytest.mark.parametrize(
    ("acks", "lasts_s", "words", "others"),
    [
        (-1, 1, ["unclean leader election"], ["alone", "cut off"]),
        (1, 1, ["alone had acknowledged (acks=1)", "a failover, or an unclean leader election"], ["cut off"]),
        (
            1,
            9,
            ["alone had acknowledged", "(node 1) acknowledged writes for 6 s", "cut off"],
            ["unclean"],
        ),
    ],
)
def test_what_a_leader_alone_acknowledged_is_lost_by_any_failover(
    acks: int, lasts_s: int, words: list[str], others: list[str]
) -> None:
    """One that goes on after another leads is cut off from its controllers: nobody tells it so."""
    before = [written("10.0.0.1", 90 + at, at * SECOND) for at in range(lasts_s + 1)]
    for one in before:
        assert one.request is not None and one.request.body is not None
        one.request.body["acks"] = acks
    after = written("10.0.0.2", 90, 20 * SECOND)
    events = sorted([leads(1, 4, 0), *before, leads(2, 5, 3 * SECOND), after], key=lambda one: one.request.first_ns)  # type: ignore[union-attr]
    (found,) = [one for one in findings(*events) if one.code == "records_lost"]
    assert [word for word in words if word not in found.title] == []
    assert [word for word in others if word in found.title] == []


def test_what_a_consumer_had_read_of_a_lost_log_stays_as_it_was() -> None:
    """A consumer had read up to offset 109 when the new leader's epoch ended at 40; then it reads on there."""
    answer = {"topics": [{"topic": "orders", "partitions": [{"partition": 0, "error_code": 0, "end_offset": 40}]}]}
    on = connection(2, "10.0.0.5:50002", "10.0.0.2:9092")
    asks = exchange("OffsetForLeaderEpoch", 23, 4, request={"replica_id": -1}, response=answer, on=on,
                    start_ns=START_NS + 2 * SECOND)  # fmt: skip
    late = [read("10.0.0.2", offset, (3 + offset) * SECOND) for offset in (40, 300)]
    (found,) = findings(read("10.0.0.1", 90, 0), read("10.0.0.1", 100, SECOND), asks, *late)
    assert (found.code, found.numbers["offsets"], found.numbers["lost_records"]) == ("records_lost", [[40, 110]], 70)
    assert "had read up to offset 109;" in found.details[0] and "ends at 40" in found.details[0]


def sent(broker: str, base_offset: int, at_ns: int, sequence: int, producer_id: int = 7) -> Exchange:
    """A Produce of an idempotent producer to orders-0, which the broker gave that offset."""
    one = written(broker, base_offset, at_ns)
    assert one.request is not None and one.request.body is not None
    fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
    one.request.body["topic_data"][0]["partition_data"][0]["records"][0] |= fields
    return one


def test_a_batch_sent_again_to_a_new_leader_is_no_loss() -> None:
    """The new leader has it, and answers with its first offset, below what others have written since (KIP-98)."""
    begun = [sent("10.0.0.1", 100, 0, 0), sent("10.0.0.1", 101, 1000, 0, producer_id=8)]
    assert not findings(*begun, sent("10.0.0.2", 100, SECOND, 0), sent("10.0.0.2", 102, 2 * SECOND, 1))
    (loss,) = findings(*begun, sent("10.0.0.2", 100, SECOND, 1))
    assert (loss.code, loss.numbers["lost_records"]) == ("records_lost", 2)


def test_the_first_of_two_answers_to_a_batch_may_not_be_in_the_capture() -> None:
    """What counts is that the batch was sent; one that was refused was not taken, and may show a loss."""
    first = sent("10.0.0.1", 100, 0, 0)
    first.response, first.outcome = None, "unanswered"
    other = sent("10.0.0.1", 101, 1000, 0, producer_id=8)
    codes = [one.code for one in findings(first, other, sent("10.0.0.2", 100, SECOND, 0))]
    assert "records_lost" not in codes
    refused = sent("10.0.0.1", -1, 0, 0)
    refused.errors = [("responses[0].partition_responses[0].error_code", 6, "NOT_LEADER_OR_FOLLOWER", True)]
    codes = [one.code for one in findings(other, refused, sent("10.0.0.2", 100, SECOND, 0))]
    assert "records_lost" in codes
