"""Groups that nobody is in any more, that begin anew at every start, or that have more members than work."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from kwiresniff.analysis.doctor import subjects
from kwiresniff.analysis.doctor.troubles import departures, early_commits, idle_members, uncommitted_starts
from kwiresniff.model import Event, Exchange
from tests.support.exchanges import START_NS, committed, connection, exchange, fetched, produced
from tests.support.incidents import SECOND, codes, findings

GROUP = "backend"


def at(seconds: float) -> int:
    return START_NS + round(seconds * SECOND)


def join(client: str, at_s: float, *, session_ms: int = 10_000, topic: str = "orders", **answer: Any) -> Exchange:
    """A member that subscribes to a topic joins a group of its own, with an id of its own each time."""
    subscription = {"name": "range", "metadata_decoded": {"data": {"topics": [topic]}}}
    request = {"group_id": GROUP, "session_timeout_ms": session_ms, "member_id": "", "protocols": [subscription]}
    response = {"generation_id": 1, "member_id": f"{client}-{at_s}", **answer}
    return exchange("JoinGroup", 11, 7, client_id=client, request=request, response=response, start_ns=at(at_s))


def leave(client: str, at_s: float, joined_s: float) -> Exchange:
    request = {"group_id": GROUP, "members": [{"member_id": f"{client}-{joined_s}"}]}
    return exchange("LeaveGroup", 13, 4, client_id=client, request=request, response={}, start_ns=at(at_s))


def fetch(client: str, at_s: float, offset: int = 0, *, codec: str = "snappy", records: int = 10) -> Exchange:
    batch = {"base_offset": offset, "last_offset_delta": records - 1, "records_count": records, "compression": codec}
    return fetched([{**batch, "magic": 2}], high_watermark=900, client_id=client, start_ns=at(at_s))


def offsets(client: str, at_s: float, committed: int) -> Exchange:
    """A member asks where its group stands; -1 is nowhere."""
    part = {"partition_index": 0, "committed_offset": committed, "error_code": 0}
    response = {"groups": [{"group_id": GROUP, "topics": [{"name": "orders", "partitions": [part]}], "error_code": 0}]}
    request = {"groups": [{"group_id": GROUP}]}
    return exchange("OffsetFetch", 9, 8, client_id=client, request=request, response=response, start_ns=at(at_s))


def commit(
    client: str, at_s: float, offset: int, joined_s: float, api: str = "OffsetCommit", key: int = 8, **more: Any
) -> Exchange:
    member = {"group_id": GROUP, "member_id": f"{client}-{joined_s}"}
    return committed(offset, member=member, api=api, api_key=key, client_id=client, start_ns=at(at_s), **more)


def writes(first_s: float, last_s: float) -> list[Event]:
    """A producer that writes ten records to orders each second."""
    batch = {"magic": 2, "records_count": 10, "size_bytes": 1000, "producer_id": 7, "producer_epoch": 0}
    times = [at(first_s + number) for number in range(int(last_s - first_s))]
    return [produced([batch], client_id="shop", start_ns=start_ns) for start_ns in times]


def crash(client: str, joined_s: float, codec: str = "snappy") -> list[Event]:
    """A member that leaves a tenth of a second after its first records."""
    return [
        join(client, joined_s), fetch(client, joined_s + 1, codec=codec), leave(client, joined_s + 1.1, joined_s),
    ]  # fmt: skip


# -- a codec that no member can read ---------------------------------------------------------------------------------


def test_members_that_all_leave_at_their_first_snappy_batches_lack_the_codec() -> None:
    """The group, who left, the codec, the topic, and what piles up since."""
    (found,) = findings(*crash("a", 0), *crash("b", 2), *writes(4, 10))
    assert (found.code, found.severity, found.subject) == ("codec_not_supported", "error", "group backend")
    assert found.numbers["codecs"] == ["snappy"] and found.numbers["records"] == 60
    assert found.numbers["clients"] == ["a 10.0.0.5", "b 10.0.0.5"]
    assert [one.code for one in found.symptoms] in ([], ["group_deserted"])


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*crash("a", 0, "gzip"), *writes(4, 10)], id="gzip, which every library has"),
        pytest.param([*crash("a", 0, "none"), *writes(4, 10)], id="no codec at all"),
        pytest.param([*crash("a", 0), join("a", 3), fetch("a", 4), *writes(4, 10)], id="one that comes back and stays"),
        pytest.param([*crash("a", 0)], id="nothing that is written since"),
        pytest.param([*crash("a", 0), *writes(1.5, 3)], id="an end of the capture right after it"),
        pytest.param(
            [join("a", 0), fetch("a", 1), commit("a", 1.5, 10, 0), leave("a", 2, 0), *writes(4, 10)],
            id="a commit behind the records",
        ),
        pytest.param([join("a", 0), fetch("a", 1), leave("a", 8, 0), *writes(9, 15)], id="seven seconds of work"),
        pytest.param(
            [*crash("a", 0), join("b", 2), fetch("b", 3), commit("b", 4, 10, 2), leave("b", 9, 2), *writes(10, 16)],
            id="another member that could read them",
        ),
    ],
)
def test_members_that_leave_may_have_other_reasons(events: list[Event]) -> None:
    """Each of these lacks one of the things that must have been seen."""
    assert codes(*events) == []


def test_members_that_crash_again_and_again_at_the_codec_are_told_without_a_deserted_group() -> None:
    """A container that is started again each time: its rebalances are symptoms."""
    events = [one for start in range(5) for one in crash("a", 10 * start)]
    assert [one.code for one in findings(*events)] == ["codec_not_supported"]


# -- groups without members ------------------------------------------------------------------------------------------


def test_a_group_that_nobody_is_in_while_its_topic_is_written_is_told_after_a_session() -> None:
    """As long as a member that fell silent might come back, nothing is."""
    left = [join("a", 0), fetch("a", 1, codec="none"), leave("a", 20, 0)]
    assert codes(*left, *writes(21, 30)) == []
    assert codes(*left, *writes(31, 38)) == [("group_deserted", "info")]
    (found,) = findings(*left, *writes(21, 40))
    assert (found.code, found.severity, found.numbers["records"]) == ("group_deserted", "warning", 190)
    assert "a 10.0.0.5 left" in found.title and "orders" in found.title


def test_a_member_that_closes_its_connection_has_left_until_it_comes_back() -> None:
    """Killed processes do not leave; those that change to another coordinator go on."""
    gone = connection()
    gone.closed_by, gone.closed_ns, gone.closed_packet = "client", at(5), 90
    events = [join("a", 0), gone, *writes(6, 30)]
    assert codes(*events) == [("group_deserted", "error")]
    request = {"group_id": GROUP, "member_id": "a-0"}
    beat = exchange("Heartbeat", 12, 4, client_id="a", request=request, response={}, start_ns=at(6), on=connection(2))
    assert codes(join("a", 0), gone, beat, *writes(7, 30)) == []


def test_members_that_only_the_leader_was_told_of_are_in_the_group() -> None:
    """They sit on other hosts, and nothing shows whether they have left."""
    told = [{"member_id": "a-0"}, {"member_id": "elsewhere"}]
    assert codes(join("a", 0, members=told), leave("a", 2, 0), *writes(3, 30)) == []


def test_groups_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit a group is not looked at."""
    left = [join("a", 0), leave("a", 2, 0), *writes(3, 30)]
    assert codes(*left) == [("group_deserted", "warning")]
    monkeypatch.setattr(subjects, "MAX_SUBJECTS", 0)
    assert codes(*left) == []


# -- starts without committed offsets --------------------------------------------------------------------------------


def run(at_s: float, first: int, last: int, seconds: float = 8) -> list[Event]:
    """A consumer that starts without a committed offset, and reads from one offset to another."""
    middle = (first + last) // 2
    return [
        offsets("export", at_s, -1),
        fetch("export", at_s + 1, first, codec="none", records=middle - first),
        fetch("export", at_s + 1 + seconds, middle, codec="none", records=last - middle),
    ]


def test_a_group_that_never_commits_reads_everything_again_at_every_start() -> None:
    """With what was given in all, how many records these are, and how many were given before."""
    (found,) = findings(*run(0, 0, 100), *run(20, 0, 120), *run(40, 0, 140))
    assert (found.code, found.severity, found.subject) == ("no_committed_offsets", "error", "group backend")
    numbers = {name: found.numbers[name] for name in ("starts", "records", "existing", "doubled", "skipped")}
    assert numbers == {"starts": 3, "records": 360, "existing": 140, "doubled": 220, "skipped": 0}
    assert not found.details


def test_a_group_that_begins_at_the_end_each_time_misses_what_was_written_meanwhile() -> None:
    """``auto.offset.reset=latest``: nothing is read twice, and 900 records never."""
    (found,) = findings(*run(0, 0, 100), *run(20, 1_000, 1_100))
    assert (found.code, found.severity) == ("no_committed_offsets", "warning")
    assert found.numbers["skipped"] == 900 and "never read" in found.title


def test_short_runs_are_told_with_the_doubt_that_they_end_before_a_commit_is_due() -> None:
    """Consumers commit every five seconds by default."""
    (found,) = findings(*run(0, 0, 100, 1), *run(20, 0, 120, 1))
    assert any("auto.commit.interval.ms" in one for one in found.details)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param([commit("export", 30, 100, 0)], id="commits in the end"),
        pytest.param([commit("export", 30, 100, 0, "TxnOffsetCommit", 28)], id="commits in a transaction"),
        pytest.param([offsets("export", 60, 100)], id="has committed offsets after all"),
    ],
)
def test_a_group_that_commits_is_not_told(more: list[Event]) -> None:
    """Whoever commits, and however."""
    assert "no_committed_offsets" not in [code for code, _ in codes(*run(0, 0, 100), *run(20, 0, 120), *more)]


def test_commits_that_are_refused_are_told_as_that() -> None:
    """The answer to them is the reason, and has a finding of its own."""
    denied = [("topics[0].partitions[0].error_code", 29, "TOPIC_AUTHORIZATION_FAILED", False)]
    told = findings(*run(0, 0, 100), *run(20, 0, 120), commit("export", 30, 100, 0, errors=denied, outcome="error"))
    (found,) = [one for one in told if one.code == "no_committed_offsets"]
    assert "its commits are refused (1 of them)" in found.title
    assert "topic_authorization_failed" in [one.code for one in told]


def test_one_start_is_none_too_many() -> None:
    """Every group begins without offsets once; that of an exporter that asks for offsets reads nothing."""
    assert codes(*run(0, 0, 100), offsets("export", 30, -1), offsets("export", 40, -1)) == []


# -- members without work --------------------------------------------------------------------------------------------


def assigned(client: str, at_s: float, partitions: list[int] | None, user_data: str | None = None) -> Exchange:
    topics = [{"topic": "orders", "partitions": partitions}] if partitions else []
    opened = {"data": {"assigned_partitions": topics, "user_data": user_data}}
    response = {"assignment": "...", "assignment_decoded": opened}
    request = {"group_id": GROUP, "member_id": client, "generation_id": 1}
    return exchange("SyncGroup", 14, 5, client_id=client, request=request, response=response, start_ns=at(at_s))


def beat(client: str, at_s: float) -> Exchange:
    request = {"group_id": GROUP, "member_id": client}
    return exchange("Heartbeat", 12, 4, client_id=client, request=request, response={}, start_ns=at(at_s))


def test_members_without_partitions_are_counted() -> None:
    """Two partitions for three members; those that the consumer protocol assigns count the same."""
    events = [assigned("a", 0, [0]), assigned("b", 0, [1]), assigned("c", 0, None), beat("c", 12)]
    (found,) = findings(*events)
    assert (found.code, found.severity) == ("idle_members", "info")
    assert "1 of 3 members" in found.title and "2 partitions" in found.title and "c 10.0.0.5" in found.title


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([assigned("a", 0, [0, 1]), beat("a", 12)], id="one that has all"),
        pytest.param([assigned("a", 0, None), beat("a", 12)], id="a group in which nobody has any"),
        pytest.param(
            [assigned("a", 0, [0]), assigned("b", 0, None, "standby tasks"), beat("b", 12)],
            id="a member of Kafka Streams, which may have standby tasks",
        ),
        pytest.param([assigned("a", 0, [0]), assigned("b", 0, None)], id="one that was just assigned nothing"),
        pytest.param([assigned("a", 0, [0]), assigned("b", 0, None), beat("b", 4)], id="one without work for a moment"),
        pytest.param(
            [assigned("a", 0, [0]), assigned("b", 0, None), assigned("b", 1, [1], "of the assignor"), beat("b", 12)],
            id="one that got partitions with data that is not read",
        ),
        pytest.param(
            [assigned("a", 0, [0, 1, 2]), assigned("b", 0, None), beat("b", 12)],
            id="one to whom partitions are handed over step by step",
        ),
    ],
)
def test_members_with_work_are_not_told(events: list[Event]) -> None:
    """Nobody is idle for any time here, as far as it shows."""
    assert codes(*events) == []


def led(assignor: str) -> Exchange:
    """The leader is told who is in the group, and by which assignor it is to deal out its partitions."""
    answer = {"member_id": "a", "protocol_name": assignor, "members": [{"member_id": one} for one in ("a", "b")]}
    request = {"group_id": GROUP, "member_id": "a"}
    return exchange("JoinGroup", 11, 7, client_id="a", request=request, response=answer, start_ns=at(-1))


@pytest.mark.parametrize(("assignor", "is_told"), [("range", True), ("cooperative-sticky", False), ("", False)])
def test_an_assignor_that_leaves_members_without_any_of_many_partitions_is_named(assignor: str, is_told: bool) -> None:
    """Others hand partitions over step by step, and may not be done; range does not."""
    events = [led(assignor), assigned("a", 0, [0, 1, 2]), assigned("b", 0, None), beat("b", 12)]
    found = findings(*events)
    assert [(one.code, one.severity) for one in found] == [("uneven_assignment", "info")] * is_told
    assert all("range assignor" in one.title and "b 10.0.0.5" in one.title for one in found)
    assert findings(*events[:3], beat("b", 3)) == []


# -- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "limit", "events"),
    [
        pytest.param(departures, "MAX_MEMBERS", [*crash("a", 0), *writes(4, 10)], id="members that leave"),
        pytest.param(departures, "MAX_TOPICS", [*crash("a", 0), *writes(4, 10)], id="topics of a group"),
        pytest.param(
            idle_members, "MAX_MEMBERS", [assigned("a", 0, [0]), assigned("b", 0, None), beat("b", 12)],
            id="members that are assigned something",
        ),
        pytest.param(
            uncommitted_starts, "MAX_PARTITIONS", [*run(0, 0, 100), *run(20, 0, 120)], id="partitions that are read",
        ),
        pytest.param(uncommitted_starts, "MAX_CLIENTS", [*run(0, 0, 100), *run(20, 0, 120)], id="clients of groups"),
    ],
)  # fmt: skip
def test_what_is_beyond_a_limit_is_not_observed(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, limit: str, events: list[Event]
) -> None:
    """With room for it there is a finding, without none."""
    assert codes(*events) != []
    monkeypatch.setattr(module, limit, 0)
    assert codes(*events) == []


# -- offsets that are committed too early -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("committed", "later", "expected"),
    [
        pytest.param(15, [offsets("b", 6, 15)], [("committed_early", "warning", 5)], id="started from there"),
        pytest.param(15, [], [("committed_early", "info", 0)], id="not started since"),
        pytest.param(15, [offsets("b", 6, 10)], [("committed_early", "info", 0)], id="started from elsewhere"),
        pytest.param(10, [offsets("b", 6, 10)], [], id="behind the last record"),
        pytest.param(15, [fetch("a", 5, 10)], [], id="read since"),
        pytest.param(15, [offsets("b", 6, 15), fetch("b", 7, 0)], [("committed_early", "info", 0)], id="went back"),
        pytest.param(15, [commit("a", 5, 10, 0), offsets("b", 6, 10)], [], id="set right"),
    ],
)
def test_offsets_committed_beyond_what_was_read_are_told(
    committed: int, later: list[Event], expected: list[tuple[str, str, int]]
) -> None:
    """A member was given the records 0 to 9; who starts at 15 never reads those from 10 on."""
    events = [join("a", 0), fetch("a", 1, codec="none"), commit("a", 2, committed, 0), *later]
    found = [one for one in findings(*events) if one.code == "committed_early"]
    assert [(one.code, one.severity, one.numbers["skipped"]) for one in found] == expected
    assert all("orders-0 at 15, read to 10" in one.title for one in found)


def test_who_commits_and_reads_nothing_is_no_consumer() -> None:
    """A tool that sets the offsets of a group has no position."""
    assert "committed_early" not in [code for code, _ in codes(commit("ops", 2, 500, 0), offsets("a", 3, 500))]


def test_who_is_removed_before_it_commits_does_not_forget_to_commit() -> None:
    """Its session ends while it works on the records that it is given each time."""
    removed = [
        exchange(
            "Heartbeat", 12, 4, client_id="export", request={"group_id": GROUP, "member_id": f"export-{at_s}"},
            response={}, errors=[("error_code", 25, "UNKNOWN_MEMBER_ID", False)], outcome="error",
            start_ns=at(at_s + 15),
        )
        for at_s in (0, 20)
    ]  # fmt: skip
    starts = [join("export", 0), *run(0, 0, 30), removed[0], join("export", 16), *run(20, 0, 40)]
    (found,) = [one for one in findings(*starts, removed[1]) if one.code in ("member_removed", "no_committed_offsets")]
    assert (found.code, found.severity) == ("member_removed", "error")
    assert "70 were given for 40 different ones" in found.title
    assert ("no_committed_offsets", "error") in codes(*starts)


@pytest.mark.parametrize("bound", ["MAX_READ", "MAX_EARLY"])
def test_positions_that_are_remembered_are_bounded(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions beyond the limits are not followed."""
    monkeypatch.setattr(early_commits, bound, 0)
    events = [join("a", 0), fetch("a", 1, codec="none"), commit("a", 2, 15, 0), offsets("b", 6, 15)]
    assert "committed_early" not in [code for code, _ in codes(*events)]


def one_by_one(commits: list[int], **more: Any) -> list[Event]:
    """A member is given a record each second, and commits an offset after each."""
    events: list[Event] = [join("a", 0)]
    for number, offset in enumerate(commits):
        events += [fetch("a", 1 + number, number, codec="none", records=1), commit("a", 1.5 + number, offset, 0)]
    return events


SHORT = one_by_one(list(range(12)))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([*SHORT, offsets("a", 20, 11)], [("commits_last_record", "warning", 12)], id="started from there"),
        pytest.param(SHORT, [("commits_last_record", "info", 12)], id="not started since"),
        pytest.param(one_by_one(list(range(9))), [], id="a few"),
        pytest.param(one_by_one([number + 1 for number in range(12)]), [], id="behind the last record"),
        pytest.param(one_by_one([*range(11), 12]), [], id="behind the last record at the end"),
        pytest.param(one_by_one([9, 2, 8, 3, 12, 5, 14, 4, 15, 7]), [("commits_go_back", "warning", 5)], id="lower"),
        pytest.param(one_by_one([9, 2, 8, 3, 12, 5, 14, 4]), [], id="lower four times"),
    ],
)
def test_offsets_that_are_no_ends_of_work_are_told(events: list[Event], expected: list[tuple[str, str, int]]) -> None:
    """The last record itself, again and again, or less than before."""
    codes = ("commits_last_record", "commits_go_back")
    assert [(one.code, one.severity, one.count) for one in findings(*events) if one.code in codes] == expected


def test_who_reads_again_commits_lower_offsets() -> None:
    """Its application seeks."""
    events: list[Event] = [join("a", 0)]
    for number in range(10):
        offset = 20 * (number % 2)
        ask = fetched([], offset=offset, client_id="a", start_ns=at(1 + number))
        events += [fetch("a", 1 + number, 0, codec="none", records=40), ask, commit("a", 1.5 + number, offset + 5, 0)]
    assert "commits_go_back" not in [code for code, _ in codes(*events)]


# -- members that are away ---------------------------------------------------------------------------------------------


def back(at_s: float, instance: str | None, partitions: list[int], number: int) -> Exchange:
    """A member joins the group's generation and is assigned partitions of orders, on a connection of its own."""
    given = {"assigned_partitions": [{"topic": "orders", "partitions": partitions}]}
    request = {"group_id": GROUP, "member_id": "m", "group_instance_id": instance, "generation_id": 1}
    response = {"assignment": b"x", "assignment_decoded": {"data": given}}
    on = connection(number, f"10.0.0.5:{10_000 + number}")
    return exchange("SyncGroup", 14, 5, client_id="a", request=request, response=response, start_ns=at(at_s), on=on)


def stored(first_s: int, last_s: int) -> list[Event]:
    """Ten records a second, and where they are stored."""
    batch = {"magic": 2, "records_count": 10, "size_bytes": 1000, "producer_id": 7, "producer_epoch": 0}
    body = {"acks": -1, "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": [batch]}]}]}
    return [
        exchange(
            "Produce", 0, 9, client_id="shop", request=body, start_ns=at(second),
            response={"responses": [{"name": "orders", "partition_responses": [{"index": 0, "base_offset": second}]}]},
        )
        for second in range(first_s, last_s)
    ]  # fmt: skip


def taken_over(at_s: float) -> Exchange:
    """Another member is assigned the partition."""
    taken = back(at_s, None, [0], 5)
    taken.client_id = "b"
    return taken


def ends(number: int, at_s: float, by: str = "client") -> Event:
    gone = connection(number, f"10.0.0.5:{10_000 + number}")
    gone.client_id, gone.closed_by, gone.closed_ns, gone.closed_packet = "a", by, at(at_s), 9
    return gone


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([ends(1, 3), *stored(3, 18), back(18.5, "i", [0], 2)], ["was away"], id="a restart"),
        pytest.param([ends(1, 3), *stored(3, 18)], ["has been away"], id="not back by the end"),
        pytest.param([ends(1, 3), *stored(3, 9), back(9, "i", [0], 2)], [], id="a quick restart"),
        pytest.param([ends(1, 3), *stored(3, 18), taken_over(18), *stored(18, 40)], ["was away for 16"], id="replaced"),
        pytest.param([ends(1, 3), *stored(3, 9), taken_over(9), *stored(9, 40)], [], id="soon replaced"),
        pytest.param([ends(1, 3), back(18.5, "i", [0], 2)], [], id="nothing that is written"),
        pytest.param([*stored(3, 18), back(18.5, "i", [0], 1)], [], id="a connection that stands"),
        pytest.param([ends(1, 3, "broker"), *stored(3, 18)], [], id="closed by the broker"),
    ],
)
def test_partitions_are_kept_for_a_member_that_is_away(events: list[Event], expected: list[str]) -> None:
    """Seen must be that it closed its connection without leaving, and that its partition is written."""
    found = [one for one in findings(back(2, "i", [0], 1), *events) if one.code == "member_away"]
    assert [one.severity for one in found] == ["warning" for _ in expected]
    for one, words in zip(found, expected, strict=True):
        assert words in one.title and "(static member i)" in one.title and "orders-0" in one.title


@pytest.mark.parametrize(
    ("protocol_name", "expected"), [("cooperative-sticky", ["was away"]), ("stream", []), (None, [])]
)
def test_assignors_that_add_data_of_their_own_are_read_but_for_kafka_streams(
    protocol_name: str | None, expected: list[str]
) -> None:
    """What cannot be read leaves nothing of what was assigned before: here a partition that the member gave back."""
    later = back(2.5, "i", [0], 1)
    assert later.response is not None and later.response.body is not None
    later.response.body["protocol_name"] = protocol_name
    later.response.body["assignment_decoded"]["data"]["user_data"] = b"generation"
    events = [back(2, "i", [0], 1), later, ends(1, 3), *stored(3, 18), back(18.5, "i", [0], 2)]
    found = [one for one in findings(*events) if one.code == "member_away"]
    assert len(found) == len(expected)


def test_a_commit_that_fails_shows_that_its_application_gets_on() -> None:
    """A coordinator that has gone refuses commits: the member does not hang."""

    def given(second: int) -> Exchange:
        return fetch("a", second, 10 * second, codec="none")

    refused: dict[str, Any] = {"errors": [("topics[0].error_code", 15, "COORDINATOR_NOT_AVAILABLE", True)]}
    held = [back(0, None, [0], 1), *[one for s in range(1, 40) for one in (given(s), beat_of("a", s + 0.5))]]
    commits = [commit("a", at_s, 10 * at_s, 0) for at_s in (5, 10, 15)]
    in_vain = [commit("a", at_s, 10 * at_s, 0, outcome="error", **refused) for at_s in (20, 25, 30, 35)]

    def told(*events: Event) -> bool:
        ordered = sorted(
            events, key=lambda one: one.request.first_ns if isinstance(one, Exchange) and one.request else 0
        )
        return "commits_stopped" in [code for code, _ in codes(*ordered)]

    assert told(*held, *commits)
    assert not told(*held, *commits, *in_vain)


def beat_of(client: str, at_s: float) -> Exchange:
    request = {"group_id": GROUP, "member_id": "m"}
    return exchange("Heartbeat", 12, 4, client_id=client, request=request, response={}, start_ns=at(at_s))


def test_a_member_that_is_away_is_a_symptom_where_nobody_is_left() -> None:
    """The only member was killed, and its session is over."""
    joined = join("a", 1, member_id="m", members=[{"member_id": "m"}])
    (found,) = findings(joined, back(2, None, [0], 1), ends(1, 3), *stored(3, 30))
    assert (found.code, [one.code for one in found.symptoms]) == ("group_deserted", ["member_away"])
