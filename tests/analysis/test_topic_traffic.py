"""Topic first: producers, consumers, lag, and the time from produce to consume."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kwiresniff.analysis import topic_table
from kwiresniff.analysis.topic_parts import topic_of_path
from kwiresniff.analysis.topic_state import MAX_SEQUENCES, ClientState
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.base.batch_layout import CODEC_NAMES
from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.topics import Topic
from kwiresniff.session import Analyzer
from tests.support.events import analyze_with
from tests.support.exchanges import START_NS, connection, exchange, fetched, fetched_topics, produced

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
MS = 1_000_000


def traffic_of(file: str) -> dict[str, Topic]:
    """The topics of a recording, by name."""
    analyzer = Analyzer("bodies")
    traffic = TopicTraffic(analyzer.topics.name)
    for event in analyze_with(analyzer, open_captures([str(CAPTURES / file)])):
        if isinstance(event, Exchange):
            traffic.exchange(event)
    return {topic.name: topic for topic in traffic.topics()}


def only(*given: Exchange, names: dict[str, str] | None = None) -> Topic:
    traffic = TopicTraffic((names or {}).get)
    for one in given:
        traffic.exchange(one)
    (topic,) = traffic.topics()
    return topic


def batch(base_offset: int, records: int = 1, **more: Any) -> dict[str, Any]:
    fields = {"base_offset": base_offset, "last_offset_delta": records - 1, "records_count": records}
    return {**fields, "size_bytes": 100, "compression": "none", "producer_id": -1, **more}


def produce(base_offset: int, batches: list[dict[str, Any]], *, start_ns: int = START_NS, **more: Any) -> Exchange:
    """A Produce to partition 0 of ``orders``, answered after a millisecond with the offset it was given."""
    return produced(batches, offset=base_offset, start_ns=start_ns, client_id="shop", **more)


def fetch(
    offset: int | None, high_watermark: int, batches: list[dict[str, Any]], *, start_ns: int = START_NS, **more: Any
) -> Exchange:
    """A Fetch from partition 0 of ``orders``; ``offset`` None is an incremental one in which nothing changed."""
    return fetched(batches, offset=offset, high_watermark=high_watermark, start_ns=start_ns, **more)


def test_a_recorded_group_read_what_was_written() -> None:
    """Group.java: a producer ``shop`` writes one record to each of four partitions, twice; all are read and committed
    by two members of ``warehouse``."""
    topic = traffic_of("java-group-consumer.pcapng")["shelves"]
    assert [partition.partition for partition in topic.partitions] == [0, 1, 2, 3]
    assert (topic.produced.records, topic.consumed.records) == (8, 8)
    assert [partition.high_watermark for partition in topic.partitions] == [2, 2, 2, 2]
    (producer,) = topic.producers
    assert (producer.client_id, producer.flow.records, producer.acks) == ("shop", 8, (-1,))
    assert producer.software == ("apache-kafka-java", "4.4.0")
    assert {(one.client_id, one.groups) for one in topic.consumers} == {
        ("member-1", ("warehouse",)),
        ("member-2", ("warehouse",)),
    }
    (group,) = topic.groups
    assert (group.group, group.lag) == ("warehouse", 0)
    assert [(index, offset) for index, offset, _ in group.partitions] == [(0, 2), (1, 2), (2, 2), (3, 2)]
    assert topic.lag == 0
    assert topic.produce_to_consume is not None
    assert topic.produce_to_consume.count == 8


def test_the_marks_of_transactions_are_no_records() -> None:
    """Transactions.java: one record committed, one aborted, one fenced; the reader gets three batches and two marks."""
    topic = traffic_of("java-transactions.pcap")["outgoing"]
    assert (topic.produced.records, topic.refused.records) == (2, 1)
    assert (topic.consumed.records, topic.consumed.batches) == (2, 2)
    (producer,) = topic.producers
    assert (producer.transactional_ids, producer.idempotent, producer.errors) == (("transfer-1",), True, 1)


def test_behind_the_marks_of_transactions_a_consumer_goes_on() -> None:
    """Nothing but a mark came, at offset 5: it is no batch of records, and the consumer wants 6 next."""
    topic = only(fetch(5, 6, [batch(5, is_control=True)]))
    assert (topic.consumed.batches, topic.consumed.size_bytes, topic.lag) == (0, 0, 0)


def test_a_produce_without_its_response_is_counted_and_told() -> None:
    """Whether its records were written nobody knows; the next one was answered."""
    lost = produce(0, [batch(0, 3)], latency_ns=None, outcome="unanswered")
    (producer,) = only(lost, produce(3, [batch(0, 2)])).producers
    assert (producer.flow.requests, producer.flow.records, producer.unanswered) == (2, 5, 1)


def test_the_time_to_consume_is_from_the_produce_answer_to_the_fetch_answer() -> None:
    topic = only(
        produce(5, [batch(0, 3)], latency_ns=1 * MS),
        fetch(5, 8, [batch(5, 3)], start_ns=START_NS + 10 * MS, latency_ns=2 * MS),
    )
    answered = START_NS + 10_000 + 1 * MS + 20_000
    arrived = START_NS + 10 * MS + 10_000 + 2 * MS + 20_000
    assert topic.produce_to_consume is not None
    assert (topic.produce_to_consume.count, topic.produce_to_consume.min_ns) == (1, arrived - answered)


def test_the_age_of_records_is_from_their_own_timestamps_to_their_delivery() -> None:
    """Of the oldest record that a partition brings; a broker may stamp those that it appends (KIP-32)."""
    sent_ms, stamped_ms = START_NS // MS - 9_000, START_NS // MS - 2_000
    stamps = {"base_timestamp": sent_ms, "max_timestamp": stamped_ms}
    topic = only(
        fetch(5, 8, [batch(5, 1, timestamp_type="create_time", **stamps), batch(6, 2, base_timestamp=stamped_ms)]),
        fetch(8, 9, [batch(8, 1, timestamp_type="log_append_time", **stamps)]),
        fetch(9, 10, [batch(9, 1, base_timestamp=-1)]),
    )
    delivered_ns = START_NS + 10_000 + 1 * MS + 20_000
    for age in (topic.record_age, topic.consumers[0].record_age):
        assert age is not None
        assert age.count == 2
        assert (age.min_ns, age.max_ns) == (delivered_ns - stamped_ms * MS, delivered_ns - sent_ms * MS)


def test_lag_counts_a_partition_once_by_whichever_name_and_broker() -> None:
    """A topic by its name and by its id, and its partition at the leader before and at the one after."""
    by_id = fetch(6, 9, [], start_ns=START_NS + 20 * MS, on=connection(2, broker="10.0.0.2:9092"))
    for body, array in ((by_id.request, "topics"), (by_id.response, "responses")):
        assert body is not None and body.body is not None
        named = body.body[array][0]
        del named["topic"]
        named["topic_id"] = "ABEiM0RVZneImaq7zN3u_w"
    topic = only(fetch(2, 9, []), by_id, names={"ABEiM0RVZneImaq7zN3u_w": "orders"})
    assert (topic.lag, topic.consumers[0].lag) == (3, 3)


def test_a_group_is_at_the_offset_that_it_committed_last() -> None:
    """Its coordinator moves to another broker, and back."""
    asked = {"group_id": "g", "topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}]}
    commits = []
    for number, offset in enumerate((3, 5, 4)):
        body = {**asked, "topics": [{"name": "orders", "partitions": [
            {"partition_index": 0, "committed_offset": offset}]}]}  # fmt: skip
        on = connection(number + 1, broker=f"10.0.0.{1 + number % 2}:9092")
        commits.append(exchange("OffsetCommit", 8, 7, request=body, response={"topics": []}, on=on))
    (group,) = only(*commits).groups
    assert [(index, offset) for index, offset, _ in group.partitions] == [(0, 4)]


def test_a_batch_that_is_read_twice_is_timed_once() -> None:
    """The second time the position lies behind it: the broker sends whole batches."""
    topic = only(
        produce(5, [batch(0, 3)]),
        fetch(5, 8, [batch(5, 3)], start_ns=START_NS + 10 * MS),
        fetch(7, 8, [batch(5, 3)], start_ns=START_NS + 20 * MS),
    )
    assert topic.produce_to_consume is not None
    assert topic.produce_to_consume.count == 1


@pytest.mark.parametrize(
    ("given", "lag"),
    [
        ([fetch(5, 8, [])], 3),
        ([fetch(5, 8, [batch(5, 2)])], 1),
        ([fetch(5, 8, [batch(5, 2)]), fetch(None, 20, [])], 13),
        ([fetch(None, 20, [])], None),
        ([fetch(9, 8, [])], 0),
    ],
)
def test_lag_is_the_high_watermark_less_the_position(given: list[Exchange], lag: int | None) -> None:
    """The position is the offset asked for, or that behind the last record received; KIP-227 leaves out what did not
    change. Without either there is none."""
    assert only(*given).lag == lag


def test_a_restore_consumer_of_kafka_streams_has_no_lag() -> None:
    """It stops where the changelog ended, and its own task writes on (``StreamThread``'s ``-restore-consumer``)."""
    given = [fetch(0, 8, [batch(0, 8)]), fetch(None, 700, [])]
    for one in given:
        one.client_id = "shop-StreamThread-1-restore-consumer"
    topic = only(*given)
    assert (topic.lag, topic.consumers[0].lag, topic.consumers[0].flow.records) == (None, None, 8)


def test_the_lag_of_a_partition_that_another_member_took_over_is_that_member_s() -> None:
    first, second = connection(1, "10.0.0.5:1"), connection(2, "10.0.0.6:1")
    heartbeats = [
        exchange("Heartbeat", 12, 4, on=on, request={"group_id": "g", "member_id": "m"}) for on in (first, second)
    ]
    topic = only(
        *heartbeats,
        fetch(5, 8, [], on=first),
        fetch(8, 8, [], on=second, start_ns=START_NS + 10 * MS),
    )
    assert [(one.address, one.lag) for one in topic.consumers] == [("10.0.0.5", None), ("10.0.0.6", 0)]


def test_a_topic_named_by_its_id_before_its_name_was_known_is_one_topic() -> None:
    topic_id = "jWO6SiLjSTCHjeAr_wJzNg"
    by_id = fetch(5, 8, [batch(5)])
    assert by_id.request is not None and by_id.response is not None
    by_id.request.body = {
        "topics": [{"topic_id": topic_id, "partitions": [{"partition": 0, "fetch_offset": 5}]}],
    }
    by_id.response.body = {
        "responses": [{"topic_id": topic_id, "partitions": [{"partition_index": 0, "records": [batch(5)]}]}]
    }
    topic = only(by_id, produce(5, [batch(0)]), names={topic_id: "orders"})
    assert (topic.name, topic.topic_id) == ("orders", topic_id)
    assert (topic.produced.records, topic.consumed.records) == (1, 1)


def test_a_follower_is_no_consumer() -> None:
    follower = fetch(5, 8, [batch(5)])
    assert follower.request is not None
    follower.request.body = {**(follower.request.body or {}), "replica_id": 2}
    topic = only(follower)
    assert [one.role for one in topic.consumers] == ["replica"]
    assert (topic.consumed.records, topic.lag) == (0, None)


def test_what_a_group_committed_is_held_against_the_high_watermark() -> None:
    parts = [{"partition_index": 0, "committed_offset": 6}, {"partition_index": 1, "committed_offset": 4}]
    topics = [{"name": "orders", "partitions": parts}]
    commit = exchange("OffsetCommit", 8, 8, request={"group_id": "g", "topics": topics}, response={})
    (group,) = only(fetch(5, 8, []), commit).groups
    assert (group.group, group.partitions, group.lag) == ("g", ((0, 6, 2), (1, 4, None)), 2)


def test_errors_belong_to_the_topic_that_their_path_leads_to() -> None:
    body = {"responses": [{"name": "a"}, {"name": "b", "partition_responses": [{"index": 0, "error_code": 6}]}]}
    assert topic_of_path(body, "responses[1].partition_responses[0].error_code") == "b"
    assert topic_of_path(body, "responses[7].partition_responses[0].error_code") is None
    assert topic_of_path(body, "error_code") is None
    failed = produce(-1, [batch(0)], errors=[("responses[0].partition_responses[0].error_code", 6, "NOT_LEADER", True)])
    topic = only(failed)
    assert topic.errors == (("NOT_LEADER", 1),)
    assert topic.producers[0].errors == 1


def test_what_is_remembered_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand topics with names of a kilobyte, of which 100 kB are kept."""
    monkeypatch.setattr(topic_table, "MAX_REMEMBERED_BYTES", 100_000)
    traffic = TopicTraffic()
    on = connection()
    for number in range(10_000):
        name = f"{number:01000}"
        topics = [{"topic": name, "partitions": [{"partition": 0, "fetch_offset": 1}]}]
        traffic.exchange(exchange(on=on, request={"topics": topics}, response={"responses": []}))
    kept = traffic.topics()
    assert 5 < len(kept) < 100
    assert traffic.left_out >= 10_000 - len(kept)


def test_partitions_of_one_client_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """One client that asks for a hundred thousand partitions."""
    monkeypatch.setattr(topic_table, "MAX_REMEMBERED_BYTES", 1_000_000)
    parts = [{"partition": number, "fetch_offset": 1} for number in range(100_000)]
    request = {"topics": [{"topic": "orders", "partitions": parts}]}
    topic = only(exchange(request=request, response={"responses": []}))
    assert 100 < len(topic.partitions) < 1_000
    assert len(topic.consumers[0].partitions) <= len(topic.partitions)


def test_the_waits_of_a_client_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand waits, each in a bucket of its own, where there is room for some hundred."""
    monkeypatch.setattr(topic_table, "MAX_REMEMBERED_BYTES", 20_000)
    table = topic_table.TopicTable()
    client = ClientState("consumer", 0)
    for number in range(10_000):
        table.measured(client.waits, int(1.01**number) if number < 3_000 else number)
    assert 16 <= len(client.waits.buckets) <= 16 + 20_000 // 100
    assert table.left_out > 0


def test_recordings_are_the_same_topics_with_and_without_digests() -> None:
    """Produce, Fetch and ShareFetch, compiled, where bodies that have a digest are put off."""
    for file in ("java-share-group.pcap", "java-group-classic.pcap", "java-transactions.pcap", "franz-go.pcap"):
        found = []
        for digests in (False, True):
            analyzer = Analyzer(Needs("bodies", digests=digests))
            traffic = TopicTraffic(analyzer.topics.name)
            for event in analyze_with(analyzer, open_captures([str(CAPTURES / file)])):
                if isinstance(event, Exchange):
                    traffic.exchange(event)
            found.append(traffic.topics())
        assert found[0] == found[1]
        assert found[0]


@pytest.mark.parametrize("odd", [None, 7, "x", b"x", [], {}, [None], [[]], [{}], [7]])
def test_bodies_of_another_shape_are_no_reason_to_fail(odd: object) -> None:
    traffic = TopicTraffic()
    body: dict[str, Any] = dict.fromkeys(("topics", "topic_data", "responses", "groups", "group_id", "member_id"), odd)
    nested = {"topics": [{"name": "a", "partitions": odd}, {"topic_id": odd, "partitions": [{"partition": odd}]}]}
    for api, key in (("Produce", 0), ("Fetch", 1), ("OffsetCommit", 8), ("OffsetFetch", 9), ("ShareFetch", 78)):
        traffic.exchange(exchange(api, key, 9, on=Connection(1, "a:1", "b:2"), request=body, response=body))
        traffic.exchange(exchange(api, key, 9, on=Connection(1, "a:1", "b:2"), request=nested, response=nested))
    assert {topic.name for topic in traffic.topics()} <= {"a", "x"}


def test_an_incremental_fetch_is_a_request_of_all_topics_of_its_session() -> None:
    """Though neither it nor its answer names them."""
    empty = fetch(None, 10, [], start_ns=START_NS + MS)
    assert empty.request is not None and empty.response is not None
    empty.request.body, empty.response.body = {"topics": []}, {"responses": []}
    empty.fetched = fetched_topics(["orders"])
    topic = only(fetch(3, 10, []), empty)
    assert topic.consumers[0].flow.requests == 2


def test_a_session_s_fetches_count_for_a_topic_from_when_it_is_known() -> None:
    """Whom the fetches of a session count for is remembered between them, and looked up anew when more is known."""
    session = fetched_topics(["orders", "later"])

    def poll(number: int) -> Exchange:
        empty = fetch(None, 10, [], start_ns=START_NS + number * MS)
        assert empty.request is not None and empty.response is not None
        empty.request.body, empty.response.body = {"topics": []}, {"responses": []}
        empty.fetched = session
        return empty

    named = fetch(3, 10, [], start_ns=START_NS + 3 * MS)
    assert named.request is not None and named.response is not None
    for body, field in ((named.request.body, "topics"), (named.response.body, "responses")):
        assert body is not None
        body[field][0]["topic"] = "later"
    traffic = TopicTraffic()
    for one in (fetch(3, 10, []), poll(1), poll(2), named, poll(4), poll(5)):
        traffic.exchange(one)
    assert {topic.name: topic.consumers[0].flow.requests for topic in traffic.topics()} == {"orders": 5, "later": 3}


def test_more_fetch_sessions_than_are_remembered_are_counted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten of a session is looked up again; three sessions take turns where two are followed."""
    monkeypatch.setattr("kwiresniff.analysis.followed_sessions.MAX_FOLLOWED", 20)
    traffic = TopicTraffic()
    connections = [connection(number, f"10.0.0.5:{number}") for number in (1, 2, 3)]
    sessions = [fetched_topics(["orders"]) for _ in connections]
    traffic.exchange(fetch(3, 10, [], on=connections[0]))
    for turn in range(1, 4):
        for on, session in zip(connections, sessions, strict=True):
            empty = fetch(None, 10, [], start_ns=START_NS + turn * MS, on=on)
            assert empty.request is not None and empty.response is not None
            empty.request.body, empty.response.body = {"topics": []}, {"responses": []}
            empty.fetched = session
            traffic.exchange(empty)
    (topic,) = traffic.topics()
    assert sum(consumer.flow.requests for consumer in topic.consumers) == 1 + 3 * 3


def test_connections_whose_senders_share_a_place_are_told_apart() -> None:
    """The senders of so many connections are remembered; two take turns in one place."""
    ours, theirs = connection(1, "10.0.0.5:1"), connection(1 + topic_table.MAX_SENDERS, "10.0.0.6:1")
    turns = [
        produce(turn, [batch(turn)], start_ns=START_NS + turn * MS, on=(ours, theirs)[turn % 3 == 0])
        for turn in range(9)
    ]
    producers = {client.address: client.flow.requests for client in only(*turns).producers}
    assert producers == {"10.0.0.5": 6, "10.0.0.6": 3}


def test_partitions_and_topics_that_take_turns_on_a_connection_are_told_apart() -> None:
    """Each has its own position, high watermark, batches and waits, whichever was asked for before it."""
    traffic, rng, on = TopicTraffic(), Random("turns"), connection(1, "10.0.0.5:1")
    positions: dict[tuple[str, int], int] = {}
    batches = Counter[tuple[str, int]]()
    for turn in range(500):
        name, index = place = rng.choice(["t", "u"]), rng.randrange(3)
        positions[place] = offset = rng.randrange(10_000)
        batches[place] += 1
        one = fetch(offset, 0, [batch(offset)], start_ns=START_NS + turn * MS, on=on)
        assert one.request is not None and one.response is not None
        asked = [{"partition": index, "fetch_offset": offset}]
        one.request.body = {"topics": [{"topic": name, "partitions": asked}]}
        answer = {"partition_index": index, "high_watermark": 20_000 + index, "records": [batch(offset)]}
        one.response.body = {"responses": [{"topic": name, "partitions": [answer]}]}
        traffic.exchange(one)
    for topic in traffic.topics():
        mine = {index: offset for (name, index), offset in positions.items() if name == topic.name}
        assert topic.lag == sum(20_000 + index - offset - 1 for index, offset in mine.items())
        found = {one.partition: (one.high_watermark, one.consumed.batches) for one in topic.partitions}
        assert found == {index: (20_000 + index, batches[topic.name, index]) for index in mine}
        assert topic.consumers[0].partitions == (0, 1, 2)


def test_an_answer_counts_the_records_of_the_partition_that_was_written() -> None:
    """A Produce to partitions 0 and 1, of three records and of five, answered in the other order."""
    one = produce(0, [])
    assert one.request is not None and one.response is not None
    parts = [{"index": index, "records": [batch(0, records)]} for index, records in ((0, 3), (1, 5))]
    answers = [{"index": index, "error_code": 0, "base_offset": base} for index, base in ((2, 7), (1, 10), (0, 100))]
    one.request.body = {"acks": -1, "topic_data": [{"name": "orders", "partition_data": parts}]}
    one.response.body = {"responses": [{"name": "orders", "partition_responses": answers}]}
    assert [partition.high_watermark for partition in only(one).partitions] == [103, 15, 8]


def test_codecs_known_by_number_and_by_name_are_one_count() -> None:
    """Of a body that is decoded the names of the codecs are known, of one with a digest their numbers."""
    client = ClientState("producer", 0)
    client.batches[CODEC_NAMES.index("zstd")] = 2
    client.named_batches = {"zstd": 3, "unknown(7)": 1}
    assert client.compression() == {"zstd": 5, "unknown(7)": 1}


def test_a_session_that_grows_and_shrinks_counts_for_what_it_has_at_each_fetch() -> None:
    """With answers that name a topic once or twice, which is a request of it all the same."""
    traffic, rng, counted = TopicTraffic(), Random("grown sessions"), Counter[str]()
    names: list[str] = []
    for turn in range(300):
        if names and rng.random() < 0.2:
            names.remove(rng.choice(names))
        new = [f"t{rng.randrange(60)}"] if rng.random() < 0.5 else []
        names += [name for name in new if name not in names]
        told = rng.sample(names, min(len(names), rng.choice([0, 0, 1, 2])))
        one = fetch(None, 10, [], start_ns=START_NS + turn * MS)
        assert one.request is not None and one.response is not None
        one.request.body = {"topics": [{"topic": name, "partitions": [{"partition": 0}]} for name in new]}
        answers = [{"topic": name, "partitions": [{"partition_index": 0}]} for name in told]
        one.response.body = {"responses": answers}
        one.fetched = fetched_topics(list(names))
        counted.update(names)
        traffic.exchange(one)
    assert {one.name: one.consumers[0].flow.requests for one in traffic.topics()} == counted
    twice = [{"topic": "t", "partitions": [{"partition_index": 0}]}] * 2
    one = fetch(None, 10, [])
    assert one.request is not None and one.response is not None
    one.request.body, one.response.body = {"topics": []}, {"responses": twice}
    one.fetched = fetched_topics(["t"])
    assert only(one).consumers[0].flow.requests == 2


def test_a_connection_older_than_the_capture_makes_no_second_consumer() -> None:
    """A consumer that named its software on an older connection is one with that which names it on a newer one."""
    old, new = connection(1, "10.0.0.5:1"), connection(2, "10.0.0.5:2")
    new.client_software = {"name": "apache-kafka-java", "version": "4.4.0"}
    first, second = fetch(3, 10, [], on=old), fetch(5, 10, [], on=new, start_ns=START_NS + MS)
    (consumer,) = only(first, second).consumers
    assert consumer.software == ("apache-kafka-java", "4.4.0") and consumer.flow.requests == 2
    other = connection(3, "10.0.0.5:3")
    other.client_software = {"name": "librdkafka", "version": "2"}
    third = fetch(7, 10, [], on=other, start_ns=START_NS + 2 * MS)
    assert len(only(first, second, third).consumers) == 3  # whose it is, nobody knows


def refused(code: int, name: str, batches: list[dict[str, Any]]) -> Exchange:
    """A Produce to partition 0 of ``orders`` that is answered with an error."""
    one = produce(-1, batches)
    one.errors = [("responses[0].partition_responses[0].error_code", code, name, True)]
    one.outcome = "error"
    return one


def sent(sequence: int, **more: Any) -> list[dict[str, Any]]:
    """A batch of an idempotent producer, as a list."""
    return [batch(0, producer_id=7, producer_epoch=0, base_sequence=sequence, **more)]


def test_what_a_broker_refused_is_not_in_the_topic() -> None:
    """Ten times the same batch, and no record in; told apart for the topic and its producer."""
    topic = only(*[refused(19, "NOT_ENOUGH_REPLICAS", [batch(0)]) for _ in range(10)])
    assert (topic.produced.records, topic.partitions[0].produced.records) == (0, 0)
    assert topic.refused[1:] == topic.producers[0].refused[1:] == (10, 10, 1000)
    assert topic.producers[0].flow.records == 0 and topic.errors == (("NOT_ENOUGH_REPLICAS", 10),)


def test_of_a_produce_to_several_partitions_those_that_were_refused_are_left_out() -> None:
    """One of two partitions is refused."""
    one = refused(6, "NOT_LEADER_OR_FOLLOWER", [batch(0, 3)])
    assert one.request is not None and one.response is not None
    assert one.request.body is not None and one.response.body is not None
    one.request.body["topic_data"][0]["partition_data"].append({"index": 1, "records": [batch(0, 2)]})
    one.response.body["responses"][0]["partition_responses"].append({"index": 1, "error_code": 0, "base_offset": 9})
    topic = only(one)
    assert (topic.produced.records, topic.refused.records) == (2, 3)
    assert [(part.partition, part.produced.records) for part in topic.partitions] == [(0, 0), (1, 2)]


def test_a_batch_that_an_idempotent_producer_sends_again_is_in_the_topic_once() -> None:
    """By its sequence: answered with its first offset, or as a duplicate; after a refusal it is taken for the first
    time (KIP-98).
    """
    again = only(produce(100, sent(0)), produce(101, sent(1)), produce(100, sent(0)))
    assert (again.produced.records, again.repeated.records) == (2, 1)
    told = only(produce(100, sent(0)), refused(46, "DUPLICATE_SEQUENCE_NUMBER", sent(0)))
    assert (told.produced.records, told.repeated.records, told.refused.records) == (1, 1, 0)
    later = only(refused(6, "NOT_LEADER_OR_FOLLOWER", sent(0)), produce(100, sent(0)))
    assert (later.produced.records, later.repeated.records, later.refused.records) == (1, 0, 1)
    unanswered = produce(100, sent(0))
    unanswered.response, unanswered.outcome = None, "unanswered"
    for given in ([unanswered, produce(100, sent(0))], [produce(100, sent(0)), unanswered]):
        assert (only(*given).produced.records, only(*given).repeated.records) == (1, 1)


def test_producers_and_epochs_have_sequences_of_their_own() -> None:
    """Sequence 0 of another id, another epoch, and of none is another batch."""
    others = [batch(0, producer_id=8, producer_epoch=0, base_sequence=0), batch(0, producer_id=7, producer_epoch=1,
              base_sequence=0), batch(0), batch(0)]  # fmt: skip
    topic = only(produce(0, sent(0)), *[produce(number, [one]) for number, one in enumerate(others, 1)])
    assert (topic.produced.records, topic.repeated.records) == (5, 0)


def test_sequences_are_remembered_up_to_a_limit() -> None:
    """As many as brokers remember of each producer; what is older counts as taken once more."""
    last = [produce(number, sent(number)) for number in range(MAX_SEQUENCES + 1)]
    assert only(*last, produce(1, sent(1))).repeated.records == 1
    assert only(*last, produce(0, sent(0))).repeated.records == 0
