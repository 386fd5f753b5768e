"""Consumers that get nowhere: what counts as reading the same again, and as not polling, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.model import Connection, Event, Exchange
from tests.support.exchanges import START_NS, committed, connection, exchange, fetched
from tests.support.incidents import SECOND, codes, findings

GROUP = {"group_id": "reports"}


def fetch(at_s: float, offset: int, records: int = 10, *, on: Connection | None = None, **more: Any) -> Exchange:
    """A fetch of orders-0 from an offset, which brings a batch of so many records from there on, or none of 0."""
    batch = {"base_offset": offset, "last_offset_delta": records - 1, "records_count": records, "magic": 2}
    given = [batch] if records else []
    return fetched(given, offset=offset, high_watermark=900, start_ns=START_NS + round(at_s * SECOND), on=on, **more)


def assigned(at_s: float, offset: int, on: Connection | None = None) -> Exchange:
    """A member asks where its group stands."""
    topics = [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": offset, "error_code": 0}]}]
    answer = {"groups": [{**GROUP, "topics": topics, "error_code": 0}]}
    start_ns = START_NS + round(at_s * SECOND)
    return exchange("OffsetFetch", 9, 8, request={"groups": [GROUP]}, response=answer, start_ns=start_ns, on=on)


def commit(at_s: float, offset: int) -> Exchange:
    return committed(offset, member=GROUP, start_ns=START_NS + round(at_s * SECOND))


def beat(at_s: float, **more: Any) -> Exchange:
    given = {"request": GROUP, "response": {"error_code": 0}, **more}
    return exchange("Heartbeat", 12, 4, start_ns=START_NS + round(at_s * SECOND), **given)


def closed(number: int, at_s: float) -> Connection:
    """A connection that a client has closed."""
    made = connection(number)
    made.closed_by, made.closed_ns = "client", START_NS + round(at_s * SECOND)
    return made


# -- reading the same again ----------------------------------------------------------------------------------------


def test_a_consumer_that_seeks_back_to_a_record_is_told_with_its_place() -> None:
    """Three times is often enough; the batch begins before the record."""
    first = fetch(0, 0, 60)
    (found,) = findings(assigned(0, 0), first, *(fetch(1 + at, 40, 20) for at in range(3)))
    assert (found.code, found.severity, found.count) == ("no_progress", "warning", 3)
    assert found.numbers["partitions"] == ["orders-0"] and found.numbers["offsets"] == [40]
    assert "orders-0 at offset 40" in found.title and "group reports" in found.title
    assert codes(first, fetch(1, 40, 20), fetch(2, 40, 20)) == []


def test_one_that_ends_and_begins_where_its_group_stands_is_told() -> None:
    """On a connection of its own each time."""
    events: list[Event] = []
    for start in range(5):
        on = connection(1 + start)
        events += [assigned(2 * start, 40, on), fetch(2 * start + 0.5, 40, on=on), closed(on.id, 2 * start + 1)]
    (found,) = findings(*events)
    assert (found.code, found.count, found.numbers["group"]) == ("no_progress", 4, "reports")


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([fetch(at, 10 * at) for at in range(8)], id="that reads on"),
        pytest.param(
            [one for at in range(6) for one in (assigned(2 * at, 40), fetch(2 * at + 1, 40))],
            id="that is given the partition again, by a rebalance",
        ),
        pytest.param(
            [fetch(at, 40, on=connection(1 + at)) for at in range(6)],
            id="of which several run, each from its beginning",
        ),
        pytest.param(
            [one for at in range(6) for one in (fetch(2 * at, 40, on=connection(1 + at)), closed(1 + at, 2 * at + 1))],
            id="that begins at an offset of its own each time it is run",
        ),
        pytest.param([fetch(at, 40, 0) for at in range(6)], id="that waits at the end"),
        pytest.param(
            [*(fetch(at, 40) for at in range(4)), commit(5, 41), *(fetch(6 + at, 40) for at in range(2))],
            id="that gets past the record in the end",
        ),
        pytest.param([fetch(at, at % 3 * 10) for at in range(9)][:6], id="that goes back here and there"),
    ],
)
def test_a_consumer_is_not_stuck(events: list[Event]) -> None:
    """Each of these reads something again, or seems to."""
    assert codes(*events) == []


# -- not polling ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([commit(at, 4) for at in range(1, 8)], "orders-0 at 4", id="the same offset"),
        pytest.param([commit(at, at) for at in range(1, 8)], "", id="offsets that go on"),
        pytest.param([commit(at, 4) for at in range(1, 4)], "", id="three times"),
        pytest.param([one for at in range(1, 8) for one in (commit(at, 4), fetch(at, 0, 0))], "", id="it fetches"),
    ],
)
def test_a_member_that_commits_the_same_again_and_fetches_nothing_polls_in_vain(
    events: list[Event], expected: str
) -> None:
    """It was given ten records, and its heartbeats go on."""
    found = findings(fetch(0, 0), *events, *(beat(at) for at in (9, 12, 15)))
    told = [one for one in found if one.code == "polls_in_vain"]
    assert [one.severity for one in told] == ["warning"] * bool(expected)
    assert all(expected in one.title for one in told)


def test_a_member_whose_fetch_is_not_answered_does_not_poll_in_vain() -> None:
    """It was under way all the time, and shows at its end."""
    beats = [one for at in range(1, 14) for one in (commit(at, 4), beat(at + 0.5))]
    waits = fetch(0.5, 10)
    waits.response, waits.outcome = None, "unanswered"
    found = codes(fetch(0, 0), *beats, fetch(14, 10, on=connection(2)), waits)
    assert "polls_in_vain" not in [code for code, _ in found]
    assert "polls_in_vain" in [code for code, _ in codes(fetch(0, 0), *beats, fetch(14, 10, on=connection(2)))]


def test_a_member_that_polls_in_vain_until_it_leaves_is_told() -> None:
    """One that leaves because it does not poll is not."""
    left = exchange("LeaveGroup", 13, 4, request={"group_id": "reports"}, response={}, start_ns=START_NS + 16 * SECOND)
    beats = [beat(at) for at in (9, 12, 15)]
    assert "polls_in_vain" in [
        code for code, _ in codes(fetch(0, 0), *(commit(at, 4) for at in range(1, 8)), *beats, left)
    ]
    assert codes(fetch(0, 0), *beats, left) == []


def test_heartbeats_without_a_fetch_are_told_with_their_time() -> None:
    """Until the next fetch, or to the last heartbeat."""
    first, *beats = fetch(0, 0), *(beat(at) for at in (3, 6, 9, 12, 15))
    (found,) = findings(first, *beats)
    assert (found.code, found.severity, found.numbers["group"]) == ("not_polling", "warning", "reports")
    assert "for 15 s" in found.title and found.evidence[0][0] == 3
    (found,) = findings(first, *beats, fetch(20, 10), beat(21))
    assert "for 20 s" in found.title
    (meant,) = findings(first, *beats, fetch(20, 5), beat(21))  # has been given 0 to 9
    assert (meant.code, meant.severity) == ("not_polling", "info") and "asked for records again" in meant.title


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([], id="only for a short time"),
        pytest.param([fetch(at, 10, 0) for at in (7, 14)], id="fetches that bring nothing"),
        pytest.param([commit(7, 5), commit(14, 9)], id="commits what it has"),
        pytest.param([exchange("SyncGroup", 14, 5, start_ns=START_NS + SECOND)], id="was given other partitions"),
        pytest.param(
            [beat(1, response={"error_code": 27}, errors=[("error_code", 27, "REBALANCE_IN_PROGRESS", False)])],
            id="was told to join again",
        ),
        pytest.param([closed(1, 1)], id="has lost its broker"),
        pytest.param([fetch(1, 10, latency_ns=None, outcome="unanswered")], id="waits for its broker"),
    ],
)
def test_a_member_that_fetches_nothing_may_have_its_reasons(events: list[Event]) -> None:
    """A member for 21 seconds, of which ten at most tell nothing."""
    short = 7 if not events else 21
    seen = [fetch(0, 0), *events, *(beat(at) for at in range(2, short, 3))]
    seen.sort(key=lambda one: one.request.first_ns if isinstance(one, Exchange) and one.request else START_NS + SECOND)
    assert codes(*seen) == []
