"""Share groups whose members do not get done with their records (KIP-932)."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis.doctor.troubles import share_deliveries
from kwiresniff.model import Exchange
from tests.support.exchanges import START_NS, exchange
from tests.support.incidents import SECOND, codes, findings

RELEASE, REJECT = 2, 3


def topic(**part: Any) -> list[dict[str, Any]]:
    return [{"topic_id": "id-1", "partitions": [{"partition_index": 0, "error_code": 0, **part}]}]


def acquired(at_s: float, deliveries: int, first: int = 7, last: int = 7, member: str = "m") -> Exchange:
    """A member is given records, for two seconds."""
    records = [{"first_offset": first, "last_offset": last, "delivery_count": deliveries}]
    response = {"acquisition_lock_timeout_ms": 2_000, "responses": topic(acquired_records=records)}
    request = {"group_id": "workers", "member_id": member, "topics": []}
    return exchange("ShareFetch", 78, 1, request=request, response=response, start_ns=START_NS + round(at_s * SECOND))


def acknowledged(at_s: float, kind: int = 1, *, refused: bool = False) -> Exchange:
    """It says what became of record 7."""
    batches = [{"first_offset": 7, "last_offset": 7, "acknowledge_types": [kind]}]
    request = {"group_id": "workers", "member_id": "m", "topics": topic(acknowledgement_batches=batches)}
    response = {"responses": topic(**({"error_code": 121} if refused else {}))}
    errors = [("responses[0].partitions[0].error_code", 121, "INVALID_RECORD_STATE", False)] if refused else []
    return exchange(
        "ShareAcknowledge", 79, 1, request=request, response=response, start_ns=START_NS + round(at_s * SECOND),
        errors=errors, outcome="error" if refused else "ok",
    )  # fmt: skip


def test_acknowledgements_after_the_end_of_the_lock_are_told_with_both_times() -> None:
    """5 s after the acquisition, where the lock lasts 2 s."""
    (found,) = findings(acquired(0, 1), acknowledged(5, refused=True))
    assert (found.code, found.severity, found.subject) == ("share_lock_expired", "warning", "group workers")
    assert found.numbers["lock_ms"] == 2_000 and "longer than the lock on them lasts (2 s)" in found.title
    (early,) = findings(acquired(0, 1), acknowledged(1, refused=True))
    assert "longer than" not in early.title
    assert codes(acquired(0, 1), acknowledged(1)) == []


def test_a_record_that_is_released_until_nobody_gets_it_is_told() -> None:
    """Three deliveries are no accident, two are."""
    events = [event for count in (1, 2, 3) for event in (acquired(count, count), acknowledged(count + 0.5, RELEASE))]
    (found,) = findings(*events)
    assert (found.code, found.severity) == ("share_redelivery", "warning")
    assert (found.numbers["deliveries"], found.numbers["released"], found.numbers["records"]) == (3, 3, 1)
    assert "orders-0 from 7" in found.title
    assert codes(*events[:4]) == []
    (found,) = findings(*events, acknowledged(9, REJECT))
    assert "rejected 1 record" in found.title


def ended(at_s: float) -> list[Exchange]:
    """The member ends its share session."""
    one = acquired(at_s, 1)
    assert one.request is not None and one.response is not None
    one.request.body = {"group_id": "workers", "member_id": "m", "share_session_epoch": -1, "topics": []}
    one.response.body = {}
    return [one]


def test_records_that_nobody_got_after_the_end_of_the_lock_are_told() -> None:
    """Their member asks for nothing, another one is given later records."""
    others = [acquired(at_s, 1, 100 + at_s, 100 + at_s, member="n") for at_s in range(1, 13)]
    (found,) = findings(acquired(0, 1, 0, 29), *others)
    assert (found.code, found.numbers["records"], found.numbers["over"]) == ("share_lock_held", 30, False)
    assert codes(acquired(0, 1, 0, 29), *others[:8]) == []


@pytest.mark.parametrize(
    ("events", "is_told"),
    [
        pytest.param([acquired(0, 1), acquired(2, 2, member="n")], True, id="from a member that is gone"),
        pytest.param([acquired(0, 1), acquired(0.5, 2, member="n")], False, id="at once, as from one that left"),
        pytest.param([acquired(0, 1), acknowledged(1), acquired(2, 2, member="n")], False, id="that were released"),
        pytest.param([acquired(0, 1), acquired(1.8, 1, 20, 20), acquired(2, 2, member="n")], False, id="it goes on"),
        pytest.param([acquired(0, 1), acquired(2, 2)], False, id="the same member"),
        pytest.param([acquired(0, 1), *ended(1), acquired(12, 2, member="n")], False, id="its session was ended"),
    ],
)
def test_records_that_a_lost_member_had_acquired_wait_for_the_end_of_the_lock(
    events: list[Exchange], is_told: bool
) -> None:
    """Another member gets them two seconds later."""
    told = findings(*events)
    assert [(one.code, one.severity, one.subject) for one in told] == [
        ("share_lock_held", "warning", "group workers")
    ] * is_told
    assert all(one.numbers["waited_ns"] == 2 * SECOND and "1 record of orders" in one.title for one in told)


def test_what_is_beyond_a_limit_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two groups the second; how long a batch was held that is not remembered."""
    late = [acquired(0, 1), acknowledged(5, refused=True)]
    monkeypatch.setattr(share_deliveries, "MAX_ACQUIRED", 0)
    (found,) = findings(*late)
    assert found.numbers["longest_ns"] == 0
    monkeypatch.setattr(share_deliveries, "MAX_GROUPS", 1)
    other = acquired(0, 1)
    assert other.request is not None and other.request.body is not None
    other.request.body["group_id"] = "other"
    assert codes(other, *late) == []
