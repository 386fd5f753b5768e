"""The timeline of groups, from hand-built exchanges; the recorded ones are in ``tests/cli/test_groups.py``."""

from __future__ import annotations

import io
from typing import Any

import pytest

from kwiresniff.analysis import group_events, groups
from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.model import Exchange
from kwiresniff.render.groups import GroupWriter
from kwiresniff.results.groups import GroupEvent
from tests.support.exchanges import START_NS, exchange

REBALANCE = [("error_code", 27, "REBALANCE_IN_PROGRESS", True)]
FENCED = [("error_code", 82, "FENCED_INSTANCE_ID", False)]


def timeline(*given: Exchange) -> list[GroupEvent]:
    made = GroupTimeline({"t-id": "orders"}.get)
    for one in given:
        made.add(one)
    return made.events()


def beat(epoch: int, answered: int, assignment: Any = None, **more: Any) -> Exchange:
    asked = {"group_id": "g", "member_id": "m", "member_epoch": epoch, **more}
    answer = {"error_code": 0, "member_id": "m", "member_epoch": answered, "assignment": assignment}
    return exchange("ConsumerGroupHeartbeat", 68, 1, request=asked, response=answer, start_ns=START_NS + epoch)


def assignment(*partitions: int) -> dict[str, Any]:
    return {"topic_partitions": [{"topic_id": "t-id", "partitions": list(partitions)}]}


def commit(offset: int, *, at: int = 0, member: str = "m", **more: Any) -> Exchange:
    parts = [{"partition_index": 3, "committed_offset": offset}]
    asked = {"group_id": "g", "member_id": member, "generation_id_or_member_epoch": 4}
    asked["topics"] = [{"name": "orders", "partitions": parts}]
    return exchange("OffsetCommit", 8, 8, request=asked, response={}, start_ns=START_NS + at, **more)


def test_heartbeats_that_say_nothing_new_are_left_out() -> None:
    found = timeline(
        beat(0, 1, assignment(0, 1), subscribed_topic_names=["orders"]),
        beat(1, 1),
        beat(1, 2),
        beat(2, 2),
        beat(2, 3, assignment(1, 2)),
        beat(-1, -1),
    )
    assert [(event.event, event.generation) for event in found] == [
        ("leave", None),  # its times are those of the epochs here, and -1 is the smallest
        ("join", 1),
        ("assigned", 1),
        ("epoch", 2),
        ("assigned", 3),
    ]
    leave, join, _, _, moved = found
    assert join.details["topics"] == ["orders"]
    assert moved.details["added"] == {"orders": [2]}
    assert moved.details["removed"] == {"orders": [0]}
    assert leave.details == {"static": False, "partitions": {"orders": [1, 2]}}


def test_commits_of_a_member_in_a_row_are_one_event() -> None:
    found = timeline(commit(5), commit(6, at=10), commit(9, at=20), commit(9, at=30, member="other"), commit(10, at=40))
    assert [(event.member_id, event.details["count"], event.details["offsets"]) for event in found] == [
        ("m", 3, {"orders-3": [5, 9]}),
        ("other", 1, {"orders-3": [9, 9]}),
        ("m", 1, {"orders-3": [10, 10]}),
    ]
    assert found[0].details["last_timestamp_ns"] == START_NS + 20


def test_a_commit_that_is_cut_off_tells_the_offsets_that_are_there() -> None:
    """A partition stands in it twice, the second time without its offset."""
    cut = commit(5)
    assert cut.request is not None and cut.request.body is not None
    cut.request.body["topics"][0]["partitions"].append({"partition_index": 3})
    (event,) = timeline(cut)
    assert list(event.details["offsets"].values()) == [[5, 5]]


def test_a_commit_is_of_the_protocol_that_its_member_speaks() -> None:
    """The number in it is a generation, or with a member that heartbeats by KIP-848 its epoch; before it left, too."""
    commits = [
        event
        for event in timeline(beat(3, 4), commit(5), beat(-1, -1), commit(6, member="other"))
        if event.event == "commit"
    ]
    assert [(event.member_id, event.protocol) for event in commits] == [("m", "consumer"), ("other", "classic")]


def test_a_commit_that_fails_or_is_not_answered_is_counted_in_its_event() -> None:
    unanswered = commit(7, latency_ns=None, outcome="unanswered")
    (event,) = timeline(commit(5), commit(6, errors=FENCED, outcome="error"), unanswered)
    assert event.details["errors"] == {"FENCED_INSTANCE_ID": 1, "unanswered": 1}


def test_a_rebalance_is_a_step_and_fencing_an_error() -> None:
    asked = {"group_id": "g", "member_id": "m", "generation_id": 3}
    found = timeline(
        exchange("Heartbeat", 12, 4, request=asked, response={}, errors=REBALANCE, outcome="error"),
        exchange("Heartbeat", 12, 4, request=asked, response={}, errors=FENCED, outcome="error"),
        exchange("SyncGroup", 14, 3, request=asked, latency_ns=None, outcome="unanswered"),
    )
    assert [(event.event, event.details["error"], event.generation) for event in found] == [
        ("rejoin", "REBALANCE_IN_PROGRESS", 3),
        ("error", "FENCED_INSTANCE_ID", 3),
        ("error", None, 3),
    ]


def test_a_static_member_is_the_same_under_a_new_member_id() -> None:
    def sync(member: str, *partitions: int) -> Exchange:
        asked = {"group_id": "g", "member_id": member, "group_instance_id": "static-1", "generation_id": 1}
        data = {"assigned_partitions": [{"topic": "orders", "partitions": list(partitions)}]}
        answer = {"assignment": b"..", "assignment_decoded": {"data": data}}
        return exchange("SyncGroup", 14, 3, request=asked, response=answer)

    first, second = timeline(sync("a", 0, 1), sync("b", 1))
    assert (first.details["added"], second.details["removed"]) == ({"orders": [0, 1]}, {"orders": [0]})


def test_a_connect_worker_is_assigned_connectors_and_tasks() -> None:
    """As Kafka names them, in the form of ``tests/codec/embedded/test_groups.py``; an unknown assignment is none."""
    source, sink = {"connector": "source", "tasks": [-1]}, {"connector": "sink", "tasks": [0, 1]}
    given: list[dict[str, Any]] = [
        {"assignment": [source, sink]}, {"assignment": [sink], "revoked": [source]}, {"assignment": []}, {},
    ]  # fmt: skip
    told = []
    for data in given:
        asked = {"group_id": "connect", "member_id": "w", "generation_id": 1, "protocol_type": "connect"}
        answer = {"assignment": b"..", "assignment_decoded": {"data": data} if data else None}
        out = io.StringIO()
        GroupWriter(out, None, False, []).write(timeline(exchange("SyncGroup", 14, 5, request=asked, response=answer)))
        told.append(out.getvalue().partition("generation 1")[2].partition("packet")[0].strip())
    assert told == ["source sink-0 sink-1", "sink-0 sink-1  - source", "nothing", "unknown"]


def test_members_removed_by_an_admin_leave_one_by_one() -> None:
    members = [{"member_id": "a", "reason": "away"}, {"member_id": "b", "group_instance_id": "s"}]
    asked = {"group_id": "g", "members": members}
    found = timeline(exchange("LeaveGroup", 13, 5, request=asked, response={"members": []}))
    assert [(event.member_id, event.instance_id, event.details["reason"]) for event in found] == [
        ("a", None, "away"),
        ("b", "s", None),
    ]


@pytest.mark.parametrize("others", [0, 20])
def test_more_members_than_a_group_has_are_counted_and_those_of_whom_something_is_known_told(
    others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of five of whom nothing is known two are told; one that had partitions leaves them wherever it stands, once."""
    monkeypatch.setattr(groups, "MAX_LEAVING", 2)
    data = {"assigned_partitions": [{"topic": "orders", "partitions": [0]}]}
    asked = {"group_id": "g", "member_id": "known", "generation_id": 1}
    made = GroupTimeline()
    for name in ("known", *(f"other-{number}" for number in range(others))):
        asked = {**asked, "member_id": name}
        made.add(exchange("SyncGroup", 14, 2, request=asked, response={"assignment_decoded": {"data": data}}))
    members = [{"member_id": name} for name in ("a", "b", "c", "d", "known", "e", "known", "a")]
    asked = {"group_id": "g", "members": members}
    made.add(exchange("LeaveGroup", 13, 3, request=asked, response={"members": []}))
    left = [event for event in made.events() if event.event == "leave"]
    assert [event.member_id for event in left] == ["a", "b", "known"]
    assert left[-1].details["partitions"] == {"orders": [0]}
    assert made.left_out == 5


def test_tasks_of_a_streams_group_are_told_by_kind() -> None:
    answer = {
        "error_code": 0, "member_id": "m", "member_epoch": 1,
        "active_tasks": [{"subtopology_id": "0", "partitions": [0, 1]}],
        "standby_tasks": [{"subtopology_id": "1", "partitions": [2]}],
        "warmup_tasks": [],
    }  # fmt: skip
    asked = {"group_id": "g", "member_id": "m", "member_epoch": 0}
    _, assigned = timeline(exchange("StreamsGroupHeartbeat", 88, 0, request=asked, response=answer))
    assert assigned.protocol == "streams"
    assert assigned.details["partitions"] == {"subtopology 0": [0, 1], "standby 1": [2]}


def test_groups_stand_together_and_what_is_too_much_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_events, "MAX_EVENTS", 3)

    def left(group: str, at: int) -> Exchange:
        asked = {"group_id": group, "member_id": "m"}
        return exchange("LeaveGroup", 13, 0, request=asked, response={}, start_ns=START_NS + at)

    made = GroupTimeline()
    for at, group in enumerate("abab"):
        made.add(left(group, at))
    assert ([event.group for event in made.events()], made.left_out) == (["b", "b", "a"], 1)


def test_what_is_about_no_group_is_passed_over() -> None:
    assert timeline(exchange(), exchange("Heartbeat", 12, 4, request=None, response=None)) == []
