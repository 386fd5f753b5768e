"""Topics that are not there, offsets out of range, producers that are fenced, partitions that are hot."""

from __future__ import annotations

from kwiresniff.digest import Digest, PartitionDigest, TopicDigest
from kwiresniff.model import Exchange
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import SECOND, codes, findings, metadata, partition, produce


def unknown(at_ns: int, client_id: str = "billing-1", api: str = "Metadata", key: int = 3) -> Exchange:
    body = {"topics": [{"error_code": 3, "name": "orders", "partitions": []}]}
    errors = [("topics[0].error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION", True)]
    return exchange(
        api, key, 12, response=body, errors=errors, outcome="error", start_ns=START_NS + at_ns, client_id=client_id
    )


def test_a_topic_that_is_produced_to_and_does_not_exist_is_an_error() -> None:
    """Who asks again and again and does not consume means to produce; a consumer is warned, a look is nothing."""
    asked = [unknown(number * SECOND) for number in range(5)]
    (found,) = findings(*asked)
    assert (found.code, found.severity) == ("unknown_topic_or_partition", "error")
    assert "topic orders" in found.title and "nothing is delivered" in found.title
    assert found.named("topic") == ["orders"]
    joins = exchange("JoinGroup", 11, 9, request={"group_id": "g"}, response={"generation_id": 1, "member_id": "m"})
    assert codes(joins, *asked) == [("unknown_topic_or_partition", "warning")]
    for key_type, severity in ((0, "warning"), (1, "error")):  # the coordinator of a group, or of a transaction
        finds = exchange("FindCoordinator", 10, 4, request={"key_type": key_type}, response={})
        assert codes(finds, *asked) == [("unknown_topic_or_partition", severity)]
    assert codes(unknown(0)) == [("unknown_topic_or_partition", "info")]
    assert codes(*asked, metadata(partition(0, 1, 0), at_ns=9 * SECOND)) == [("unknown_topic_or_partition", "info")]


def test_a_topic_of_another_cluster_is_missing_in_this_one() -> None:
    """Whoever asks the wrong cluster is told which has it."""
    there = metadata(partition(0, 1, 0), on=connection(7, "10.0.0.6:1000", "10.9.0.1:9092"), hosts={1: "10.9.0.1"})
    assert there.response is not None and there.response.body is not None
    there.response.body["cluster_id"] = "other"
    here = metadata(partition(0, 1, 0), topic="invoices")
    (found,) = findings(here, *[unknown(number * SECOND) for number in range(5)], there)
    assert (found.code, found.severity) == ("unknown_topic_or_partition", "error")
    assert "another one does: other (10.9.0.1:9092)" in found.details[0]


def test_a_topic_deleted_in_use_names_who_did_it() -> None:
    """The finding also names the clients that still ask for the topic."""
    on = connection(5, "10.0.0.9:1000")
    on.sasl = {"principal": "mallory"}
    deleted = {"responses": [{"name": "orders", "error_code": 0}]}
    delete = exchange("DeleteTopics", 20, 6, response=deleted, client_id="cleanup", on=on, start_ns=START_NS + SECOND)
    (found,) = findings(metadata(partition(0, 1, 0)), delete, *[unknown(at * SECOND) for at in (2, 3, 4)])
    assert (found.code, found.severity, found.subject) == ("topic_deleted", "error", "topic orders")
    assert "by cleanup 10.0.0.9, user mallory" in found.title and "billing-1 10.0.0.5" in found.title
    (found,) = findings(metadata(partition(0, 1, 0)), *[unknown(at * SECOND) for at in (2, 3, 4)])
    assert found.code == "topic_deleted" and "by whom is not in the capture" in found.title


def test_a_topic_that_its_maker_deletes_again_is_missed_by_those_who_write_it() -> None:
    """Consumers of a pattern ask for it once more; whoever deletes it may ask as well."""

    def admin(api: str, key: int, field: str, at_ns: int) -> Exchange:
        body = {field: [{"name": "orders", "error_code": 0}]}
        return exchange(api, key, 6, request={}, response=body, client_id="job", start_ns=START_NS + at_ns)

    def asks(client_id: str, api: str, key: int) -> list[Exchange]:
        body = {"responses": [{"name": "orders", "topic": "orders", "partitions": [{"index": 0, "error_code": 3}]}]}
        errors = [("responses[0].partitions[0].error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION", True)]
        return [
            exchange(
                api, key, 9, response=body, errors=errors, outcome="error", client_id=client_id, start_ns=START_NS + at
            )
            for at in (2 * SECOND, 3 * SECOND, 4 * SECOND)
        ]  # fmt: skip

    there, reader = metadata(partition(0, 1, 0)), asks("billing-1", "Fetch", 1)
    made, deleted = admin("CreateTopics", 19, "topics", 0), admin("DeleteTopics", 20, "responses", SECOND)
    assert codes(there, made, deleted, *reader) == [("topic_deleted", "info")]
    assert codes(there, deleted, *reader) == [("topic_deleted", "error")]
    assert codes(there, made, deleted, *asks("shop", "Produce", 0)) == [("topic_deleted", "error")]
    assert [one for one, _ in codes(there, made, deleted, *asks("job", "Fetch", 1))] == ["unknown_topic_or_partition"]


def test_an_offset_out_of_range_has_the_offset_and_the_range() -> None:
    """The ends come from ListOffsets, or from a later fetch."""
    asked = {"topics": [{"topic_id": "id-1", "partitions": [{"partition": 2, "fetch_offset": 999}]}]}
    answer = {"responses": [{"topic_id": "id-1", "partitions": [{"partition_index": 2, "error_code": 1}]}]}
    errors = [("responses[0].partitions[0].error_code", 1, "OFFSET_OUT_OF_RANGE", False)]
    failed = exchange(request=asked, response=answer, errors=errors, outcome="error")
    later = {"partition_index": 2, "error_code": 0, "log_start_offset": 10, "high_watermark": 500, "records": []}
    fetched = exchange(request=asked, response={"responses": [{"topic_id": "id-1", "partitions": [later]}]})
    (found,) = findings(failed, fetched)
    assert found.code == "offset_out_of_range"
    assert "orders-2 from offset 999; the log holds 10 to 500" in found.title
    told = {"partition": "orders-2", "offset": 999, "log_start_offset": 10, "log_end_offset": 500}
    assert found.numbers["partitions"] == [told]
    (found,) = findings(failed)
    assert "its range is not in the capture" in found.title
    later["log_start_offset"], later["high_watermark"] = 1_200, -1
    (found,) = findings(failed, fetched)
    assert "the log begins at 1200; 201 records from there on are gone" in found.title
    assert found.numbers["gone"] == 1_200 - 999


def test_an_offset_whose_records_were_deleted_names_who_did_it() -> None:
    """From the offset on, up to the low watermark that DeleteRecords answers; only where it came before the fetch."""
    asked = {"topics": [{"topic_id": "id-1", "partitions": [{"partition": 2, "fetch_offset": 120}]}]}
    answer = {"responses": [{"topic_id": "id-1", "partitions": [{"partition_index": 2, "error_code": 1}]}]}
    errors = [("responses[0].partitions[0].error_code", 1, "OFFSET_OUT_OF_RANGE", False)]
    failed = exchange(request=asked, response=answer, errors=errors, outcome="error")
    done = {
        "topics": [{"name": "orders", "partitions": [{"partition_index": 2, "error_code": 0, "low_watermark": 207}]}]
    }
    deleted = exchange("DeleteRecords", 21, 2, request={}, response=done, client_id="cleaner")
    named = metadata(partition(2, 1, 0))
    (found,) = findings(named, deleted, failed)
    assert (found.code, found.severity) == ("offset_out_of_range", "warning")
    assert found.title.endswith("had deleted 87 records from there on (DeleteRecords)")
    assert found.numbers["deleted"] == 87 and found.numbers["deleted_by"][0].startswith("cleaner")
    assert "retention deleted" not in found.remedy and "the log begins at 207" in found.title
    (found,) = findings(named, failed, deleted)
    assert "deleted" not in found.title


def test_a_producer_that_goes_round_its_partitions_has_no_hot_one() -> None:
    """One request for each of eight, over and over: every eighth, of which a sample might be made, is for the same."""
    spread = metadata(*[partition(index, 1, 0) for index in range(8)])
    sent = [produce(number * SECOND // 50, number % 8) for number in range(6_000)]
    assert findings(spread, *sent) == []


def test_a_hot_partition_is_told_over_what_can_be_seen() -> None:
    """Partitions of brokers that are not in the capture prove nothing."""
    spread = metadata(*[partition(index, 1, 0) for index in range(6)])
    sent = [produce(number * SECOND // 50, 0 if number % 10 else 1) for number in range(1000)]
    (found,) = findings(spread, *sent)
    assert (found.code, found.subject) == ("hot_partition", "orders-0")
    assert found.numbers["partitions"] == 6 and found.numbers["share"] > 0.8
    elsewhere = metadata(*[partition(index, 1 if index < 2 else 2, 0) for index in range(6)])
    assert findings(elsewhere, *sent) == []
    even = [produce(number * SECOND // 50, number // 8 % 6) for number in range(1000)]
    assert findings(spread, *even) == []


def test_partitions_are_as_hot_by_digests_as_by_bodies() -> None:
    """A topic by its name or by an id; a digest that leaves out a batch that is cut does not count."""

    def digested(number: int, index: int, name: str, *, is_cut: bool = False) -> Exchange:
        made = produce(number * SECOND // 50, index)
        assert made.request is not None
        size = made.request.body["topic_data"][0]["partition_data"][0]["records"][0]["size_bytes"]  # type: ignore[index]
        part, topic, digest = PartitionDigest(), TopicDigest(), Digest()
        part.index, part.size_bytes, part.batches = index, size, 1
        topic.name, topic.is_id, topic.partitions = name, name == "id-1", [part]
        digest.parts, digest.batches, digest.records, digest.is_cut = [topic], 1, 100, is_cut
        made.request.digest = digest
        if not is_cut:
            made.request.body = None
        return made

    spread = metadata(*[partition(index, 1, 0) for index in range(6)])
    (by_body,) = findings(spread, *[produce(number * SECOND // 50, 0 if number % 10 else 1) for number in range(1000)])
    for name in ("orders", "id-1"):
        sent = [digested(number, 0 if number % 10 else 1, name) for number in range(1000)]
        assert findings(spread, *sent) == [by_body]
    cut = [digested(number, 0 if number % 10 else 1, "other", is_cut=True) for number in range(1000)]
    assert findings(spread, *cut) == [by_body]


def test_who_has_only_asked_for_a_topic_may_have_meant_to_read_it() -> None:
    """Some clients ask for their topics before anything that tells what they are."""
    member = {"error_code": 3, "name": "orders", "partitions": []}
    errors = [("topics[0].error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION", True)]
    asked = [
        exchange(
            "Metadata", 3, 12, request={}, response={"topics": [member]}, errors=errors, outcome="error",
            start_ns=START_NS + at * SECOND,
        )
        for at in range(4)
    ]  # fmt: skip
    (found,) = findings(*asked)
    assert found.severity == "error" and "if it produces, nothing is delivered" in found.title
    (found,) = findings(exchange("InitProducerId", 22, 4, response={}), *asked)
    assert found.severity == "error" and "which does not exist: nothing is delivered" in found.title


def test_a_topic_that_cannot_be_made_is_told_before_those_who_ask_for_it() -> None:
    """Kafka Streams asks for an internal topic again and again that its own CreateTopics was refused."""
    name = "INVALID_REPLICATION_FACTOR"
    refused = {"topics": [{"name": "orders", "error_code": 38, "error_message": "only 3 brokers are registered"}]}
    create = exchange(
        "CreateTopics", 19, 7, client_id="count-admin", response=refused, outcome="error", start_ns=START_NS,
        errors=[("topics[0].error_code", 38, name, False)],
    )  # fmt: skip
    asked = [unknown(at * SECOND, "count-consumer") for at in range(1, 6)]
    (found,) = findings(create, *asked)
    assert (found.code, found.severity) == ("invalid_replication_factor", "error")
    assert [one.code for one in found.symptoms] == ["unknown_topic_or_partition"]
    assert codes(create) == [("invalid_replication_factor", "info")]
