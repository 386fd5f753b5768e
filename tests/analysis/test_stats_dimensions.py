"""Statistics by host, version, principal, error, partition and group, and the records in them."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis import stats_dimensions
from kwiresniff.analysis.stats import StatsTable
from kwiresniff.model import Exchange
from kwiresniff.results.stats import StatRow
from tests.support.exchanges import connection, exchange, fetched_topics


def rows(by: tuple[str, ...], *exchanges: Exchange, records: bool = False, names: dict[str, str] | None = None) -> Any:
    table = StatsTable(by, (names or {}).get, records=records)
    for one in exchanges:
        table.add(one)
    found: list[StatRow] = table.rows()
    return {row.key if len(by) > 1 else row.key[0]: row for row in found}


def counts(by: tuple[str, ...], *exchanges: Exchange, **more: Any) -> dict[Any, int]:
    return {key: row.count for key, row in rows(by, *exchanges, **more).items()}


def batch(records: int, **more: Any) -> dict[str, Any]:
    return {"records_count": records, "size_bytes": 100, **more}


def produce(*parts: tuple[str, int, int], **more: Any) -> Exchange:
    """So many records to each partition."""
    topics = [
        {"name": topic, "partition_data": [{"index": index, "records": [batch(records)]}]}
        for topic, index, records in parts
    ]
    return exchange("Produce", 0, 9, request={"topic_data": topics}, response={"responses": []}, **more)


def fetch(topic: str, index: int, batches: list[dict[str, Any]], **more: Any) -> Exchange:
    asked = {"topics": [{"topic": topic, "partitions": [{"partition": index}]}]}
    told = {"responses": [{"topic": topic, "partitions": [{"partition_index": index, "records": batches}]}]}
    return exchange(request=asked, response=told, **more)


def test_what_the_connection_and_the_header_tell() -> None:
    """Without a body."""
    on = connection(1, "10.0.0.5:1", "10.0.0.1:9092")
    on.sasl = {"principal": "alice", "outcome": "ok"}
    one = exchange("Fetch", 1, 12, on=on)
    other = exchange("Fetch", 1, 13, on=connection(2, "[fd00::5]:2"))
    assert counts(("host",), one, other) == {"10.0.0.5": 1, "[fd00::5]": 1}
    assert counts(("version",), one, other) == {"Fetch v12": 1, "Fetch v13": 1}
    assert counts(("principal",), one, other) == {"alice": 1, "(not authenticated)": 1}


def test_an_exchange_counts_once_for_each_error_code() -> None:
    """However often it stands in the response."""
    errors = [("a", 3, "UNKNOWN_TOPIC_OR_PARTITION", True), ("b", 3, "UNKNOWN_TOPIC_OR_PARTITION", True),
              ("c", 6, "NOT_LEADER_OR_FOLLOWER", True)]  # fmt: skip
    failed = exchange(errors=errors, outcome="error")
    assert counts(("error",), failed, exchange()) == {
        "UNKNOWN_TOPIC_OR_PARTITION": 1, "NOT_LEADER_OR_FOLLOWER": 1, "(no error)": 1,
    }  # fmt: skip


def test_partitions_go_with_the_topic_above_them() -> None:
    """Not every topic with every number, in lists of numbers too."""
    two = produce(("orders", 3, 1), ("payments", 7, 1))
    stopped = {"topic_states": [{"topic_name": "orders", "partition_states": [{"partition_index": 3}]}]}
    assert counts(("partition",), two) == {"orders-3": 1, "payments-7": 1}
    assert counts(("partition",), exchange("StopReplica", 5, 3, request=stopped)) == {"orders-3": 1}
    listed = {"topics": [{"name": "orders", "partition_indexes": [0, 2]}]}
    assert counts(("partition",), exchange("OffsetFetch", 9, 7, request=listed)) == {"orders-0": 1, "orders-2": 1}
    assert counts(("partition",), exchange("Metadata", 3, 9, request={})) == {"(no partition)": 1}


def test_an_incremental_fetch_counts_for_the_partitions_of_its_session() -> None:
    """Where they are those of one topic; whose they are of several nobody says."""
    one, two = exchange(request={}, response={}), exchange(request={}, response={})
    one.fetched = fetched_topics(["orders"], [0, 4])
    two.fetched = fetched_topics(["orders", "payments"], [0, 4])
    assert counts(("partition",), one, two) == {
        "orders-0": 1, "orders-4": 1, "(partitions of the fetch session)": 1,
    }  # fmt: skip


def test_a_topics_id_gives_way_to_its_name_in_partitions_too() -> None:
    """A name that is told later."""
    topic_id = "AAAAAAAAAAAAAAAAAA-A-g"
    names: dict[str, str] = {}
    table = StatsTable(("partition",), names.get)
    asked = {"topics": [{"topic_id": topic_id, "partitions": [{"partition": 5}]}]}
    table.add(exchange(request=asked, response={}))
    names[topic_id] = "orders"
    assert [row.key for row in table.rows()] == [("orders-5",)]


def test_groups_are_those_that_are_named() -> None:
    """A fetch names none, and that of somebody who is no member has none."""
    joins = exchange("JoinGroup", 11, 9, request={"group_id": "g"}, response={})
    assert counts(("group",), joins, exchange(request={}, response={})) == {"g": 1, "(no group)": 1}


def member(group: str, client_id: str, on: int, client: str = "10.0.0.5:50000") -> Exchange:
    """A member of a group speaks to its coordinator."""
    request = {"group_id": group, "member_id": "m", "generation_id": 1}
    return exchange("Heartbeat", 12, 4, request=request, response={}, client_id=client_id, on=connection(on, client))


def read(client_id: str, on: int, client: str = "10.0.0.5:50000", replica_id: int = -1) -> Exchange:
    return exchange(request={"replica_id": replica_id}, response={}, client_id=client_id, on=connection(on, client))


def test_what_a_member_reads_is_its_groups() -> None:
    """On its own connection for certain, on another by its client id and address, and told as such, if before, too."""
    told = counts(
        ("group",), read("a", 2), member("g", "a", 1), read("a", 1), read("b", 3), read("a", 4, "10.0.0.6:50000")
    )
    assert told == {"g": 2, "g (by its client id)": 1, "(no group)": 2}


def test_a_client_id_of_several_groups_does_not_say_which() -> None:
    """Clients that nobody has named are all called rdkafka; followers are in no group."""
    told = counts(
        ("group",),
        member("g", "rdkafka", 1),
        member("h", "rdkafka", 2),
        read("rdkafka", 3),
        read("rdkafka", 3, replica_id=2),
    )
    assert told == {"g": 1, "h": 1, "(one of several groups)": 1, "(no group)": 1}


def test_an_admin_client_is_no_member_of_the_groups_it_names() -> None:
    """Who describes a group reads for another reason."""
    asks = exchange("DescribeGroups", 15, 5, request={"groups": ["g"]}, response={}, client_id="a", on=connection(1))
    assert counts(("group",), asks, read("a", 2)) == {"g": 1, "(no group)": 1}


def test_members_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond them what is read is in no group."""
    monkeypatch.setattr(stats_dimensions, "MAX_MEMBER_BYTES", 10_000)
    speak = [member(f"g{n}", f"c{n}", 2 * n) for n in range(1000)]
    reads = [read(f"c{n}", 2 * n + 1) for n in range(1000)]
    told = counts(("group",), *speak, *reads)
    assert 0 < sum("by its client id" in key for key in told) < 100
    assert told["(no group)"] > 900


def test_records_are_counted_where_they_belong() -> None:
    """A topic's row counts the records of that topic, any other row all of them; control batches have none."""
    sent = produce(("orders", 0, 5), ("payments", 1, 7))
    read = fetch("orders", 0, [batch(4), batch(1, is_control=True), batch(9, truncated=True)])
    by_topic = rows(("topic",), sent, read, records=True)
    assert (by_topic["orders"].request_records, by_topic["orders"].response_records) == (5, 4)
    assert (by_topic["payments"].request_records, by_topic["payments"].response_records) == (7, 0)
    by_api = rows(("api",), sent, read, records=True)
    assert (by_api["Produce"].request_records, by_api["Fetch"].response_records) == (12, 4)
    pairs = rows(("api", "partition"), sent, read, records=True)
    assert pairs["Produce", "payments-1"].request_records == 7


def test_records_are_not_told_where_nobody_counted_them() -> None:
    row = rows(("api",), produce(("orders", 0, 5)))["Produce"]
    assert row.request_records is None and row.response_records is None


@pytest.mark.parametrize("name", ["host", "version", "principal", "error", "partition", "group"])
def test_every_dimension_copes_with_a_request_that_is_missing(name: str) -> None:
    """Dimensions also cope with bodies that were not decoded."""
    missing = exchange()
    missing.request, missing.api, missing.api_version = None, "", -1
    assert sum(counts((name,), missing).values()) == 1
