"""Consumers that begin at the end of the log, or have nothing to begin with."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis.doctor.troubles import starts_at_end, unassigned
from kwiresniff.model import Event, Exchange
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import SECOND, closed, codes, findings, produce


def at(seconds: float) -> int:
    return START_NS + round(seconds * SECOND)


def topics(**part: Any) -> dict[str, Any]:
    return {"topics": [{"name": "orders", "partitions": [{"partition_index": 0, **part}]}]}


def asked(at_s: float, committed: int, group: str = "mail") -> Exchange:
    """A member asks where its group stands."""
    response = {"groups": [{"group_id": group, "error_code": 0, **topics(committed_offset=committed)}]}
    return exchange("OffsetFetch", 9, 8, request={}, response=response, start_ns=at(at_s))


def begun(at_s: float, end: int, timestamp: int = -1, offset: int | None = None) -> list[Event]:
    """A consumer asks for an end of the log, and fetches from there, or from elsewhere."""
    listed = exchange(
        "ListOffsets", 2, 7, request=topics(timestamp=timestamp), response=topics(offset=end), start_ns=at(at_s)
    )
    part = {"partition": 0, "fetch_offset": end if offset is None else offset}
    request = {"replica_id": -1, "topics": [{"topic": "orders", "partitions": [part]}]}
    return [listed, exchange(request=request, response={"responses": []}, start_ns=at(at_s + 0.1))]


def committed(at_s: float) -> Exchange:
    request = {"group_id": "mail", **topics(committed_offset=500)}
    return exchange("OffsetCommit", 8, 8, request=request, response={}, start_ns=at(at_s))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([asked(1, -1), *begun(2, 600)], [("records_skipped", "info")], id="a new group"),
        pytest.param(
            [committed(0), asked(1, -1), *begun(2, 600)], [("records_skipped", "warning")], id="offsets that are gone"
        ),
        pytest.param(
            [asked(1, -1), committed(1.5), *begun(2, 600)], [("records_skipped", "info")], id="committed since"
        ),
        pytest.param([asked(1, 500), *begun(2, 600)], [], id="a committed offset"),
        pytest.param([asked(1, -1), *begun(2, 0)], [], id="a log without records"),
        pytest.param([asked(1, -1), *begun(2, 3, timestamp=-2)], [], id="the earliest offset"),
        pytest.param([asked(1, -1), *begun(2, 600, offset=100)], [], id="an offset of its own"),
        pytest.param(begun(2, 600), [], id="no group"),
    ],
)
def test_a_group_that_begins_at_the_end_leaves_out_what_is_there(
    events: list[Event], expected: list[tuple[str, str]]
) -> None:
    """Seen must be that it has no offset, that it asked for the latest one, and that it reads from there."""
    assert codes(*events) == expected


def test_who_deleted_the_offsets_is_named() -> None:
    """DeleteGroups of another client, before the group asks again."""
    deleted = exchange(
        "DeleteGroups", 42, 2, client_id="cleaner", request={"groups_names": ["mail"]}, response={}, start_ns=at(0.5)
    )
    (found,) = findings(committed(0), deleted, asked(1, -1), *begun(2, 600))
    assert "deleted by cleaner 10.0.0.5" in found.title and found.numbers["records"] == 600 - 500


def described(at_s: float, partitions: int) -> Exchange:
    """A Metadata answer in which the topic has so many partitions."""
    told = [{"error_code": 0, "name": "orders", "partitions": [{"partition_index": i} for i in range(partitions)]}]
    return exchange("Metadata", 3, 12, request={}, response={"brokers": [], "topics": told}, start_ns=at(at_s))


def grown(at_s: float) -> Exchange:
    request = {"topics": [{"name": "orders", "count": 2}], "validate_only": False}
    return exchange("CreatePartitions", 37, 3, client_id="ops", request=request, response={}, start_ns=at(at_s))


@pytest.mark.parametrize(
    ("index", "change", "severity", "words"),
    [
        (1, [grown(1), described(9, 2)], "warning", "learns of orders-1 10.1 s after ops 10.0.0.5 added them"),
        (1, [described(9, 2)], "warning", "learns of orders-1 2.1 s after they were added"),
        (0, [grown(1), described(9, 2)], "info", "has no committed offset of orders-0"),
        (1, [described(9, 1)], "info", "has no committed offset of orders-1"),
    ],
)
def test_partitions_that_were_added_are_told_from_a_new_group(
    index: int, change: list[Event], severity: str, words: str
) -> None:
    """Seen must be that the topic had fewer when the capture began, and what is skipped lies in one that it had not."""
    part = {"partition_index": index}
    none = {"groups": [{"group_id": "mail", **topics(**part, committed_offset=-1)}]}
    asks = exchange("OffsetFetch", 9, 8, request={}, response=none, start_ns=at(10))
    listed = exchange(
        "ListOffsets", 2, 7, request=topics(**part, timestamp=-1), response=topics(**part, offset=7), start_ns=at(11)
    )
    fetched = {
        "replica_id": -1,
        "topics": [{"topic": "orders", "partitions": [{"partition": index, "fetch_offset": 7}]}],
    }
    read = exchange(request=fetched, response={"responses": []}, start_ns=at(11.1))
    (found,) = findings(described(0, 1), *change, asks, listed, read)
    assert (found.code, found.severity) == ("records_skipped", severity) and words in found.title


@pytest.mark.parametrize("bound", ["MAX_PARTITIONS", "MAX_TOPICS"])
def test_starts_that_are_remembered_are_bounded(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions beyond the limit are not followed, and of topics beyond theirs nobody knows that they grew."""
    monkeypatch.setattr(starts_at_end, bound, 0)
    found = codes(described(0, 0), grown(0.5), asked(1, -1), *begun(2, 600))
    assert found == ([] if bound == "MAX_PARTITIONS" else [("records_skipped", "info")])


def joined(at_s: float, names: list[str]) -> Exchange:
    subscription = {"name": "range", "metadata_decoded": {"data": {"topics": names}}}
    request = {"group_id": "mail", "member_id": "m", "protocol_type": "consumer", "protocols": [subscription]}
    return exchange("JoinGroup", 11, 7, request=request, response={"members": [{"member_id": "m"}]}, start_ns=at(at_s))


def synced(at_s: float, partitions: list[int]) -> Exchange:
    """The leader of a group assigns."""
    given = [{"topic": "orders", "partitions": partitions}] if partitions else []
    one = {"member_id": "m", "assignment": b"x", "assignment_decoded": {"data": {"assigned_partitions": given}}}
    request = {"group_id": "mail", "member_id": "m", "assignments": [one]}
    return exchange("SyncGroup", 14, 5, request=request, response=one, start_ns=at(at_s))


def beats(first_s: int, last_s: int) -> list[Event]:
    request = {"group_id": "mail", "member_id": "m"}
    return [
        exchange("Heartbeat", 12, 4, request=request, response={}, start_ns=at(second))
        for second in range(first_s, last_s + 1)
    ]


def matched(at_s: float, pattern: str | None, partitions: list[int] | None) -> Exchange:
    """A heartbeat of a member whose coordinator matches the pattern."""
    request = {
        "group_id": "mail", "member_id": "m", "subscribed_topic_regex": pattern, "subscribed_topic_names": None,
    }  # fmt: skip
    given = [] if not partitions else [{"topic_id": "id-1", "partitions": partitions}]
    assignment = None if partitions is None else {"topic_partitions": given}
    response = {"member_id": "m", "assignment": assignment}
    return exchange("ConsumerGroupHeartbeat", 68, 1, request=request, response=response, start_ns=at(at_s))


TOLD = [("nothing_assigned", "warning")]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([joined(0, []), synced(0.1, []), *beats(1, 12)], TOLD, id="a pattern that the client matches"),
        pytest.param([joined(0, []), synced(0.1, []), *beats(1, 9)], [], id="for a short time"),
        pytest.param([joined(0, ["orders"]), synced(0.1, [0, 1]), *beats(1, 12)], [], id="partitions"),
        pytest.param(
            [joined(0, []), synced(0.1, []), *beats(1, 4), joined(5, ["orders"]), synced(5.1, [0]), *beats(6, 18)], [],
            id="partitions at last",
        ),
        pytest.param([joined(0, ["ordres"]), synced(0.1, []), *beats(1, 12)], [], id="a topic that is missing"),
        pytest.param([matched(0, "o-.*", []), *(matched(n, None, None) for n in range(1, 13))], TOLD, id="KIP-848"),
        pytest.param([matched(0, "o-.*", []), *(matched(n, None, [0]) for n in range(1, 13))], [], id="it matches"),
    ],
)  # fmt: skip
def test_a_group_that_assigns_nothing_is_told(events: list[Event], expected: list[tuple[str, str]]) -> None:
    """For 10 s and more; that a topic which is named is missing is told where Metadata says so."""
    assert codes(*events) == expected


def sought(key: str, *, more: bool = False, reads: bool = False, broker: str = "10.0.0.1:9092") -> list[Event]:
    """A client asks where its group is coordinated, and is connected there for 12 s."""
    on = connection(5, "10.0.0.5:6000")
    place = {"key": key, "host": "10.0.0.1", "port": 9092, "error_code": 0}
    request = {"key_type": 0, "coordinator_keys": [key]}
    events: list[Event] = [
        exchange("FindCoordinator", 10, 6, request=request, response={"coordinators": [place]}, on=on),
        exchange("Metadata", 3, 12, request={}, response={}, on=on, start_ns=at(1)),
    ]
    if more:
        body = {"group_id": key, "member_id": "m"}
        events.append(exchange("Heartbeat", 12, 4, request=body, response={}, on=on, start_ns=at(2)))
    if reads:
        events.append(exchange("Fetch", 1, 13, request={}, response={}, on=on, start_ns=at(2)))
    return [*events, closed(6, "client", 12 * SECOND, broker)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(sought("mail"), TOLD, id="never joins"),
        pytest.param(sought("mail", more=True), [], id="is a member"),
        pytest.param(sought("mail", reads=True), [], id="assigns partitions to itself"),
        pytest.param(sought("mail", broker="10.0.0.2:9092"), [], id="does not reach the coordinator"),
    ],
)
def test_a_client_that_reaches_its_coordinator_and_never_joins_is_told(
    events: list[Event], expected: list[tuple[str, str]]
) -> None:
    """librdkafka does not join while its pattern matches no topic."""
    assert codes(*events) == expected


def test_what_is_beyond_a_limit_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two clients that look for a coordinator, and of two groups, the first is."""
    monkeypatch.setattr(unassigned, "MAX_CLIENTS", 1)
    monkeypatch.setattr(unassigned, "MAX_GROUPS", 1)
    other = sought("other")[0]
    assert isinstance(other, Exchange)
    other.client_id = "another"
    assert codes(other, *sought("mail")) == []
    elsewhere = joined(0, [])
    assert elsewhere.request is not None and elsewhere.request.body is not None
    elsewhere.request.body["group_id"] = "other"
    assert codes(elsewhere, joined(0, []), synced(0.1, []), *beats(1, 12)) == []


def test_a_coordinator_beyond_those_that_are_remembered_is_not_taken_for_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No broker that answered is remembered."""
    monkeypatch.setattr(unassigned, "MAX_BROKERS", 0)
    assert codes(*sought("mail")) == []


def test_groups_and_clients_whose_start_is_followed_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two groups and of two clients the first is."""
    events = [asked(0, -1, "other"), asked(1, -1), *begun(2, 600)]
    assert codes(*events) == [("records_skipped", "info")]
    monkeypatch.setattr(starts_at_end, "MAX_GROUPS", 1)
    assert codes(*events) == []
    monkeypatch.setattr(starts_at_end, "MAX_CLIENTS", 1)
    other = asked(0, -1)
    other.client_id = "another"
    assert codes(other, *events[1:]) == []


def test_records_that_a_group_passes_over_come_before_what_was_late() -> None:
    """A write that took three seconds is over; what was skipped is not read any more."""
    slow = [produce(number * SECOND, latency_ns=3 * SECOND) for number in range(3)]
    told = [one.code for one in findings(committed(0), *slow, asked(11, -1), *begun(12, 600))]
    assert told[0] == "records_skipped" and len(told) > 1
