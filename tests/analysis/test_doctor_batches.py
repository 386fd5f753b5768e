"""Batches that a producer without idempotence sends again, and what the broker makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.model import Connection, Event, Exchange
from kwiresniff.results.findings import Finding
from tests.support.exchanges import START_NS, exchange
from tests.support.incidents import SECOND, closed, findings, metadata, partition

MILLISECOND = SECOND // 1000
SEEN = metadata(partition(0, 1, 4, replica_nodes=[1], isr_nodes=[1]))


def sent(
    number: int, at_ns: int, *, took_ns: int | None = SECOND, offset: int = -1, crc: int = 77, error: int = 0,
    producer_id: int = -1, closed_ns: int | None = None, packets: int = 5,
) -> tuple[Exchange, Connection]:  # fmt: skip
    """A batch of three records on a connection of its own, which the client closes 0.4 s later, or when it is said."""
    closed_ns = at_ns + 400 * MILLISECOND if closed_ns is None else closed_ns
    on = closed(number, "client" if closed_ns else "", closed_ns, packets=[6, packets])
    batch = {
        "magic": 2, "crc": crc, "base_offset": 0, "last_offset_delta": 2, "records_count": 3, "size_bytes": 400,
        "producer_id": producer_id, "producer_epoch": 0, "base_sequence": 5 if producer_id >= 0 else -1,
    }  # fmt: skip
    body = {"acks": 1, "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": [batch]}]}]}
    part = {"index": 0, "base_offset": offset, "error_code": error}
    more: dict[str, Any] = {"outcome": "unanswered"} if took_ns is None else {}
    if error:
        more |= {"outcome": "error", "errors": [("responses[0].partition_responses[0].error_code", error, "X", True)]}
    answer = None if took_ns is None else {"responses": [{"name": "orders", "partition_responses": [part]}]}
    made = exchange(
        "Produce", 0, 9, request=body, response=answer, latency_ns=took_ns, start_ns=START_NS + at_ns, on=on, **more
    )
    return made, on


def read(first: int, end: int) -> Exchange:
    """A consumer gets the records of a range of offsets."""
    batch = {
        "magic": 2, "crc": 77, "base_offset": first, "last_offset_delta": end - first - 1, "records_count": end - first,
        "size_bytes": 400, "producer_id": -1,
    }  # fmt: skip
    answer = {"responses": [{"topic": "orders", "partitions": [{"partition_index": 0, "records": [batch]}]}]}
    return exchange(client_id="reader", request={"replica_id": -1}, response=answer, start_ns=START_NS + 20 * SECOND)


def doubled(*pairs: tuple[Exchange, Connection], more: tuple[Event, ...] = ()) -> Finding | None:
    events: list[Event] = [SEEN, *[one for one, _ in pairs], *more, *[on for _, on in pairs]]
    return next((one for one in findings(*events) if one.code == "records_doubled"), None)


def test_a_batch_that_is_sent_again_and_stored_twice_doubles_its_records() -> None:
    """The first answer came when the client had closed the connection; the broker gave two offsets."""
    one = doubled(sent(1, 0, offset=50), sent(2, 600 * MILLISECOND, offset=53, closed_ns=0), more=(read(48, 60),))
    assert one is not None and one.severity == "error"
    assert (one.numbers["sent_again"], one.numbers["records_doubled"]) == (1, 3)
    assert one.numbers["given_up_ns"] == 400 * MILLISECOND
    assert one.numbers["readers"] == ["reader 10.0.0.5"]
    assert "enable.idempotence=true" in one.remedy and "about 400 ms" in one.remedy


def test_each_of_several_attempts_counts() -> None:
    """The last one is answered in time."""
    tries = [sent(number, number * 600 * MILLISECOND, offset=50 + 3 * number) for number in range(4)]
    one = doubled(*tries, sent(9, 3 * SECOND, took_ns=MILLISECOND, offset=70, closed_ns=0))
    assert one is not None
    assert (one.numbers["sent_again"], one.numbers["records_doubled"]) == (4, 12)


def test_what_was_not_answered_may_be_stored_twice() -> None:
    """Without answers the capture does not show it: that is a warning with the doubt."""
    one = doubled(sent(1, 0, took_ns=None), sent(2, SECOND, took_ns=None))
    assert one is not None and one.severity == "warning"
    assert one.numbers["records_doubled"] == 0 and any("not in the capture" in text for text in one.details)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"offset": 50}, {"offset": 53, "crc": 78}, id="another batch"),
        pytest.param({"offset": 50, "producer_id": 7}, {"offset": 50, "producer_id": 7}, id="idempotent"),
        pytest.param({"offset": 50}, {"offset": 50}, id="captured twice"),
        pytest.param(
            {"offset": 50, "took_ns": MILLISECOND, "closed_ns": 0}, {"offset": 53, "closed_ns": 0}, id="answered before"
        ),
        pytest.param({"took_ns": None, "packets": 0}, {"took_ns": None, "packets": 0}, id="one direction only"),
    ],
)
def test_what_looks_alike_doubles_nothing(first: dict[str, Any], second: dict[str, Any]) -> None:
    """The same batch needs a reason to be sent again, and another offset."""
    assert doubled(sent(1, 0, **first), sent(2, 600 * MILLISECOND, **second)) is None


def test_a_batch_that_was_refused_is_sent_again_for_good_reason() -> None:
    """It was not stored the first time."""
    first = sent(1, 0, took_ns=MILLISECOND, error=6, closed_ns=0)
    assert doubled(first, sent(2, 600 * MILLISECOND, took_ns=MILLISECOND, offset=50, closed_ns=0)) is None
