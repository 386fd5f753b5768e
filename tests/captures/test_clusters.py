"""What members of clusters store and say is what the recipes (``captures/recipes/codec/eras_*.py``) had them do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange
from tests.captures.coverage import CAPTURES
from tests.support.events import analyze

CONTROLLERS = {11, 12, 13}
NEWCOMER = 14


@cache
def exchanges(recording: str) -> list[Exchange]:
    events = analyze(open_captures([str(CAPTURES / "eras" / f"{recording}.pcap.xz")]), depth="records")
    return [event for event in events if isinstance(event, Exchange)]


def answers(recording: str, api: str) -> Iterator[dict[str, Any]]:
    for exchange in exchanges(recording):
        if exchange.api == api and exchange.response is not None and exchange.response.body is not None:
            yield exchange.response.body


def batches(value: Any) -> Iterator[dict[str, Any]]:
    """Every record batch in a body."""
    if isinstance(value, dict):
        if "base_offset" in value:
            yield value
            return
        for inner in value.values():
            yield from batches(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from batches(inner)


def stored(recording: str, api: str = "Fetch") -> dict[str, list[dict[str, Any]]]:
    """The records of Kafka's own topics that were told in answers, by what they are."""
    found: dict[str, list[dict[str, Any]]] = {}
    for body in answers(recording, api):
        for batch in batches(body):
            for record in batch.get("records", ()):
                value = record.get("decoded", {}).get("value")
                if value:
                    found.setdefault(value["message"], []).append(value["data"])
    return found


def control(recording: str, kind: str) -> list[dict[str, Any]]:
    """The control records of a kind that were fetched."""
    records = [r for body in answers(recording, "Fetch") for b in batches(body) for r in b.get("records", ())]
    return [r["control"] for r in records if r.get("control", {}).get("type") == kind]


def test_the_metadata_log_tells_what_was_done_to_the_cluster() -> None:
    log = stored("kraft-4.4")
    names = {record["name"]: record["topic_id"] for record in log["TopicRecord"]}
    assert set(names) == {"boats", "oars", "__consumer_offsets", "__transaction_state"}
    assert {record["topic_id"] for record in log["RemoveTopicRecord"]} == {names["oars"]}
    assert {record["value"] for record in log["ClientQuotaRecord"]} == {1048576.0, 2097152.0, 3145728.0}
    assert {record["name"] for record in log["UserScramCredentialRecord"]} == {"carol"}
    assert {r["feature_level"] for r in log["FeatureLevelRecord"] if r["name"] == "group.version"} == {0, 1}
    assert {record["broker_id"] for record in log["RegisterBrokerRecord"]} == {1, 2, 3, 4}
    assert {record["broker_id"] for record in log["UnregisterBrokerRecord"]} == {4}
    assert {record["controller_id"] for record in log["RegisterControllerRecord"]} == CONTROLLERS | {NEWCOMER}
    assert {record["controller_id"] for record in log["UnregisterControllerRecord"]} == {NEWCOMER}
    settings = {(record["resource_name"], record["name"], record["value"]) for record in log["ConfigRecord"]}
    assert ("1", "log.retention.ms", "7200000") in settings


def test_a_newcomer_learns_the_topics_from_a_snapshot() -> None:
    snapshots = list(answers("kraft-4.4", "FetchSnapshot"))
    assert {topic["name"] for body in snapshots for topic in body["topics"]} == {"__cluster_metadata"}
    assert "boats" in {record["name"] for record in stored("kraft-4.4", "FetchSnapshot")["TopicRecord"]}


def test_voters_come_and_go_as_they_were_told() -> None:
    """One more, one less, that one again, the newcomer away; and one of them moves to another address."""
    voters = [record["voters"] for record in control("kraft-4.4", "kraft_voters")]
    quorums = {frozenset(voter["voter_id"] for voter in one) for one in voters}
    everybody = CONTROLLERS | {NEWCOMER}
    assert {frozenset(CONTROLLERS), frozenset(everybody), frozenset(everybody - {13})} <= quorums
    hosts = {(v["voter_id"], endpoint["host"]) for one in voters for v in one for endpoint in v["endpoints"]}
    assert {host for voter, host in hosts if voter == 12} == {"10.9.0.1", "127.0.0.1"}
    directories = {v["voter_directory_id"] for one in voters for v in one if v["voter_id"] == 11}
    assert directories == {"Y29udHJvbGxlci0xMS1hMQ"}
    leaders = control("kraft-4.4", "leader_change")
    assert len({record["leader_id"] for record in leaders}) > 1
    assert all(record["leader_id"] in {v["voter_id"] for v in record["granting_voters"]} for record in leaders)


def test_each_controller_with_zookeeper_speaks_as_the_release_it_was_set_to() -> None:
    spoken = {
        recording: {
            (exchange.api, exchange.api_version, exchange.request.body["controller_id"])
            for exchange in exchanges(recording)
            if exchange.api in ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
            and exchange.request is not None
            and exchange.request.body is not None
        }
        for recording in ("zookeeper-2.8", "zookeeper-3.4")
    }
    assert spoken["zookeeper-2.8"] == {
        *(("LeaderAndIsr", version, controller) for controller, version in ((1, 3), (2, 4), (3, 5))),
        *(("UpdateMetadata", version, controller) for controller, version in ((1, 5), (2, 6), (3, 7))),
        *(("StopReplica", version, controller) for controller, version in ((1, 1), (2, 2), (3, 3))),
    }
    assert spoken["zookeeper-3.4"] == {
        *(("LeaderAndIsr", version, controller) for controller, version in ((1, 4), (2, 6), (3, 7))),
        *(("UpdateMetadata", version, controller) for controller, version in ((1, 6), (2, 7), (3, 8))),
        *(("StopReplica", version, controller) for controller, version in ((1, 3), (2, 3), (3, 4))),
    }


def test_the_new_controller_says_that_it_is_one_while_zookeeper_is_left() -> None:
    """The log has what ZooKeeper held, beside what came later."""
    said = {
        (exchange.request.body["controller_id"] == 11, exchange.request.body["is_kraft_controller"])
        for exchange in exchanges("migration-3.9")
        if exchange.api == "LeaderAndIsr" and exchange.request is not None and exchange.request.body is not None
    }
    assert said == {(True, True), (False, False)}
    log = stored("migration-3.9")
    assert {"before", "between", "after"} <= {record["name"] for record in log["TopicRecord"]}
    before, during, after = 1, 2, 3
    assert {record["zk_migration_state"] for record in log["ZkMigrationStateRecord"]} == {before, during, after}


def test_a_share_group_stores_what_its_member_said_of_each_record() -> None:
    """Accepted, rejected, and all to be had again once the offsets were reset."""
    acknowledged, archived = 2, 4
    updates = [record["state_batches"] for record in stored("share-4.4")["ShareUpdateValue"]]
    states = {batch["delivery_state"] for batches_ in updates for batch in batches_}
    assert {acknowledged, archived} <= states
    resets = [r for r in stored("share-4.4")["ShareSnapshotValue"] if r["start_offset"] == 0 and r["snapshot_epoch"]]
    assert resets and all(record["state_batches"] == [] for record in resets)


def test_a_streams_group_stores_its_topology_and_where_its_members_are() -> None:
    log = stored("streams-4.4")
    (topology,) = {str(record["subtopologies"][0]["source_topics"]) for record in log["StreamsGroupTopologyValue"]}
    assert topology == "['lines']"
    endpoints = {
        (record["user_endpoint"]["host"], record["user_endpoint"]["port"])
        for record in log["StreamsGroupMemberMetadataValue"]
    }
    assert endpoints == {("10.9.0.2", 7001), ("10.9.0.2", 7002)}


def test_a_transaction_goes_through_its_states_and_ends_in_a_marker() -> None:
    """Empty, ongoing, about to commit, committed; then the admin client fences the producer and it is empty again."""
    empty, ongoing, prepare_commit, complete_commit = 0, 1, 2, 4
    states = [record["transaction_status"] for record in stored("kraft-4.4")["TransactionLogValue"]]
    assert list(dict.fromkeys(states)) == [empty, ongoing, prepare_commit, complete_commit]
    assert states[-1] == empty
    assert {"commit", "abort"} == {kind for kind in ("commit", "abort") if control("kraft-4.4", kind)}
