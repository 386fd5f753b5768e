"""Consumers that are started again: where they begin, against what they had committed."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis.doctor.troubles import restarts
from kwiresniff.model import Event, Exchange
from tests.support.exchanges import START_NS, exchange
from tests.support.incidents import SECOND, codes, findings


def at(seconds: float) -> int:
    return START_NS + round(seconds * SECOND)


def topics(**part: Any) -> dict[str, Any]:
    return {"topics": [{"name": "orders", "partitions": [{"partition_index": 0, **part}]}]}


def joins(at_s: float, group: str) -> Exchange:
    request = {"group_id": group, "member_id": ""}
    errors = [("error_code", 79, "MEMBER_ID_REQUIRED", False)]
    return exchange("JoinGroup", 11, 7, request=request, response={}, errors=errors, start_ns=at(at_s))


def asks(at_s: float, group: str, committed: int) -> Exchange:
    response = {"groups": [{"group_id": group, "error_code": 0, **topics(committed_offset=committed)}]}
    return exchange("OffsetFetch", 9, 8, request={}, response=response, start_ns=at(at_s))


def lists(at_s: float, timestamp: int, offset: int) -> Exchange:
    asked, told = topics(timestamp=timestamp), topics(offset=offset)
    return exchange("ListOffsets", 2, 7, request=asked, response=told, start_ns=at(at_s))


def fetches(at_s: float, offset: int) -> Exchange:
    parts = [{"partition": 0, "fetch_offset": offset}]
    request = {"replica_id": -1, "topics": [{"topic": "orders", "partitions": parts}]}
    return exchange(request=request, response={"responses": []}, start_ns=at(at_s))


def commits(at_s: float, group: str, offset: int) -> Exchange:
    request = {"group_id": group, **topics(committed_offset=offset)}
    return exchange("OffsetCommit", 8, 8, request=request, response={}, start_ns=at(at_s))


def leaves(at_s: float, group: str) -> Exchange:
    return exchange("LeaveGroup", 13, 4, request={"group_id": group, "members": []}, response={}, start_ns=at(at_s))


def run(
    number: int, begins: int, ends: int, group: str = "mail", committed: int | None = None, also: int | None = None
) -> list[Event]:
    """A start every 20 seconds, which commits what it has read; ``committed`` is the answer to OffsetFetch, and it
    fetches from ``also`` next, if any."""
    start_s = number * 20
    asked = [asks(start_s + 0.1, group, committed)] if committed is not None else []
    read = [fetches(start_s + 0.3, begins), commits(start_s + 5, group, ends), leaves(start_s + 6, group)]
    sought = [fetches(start_s + 0.4, also)] if also is not None else []
    return [joins(start_s, group), *asked, read[0], *sought, *read[1:]]


def refused(at_s: float) -> Exchange:
    errors = [("responses[0].partitions[0].error_code", 1, "OFFSET_OUT_OF_RANGE", False)]
    return exchange(request=topics(), response={}, errors=errors, outcome="error", start_ns=at(at_s))


@pytest.mark.parametrize(
    ("events", "is_told"),
    [
        pytest.param([*run(0, 0, 30), *run(1, 0, 50), *run(2, 0, 80)], True, id="no OffsetFetch, as with an assign"),
        pytest.param([*run(0, 0, 30), *run(1, 0, 50, committed=30), *run(2, 0, 80, committed=50)], True, id="a seek"),
        pytest.param(
            [*run(0, 0, 30), *run(1, 30, 50, also=0), *run(2, 50, 80, also=0)], True, id="a seek after a first fetch"
        ),
        pytest.param([*run(0, 0, 30), *run(1, 0, 50)], False, id="one replay"),
        pytest.param([*run(0, 0, 30), *run(1, 30, 50), *run(2, 50, 80)], False, id="where the group stands"),
        pytest.param([*run(0, 0, 30), *run(1, 0, 50, committed=-1), *run(2, 0, 9, committed=-1)], False, id="expired"),
        pytest.param([*run(0, 0, 30), *run(1, 0, 50, committed=0), *run(2, 0, 80, committed=0)], False, id="set back"),
    ],
)
def test_a_consumer_that_reads_from_before_its_commits_at_each_start_is_told(
    events: list[Event], is_told: bool
) -> None:
    """Not where the group has no offsets any more, or was set back from outside."""
    found = [one for one in findings(*events) if one.code == "reads_from_beginning"]
    assert bool(found) == is_told
    for one in found:
        assert (one.severity, one.numbers["records"], one.count) == ("warning", 30 + 50, 2)
        assert "orders" in one.title and "group mail" in one.title


def test_a_consumer_whose_offsets_are_out_of_range_does_not_seek() -> None:
    """It begins elsewhere since the log does: the topic was made anew, for one."""
    events: list[Event] = []
    for number in range(4):
        join, *rest = run(number, 0, 30)
        events += [join, refused(number * 20 + 0.2), *rest]
    assert "reads_from_beginning" not in [code for code, _ in codes(*events)]


def sought(number: int, begins: int, ends: int, *, committed: int | None = None, asks_end: bool = True) -> list[Event]:
    """A start that asks where the log ends before its first fetch."""
    join, *rest = run(number, begins, ends, committed=committed)
    return [join, *([lists(number * 20 + 0.2, -1, begins)] if asks_end else []), *rest]


@pytest.mark.parametrize(
    ("events", "is_told"),
    [
        pytest.param([*run(0, 0, 30), *sought(1, 50, 60), *sought(2, 90, 99)], True, id="no OffsetFetch"),
        pytest.param(
            [*run(0, 0, 30), *sought(1, 50, 60, committed=30), *sought(2, 90, 99, committed=60)], True, id="a seek"
        ),
        pytest.param([*run(0, 0, 30), *sought(1, 50, 60), *run(2, 60, 70)], False, id="once"),
        pytest.param([*run(0, 0, 30), *sought(1, 30, 60), *sought(2, 60, 70)], False, id="nothing between"),
        pytest.param(
            [*run(0, 0, 30), *sought(1, 50, 60, committed=50), *sought(2, 90, 99, committed=90)], False, id="set on"
        ),
        pytest.param(
            [*run(0, 0, 30), *sought(1, 50, 60, committed=-1), *sought(2, 90, 99, committed=-1)], False, id="expired"
        ),
        pytest.param(
            [*run(0, 0, 30), *sought(1, 50, 60, asks_end=False), *sought(2, 90, 99, asks_end=False)],
            False,
            id="unasked",
        ),
    ],
)
def test_a_consumer_that_begins_at_the_end_at_each_start_is_told(events: list[Event], is_told: bool) -> None:
    """Not where its group has no offsets, or others than those that it committed."""
    found = [one for one in findings(*events) if one.code == "seeks_to_end"]
    assert bool(found) == is_told
    for one in found:
        assert (one.severity, one.numbers["records"], one.count) == ("warning", 20 + 30, 2)


def fresh(number: int, begins: int, ends: int) -> list[Event]:
    """A start in a group of its own, at the end of the log."""
    group = f"mail-{number}"
    join, asked, *rest = run(number, begins, ends, group, committed=-1)
    return [join, asked, lists(number * 20 + 0.2, -1, begins), *rest]


def test_a_consumer_in_another_group_at_each_start_misses_what_was_written_between() -> None:
    """Two groups may be a new name; three are a name with a random part."""
    events = [*fresh(0, 10, 50), *fresh(1, 70, 90), *fresh(2, 95, 99)]
    (found,) = [one for one in findings(*events) if one.code != "committed_early"]
    assert (found.code, found.severity, found.subject) == ("group_id_changes", "warning", "billing-1 10.0.0.5")
    assert found.numbers == {"groups": ["mail-0", "mail-1", "mail-2"], "records": (70 - 50) + (95 - 90), "again": 0}
    (found,) = [one for one in findings(*fresh(0, 0, 50), *fresh(1, 0, 90), *fresh(2, 0, 99)) if one.code == found.code]
    assert (found.severity, found.numbers["records"], found.numbers["again"]) == ("warning", 0, 50 + 90)
    assert "group_id_changes" not in [code for code, _ in codes(*events[: len(events) * 2 // 3])]


@pytest.mark.parametrize(
    ("asked", "is_told"),
    [([], True), ([lists(0.2, -1, 50)], False), ([lists(0.2, -2, 0)], False), ([fetches(0.2, 7)], False)],
)
def test_a_consumer_that_ends_where_its_group_has_no_offsets_is_told(asked: list[Exchange], is_told: bool) -> None:
    """It asks neither for the ends of the log nor for records; one that does has a policy to begin with."""
    once: list[Event] = [joins(0, "mail"), asks(0.1, "mail", -1), *asked, leaves(0.5, "mail")]
    again: list[Event] = [joins(3, "mail"), asks(3.1, "mail", -1), leaves(3.5, "mail")]
    more: list[Event] = [joins(6, "mail"), asks(6.1, "mail", -1), leaves(6.5, "mail")] if not asked else []
    found = [one for one in findings(*once, *again, *more) if one.code == "no_offset_to_begin"]
    assert bool(found) == is_told
    for one in found:
        assert (one.severity, one.count) == ("error", 3) and "auto.offset.reset=none" in one.title
    assert "no_offset_to_begin" not in [code for code, _ in codes(*once, joins(3, "mail"), asks(3.1, "mail", 8))]


@pytest.mark.parametrize("bound", ["MAX_CLIENTS", "MAX_PARTITIONS"])
def test_starts_that_are_followed_are_bounded(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients and partitions beyond the limit are not looked at."""
    monkeypatch.setattr(restarts, bound, 0)
    found = codes(*run(0, 0, 30), *run(1, 0, 50), *run(2, 0, 80))
    assert "reads_from_beginning" not in [code for code, _ in found]
