"""Writes that were refused and never sent again."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis.doctor.troubles import abandoned_writes
from kwiresniff.model import Event, Exchange
from tests.support.exchanges import START_NS, connection, produced
from tests.support.incidents import SECOND, findings

REFUSED = ("responses[0].partition_responses[0].error_code", 6, "NOT_LEADER_OR_FOLLOWER", True)
MOMENT = {"magic": 2, "producer_id": -1}


def write(at_s: float, number: int, error: tuple[str, int, str, bool] | None = None, **more: Any) -> Exchange:
    """A batch of two records, which are of that second unless ``more`` says otherwise."""
    start_ns = START_NS + round(at_s * SECOND)
    batch = {
        **MOMENT, "records_count": 2, "size_bytes": 100 + number, "crc": 1000 + number,
        "base_timestamp": round(at_s * 1000), **more,
    }  # fmt: skip
    if error is None:
        return produced([batch], start_ns=start_ns, offset=number)
    wrong = [{"name": "orders", "partition_responses": [{"index": 0, "error_code": error[1], "base_offset": -1}]}]
    return produced([batch], start_ns=start_ns, response={"responses": wrong}, errors=[error], outcome="error")


def later(count: int = 5, **more: Any) -> list[Event]:
    return [write(2 + number, 2 + number, **more) for number in range(count)]


def abandoned(*events: Event) -> list[tuple[str, int]]:
    return [(one.severity, one.numbers["records"]) for one in findings(*events) if one.code == "writes_not_retried"]


def test_a_refused_batch_that_is_never_sent_again_is_lost() -> None:
    """The producer writes others to the partition for seconds."""
    assert abandoned(write(1, 1, REFUSED), *later()) == [("error", 2)]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([write(1, 1, REFUSED), write(1.2, 1, base_timestamp=1000), *later()], id="the same batch"),
        pytest.param([write(1, 1, REFUSED), write(1.2, 9, base_timestamp=1000), *later()], id="the same timestamp"),
        pytest.param([write(1, 1, REFUSED), write(1.2, 1, crc=7), *later()], id="the same size"),
        pytest.param([write(1, 1, REFUSED), *later(2)], id="too few since"),
        pytest.param([write(1, 1, REFUSED), *[write(1.5 + n / 10, 9 + n) for n in range(5)]], id="too soon"),
        pytest.param([write(1, 1, REFUSED), *[write(2 + n, 9 + n, REFUSED) for n in range(5)]], id="all refused"),
        pytest.param([write(1, 1, (REFUSED[0], 10, "MESSAGE_TOO_LARGE", False)), *later()], id="nobody retries that"),
        pytest.param([write(1, 1, (REFUSED[0], 7, "REQUEST_TIMED_OUT", True)), *later()], id="it may be stored"),
    ],
)
def test_what_may_have_been_sent_again_or_stored_is_not_lost(events: list[Event]) -> None:
    """Nothing is said of those."""
    assert abandoned(*events) == []


def test_sarama_gives_records_new_timestamps() -> None:
    """Nothing tells them from others when they are sent again."""
    events = [write(1, 1, REFUSED), *later()]
    on = connection()
    on.client_software = {"name": "sarama", "version": "1.43"}
    for one in events:
        assert isinstance(one, Exchange)
        one.connection = on
    assert abandoned(*events) == []


def test_partitions_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit nothing is kept."""
    monkeypatch.setattr(abandoned_writes, "MAX_SENDERS", 0)
    monkeypatch.setattr(abandoned_writes, "MAX_REFUSED", 0)
    assert abandoned(write(1, 1, REFUSED), *later()) == []
