"""Groups that rebalance again and again or for long: each member with what it did."""

from __future__ import annotations

import pytest

from kwiresniff.model import Event, Exchange
from tests.support.exchanges import START_NS, exchange
from tests.support.incidents import SECOND, findings


def beat(
    at: int, client_id: str, asked: int, epoch: int, api: str = "ConsumerGroupHeartbeat", key: int = 68
) -> Exchange:
    request = {"group_id": "g", "member_id": client_id, "member_epoch": asked}
    response = {"member_id": client_id, "member_epoch": epoch}
    return exchange(
        api, key, 0, request=request, response=response, client_id=client_id, start_ns=START_NS + at * SECOND
    )


@pytest.mark.parametrize(
    ("api", "key", "protocol"),
    [
        ("ConsumerGroupHeartbeat", 68, "consumer"),
        ("ShareGroupHeartbeat", 76, "share"),
        ("StreamsGroupHeartbeat", 88, "streams"),
    ],
)
def test_churn_in_groups_of_the_newer_protocols_is_told_with_each_member(api: str, key: int, protocol: str) -> None:
    """A group that only starts and grows is none."""
    grows = [beat(at, f"m{at}", 0, at + 1, api, key) for at in range(8)]
    assert findings(*grows) == []
    churn: list[Event] = []
    for at in range(0, 12, 2):
        churn += [beat(at, "flaky", 0, at + 1, api, key), beat(at + 1, "flaky", -1, -1, api, key)]
        churn += [beat(at + 1, "steady", at, at + 2, api, key)]
    (found,) = findings(*churn)
    assert (found.code, found.subject, found.numbers["protocol"]) == ("rebalances", "group g", protocol)
    assert "epochs" in found.title and "6 leaves" in found.title
    assert found.details[0] == "flaky 10.0.0.5 joined 6 times, left 6 times, came back 5 times on the same connection"


def test_applications_that_share_a_group_and_disturb_each_other_are_a_warning() -> None:
    """The rebalances of their group are a symptom of that; without them it is a word in passing."""
    quiet: list[Event] = []
    for client_id, topic in (("orders-app", "orders"), ("bills-app", "bills")):
        quiet.append(beat(0, client_id, 0, 1))
        quiet[-1].request.body["subscribed_topic_names"] = [topic]  # type: ignore[union-attr, index]
    assert [(one.code, one.severity) for one in findings(*quiet)] == [("shared_group", "info")]
    churn = list(quiet)
    for at in range(2, 14, 2):
        churn += [beat(at, "orders-app", 0, at + 1), beat(at + 1, "orders-app", -1, -1)]
    (found,) = findings(*churn)
    assert (found.code, found.severity) == ("shared_group", "warning")


def join(client_id: str, asked_s: float, waited_s: float, generation: int = 7) -> Exchange:
    request = {"group_id": "packers", "member_id": client_id, "rebalance_timeout_ms": 30_000}
    return exchange(
        "JoinGroup", 11, 9, request=request, response={"generation_id": generation, "member_id": client_id},
        client_id=client_id, start_ns=START_NS + int(asked_s * SECOND), latency_ns=int(waited_s * SECOND),
        waiting="rebalance" if waited_s else "",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (join("slow", 12, 0.1), "it waited for slow 10.0.0.5, which joined last (its max.poll.interval.ms is 30 s)"),
        (join("second", 1, 11), "it waited for a member that did not come back in time"),
    ],
)
def test_a_long_rebalance_names_the_member_that_it_waited_for(last: Exchange, words: str) -> None:
    """The one that joined last; where that one waited for long as well, somebody else did not come back."""
    (found,) = findings(join("first", 0, 12.1), last)
    assert (found.code, found.severity) == ("long_rebalance", "warning")
    assert words in found.title


@pytest.mark.parametrize(("member", "expected"), [("", "commit_from_outside"), ("packer-7", "member_removed")])
def test_who_commits_without_being_a_member_was_not_removed(member: str, expected: str) -> None:
    """Whoever sets offsets of a group has no member id, one that was removed has."""
    asked = {"group_id": "packers", "member_id": member, "topics": [{"name": "parcels", "partitions": []}]}
    errors = [("topics[0].partitions[0].error_code", 25, "UNKNOWN_MEMBER_ID", False)]
    (found,) = findings(exchange("OffsetCommit", 8, 8, request=asked, response={}, errors=errors, outcome="error"))
    assert found.code == expected
    assert member or ("group packers" in found.title and found.severity == "warning")


@pytest.mark.parametrize(("protocol_type", "words"), [("connect", "config.storage.topic"), ("consumer", "")])
def test_a_member_that_joins_its_own_generation_again_and_again_goes_round_in_a_circle(
    protocol_type: str, words: str
) -> None:
    """As a Connect worker does that has not read the config that its group's leader has."""
    request = {"group_id": "connect", "member_id": "w", "protocol_type": protocol_type}
    joins = [
        exchange(
            "JoinGroup", 11, 7, client_id="worker-b", request=request, start_ns=START_NS + at * SECOND // 100,
            response={"generation_id": 4 + (at > 30), "member_id": "w"},
        )
        for at in range(40)
    ]  # fmt: skip
    (found,) = findings(*joins)
    assert (found.code, found.severity, found.subject) == ("rebalances", "warning", "group connect")
    assert "worker-b 10.0.0.5 joined the generation that it was in again and again, 38 times" in found.title
    assert words in found.remedy and "session" not in found.title
    assert findings(*joins[:8]) == []


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("late", [False, True])
def test_members_that_are_restarted_once_are_no_more_than_a_deployment(members: int, late: bool) -> None:
    """Each comes and goes twice, by the end of the capture; a third time is churn. A commit for a generation that has
    just ended is none."""
    events: list[Event] = []
    for number in range(3 * members):
        at, client, member = START_NS + number * 20 * SECOND, f"c{number % members}", f"m-{number}"
        answer = {"member_id": member, "members": [{"member_id": f"m-{one}"} for one in range(members)]}
        left = {"group_id": "g", "members": [{"member_id": member}]}
        for half in (0, 1):
            joined = {**answer, "generation_id": 2 * number + half}
            start_ns, request = at + half * SECOND, {"group_id": "g"}
            events.append(
                exchange("JoinGroup", 11, 7, request=request, response=joined, start_ns=start_ns, client_id=client)
            )
        events.append(
            exchange("LeaveGroup", 13, 4, request=left, response={}, start_ns=at + 9 * SECOND, client_id=client)
        )
    if late:
        asked = {"group_id": "g", "member_id": "m-0", "topics": [{"name": "parcels", "partitions": []}]}
        errors = [("topics[0].partitions[0].error_code", 22, "ILLEGAL_GENERATION", False)]
        behind = exchange("OffsetCommit", 8, 8, request=asked, response={}, errors=errors, client_id="c0",
                          outcome="error", start_ns=START_NS + 8 * SECOND)  # fmt: skip
        events.insert(2, behind)
    (once, *_), (twice, *_) = findings(*events[: 6 * members + late]), findings(*events)
    assert (once.code, once.severity) == ("rebalances", "info")
    assert (twice.code, twice.severity) == ("rebalances", "warning")
    assert members == 1 or "as its members are restarted" in once.title


def own_commit(number: int, client: str, group: str = "g", member: str = "") -> Exchange:
    """A commit of orders-0, by default of nobody who is a member."""
    topics = [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": number}]}]
    request = {"group_id": group, "member_id": member, "generation_id_or_member_epoch": -1, "topics": topics}
    start_ns = START_NS + number * SECOND
    return exchange("OffsetCommit", 8, 8, request=request, response={}, client_id=client, start_ns=start_ns)


@pytest.mark.parametrize(("commits", "severity"), [(True, "info"), (False, "warning")])
def test_a_job_that_is_started_again_and_again_and_commits_is_no_churn(commits: bool, severity: str) -> None:
    """The only member, which leaves in order each time."""
    events: list[Event] = []
    for number in range(5):
        at, member = number * 20, f"m-{number}"
        answer = {"member_id": member, "members": [{"member_id": member}], "generation_id": number}
        left = {"group_id": "g", "members": [{"member_id": member}]}
        start_ns, end_ns = START_NS + at * SECOND, START_NS + (at + 9) * SECOND
        events.append(exchange("JoinGroup", 11, 7, request={"group_id": "g"}, response=answer, start_ns=start_ns))
        events += [own_commit(at + 5, "billing-1", member=member)] if commits else []
        events.append(exchange("LeaveGroup", 13, 4, request=left, response={}, start_ns=end_ns))
    (found,) = [one for one in findings(*events) if one.code == "rebalances"]
    assert found.severity == severity and "its only member comes and goes: 5 joins, 5 leaves" in found.title


@pytest.mark.parametrize(
    ("events", "is_told"),
    [
        pytest.param([own_commit(n, f"worker-{n % 2}") for n in range(8)], True, id="by turns"),
        pytest.param([own_commit(n, f"worker-{n // 4}") for n in range(8)], False, id="one takes over"),
        pytest.param([own_commit(n, f"worker-{n % 2}", f"g-{n % 2}") for n in range(8)], False, id="two groups"),
        pytest.param([own_commit(n, f"worker-{n % 2}", member="m") for n in range(8)], False, id="members"),
    ],
)
def test_clients_that_commit_for_a_group_by_turns_without_being_members_are_told(
    events: list[Event], is_told: bool
) -> None:
    """Each assigns the same partition to itself."""
    found = [one for one in findings(*events) if one.code == "standalone_consumers"]
    assert bool(found) == is_told
    for one in found:
        assert (one.severity, one.subject, one.numbers["turns"]) == ("warning", "group g", 7)
        assert one.named("topic") == ["orders"] and len(one.named("client")) == 2


def subscribe(at: int, number: int, generation: int, topics: list[str], member: str = "") -> Exchange:
    """A join of one of three members, with the id that it has, or a new one."""
    subscription = {"name": "range", "metadata_decoded": {"data": {"topics": topics}}}
    request = {"group_id": "g", "member_id": member, "protocol_type": "consumer", "protocols": [subscription]}
    answer = {"generation_id": generation, "member_id": f"m-{number}"}
    start_ns = START_NS + at * SECOND
    return exchange("JoinGroup", 11, 7, request=request, response=answer, client_id=f"c{number}", start_ns=start_ns)


def test_a_group_whose_pattern_matches_topics_that_come_and_go_rebalances_for_that() -> None:
    """Nobody is restarted; the deletions of these topics are its symptoms."""
    topics = [["events"], *[["events", f"tmp-{turn}"] for turn in range(6)]]
    events: list[Event] = [
        subscribe(5 * turn, number, turn + 1, topics[turn], f"m-{number}" if turn else "")
        for turn in range(7)
        for number in range(3)
    ]
    (found,) = findings(*events)
    assert (found.code, found.severity, found.subject) == ("rebalances", "warning", "group g")
    assert "topics are made or deleted: tmp-0, tmp-1" in found.title and "restarted" not in found.title
    assert findings(*events[:9]) == []


def test_members_that_come_once_and_go_once_are_no_storm() -> None:
    """A group that starts, grows and ends goes through a generation for each of them."""
    events: list[Event] = [subscribe(number, number, number + 1, ["events"]) for number in range(3)]
    for number in range(3):
        left = {"group_id": "g", "members": [{"member_id": f"m-{number}"}]}
        start_ns = START_NS + (10 + number) * SECOND
        events.append(exchange("LeaveGroup", 13, 4, request=left, client_id=f"c{number}", start_ns=start_ns))
        events += [subscribe(10 + number, 2, number + 4, ["events"], "m-2")] if number < 2 else []
    assert findings(*events) == []
