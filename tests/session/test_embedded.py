"""What bytes fields hold, in whole conversations: where it is found, and that no secret comes out with it."""

from __future__ import annotations

import random
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from kwiresniff import codec, schema
from kwiresniff.analysis.body_entities import record_sets
from kwiresniff.capture import open_captures
from kwiresniff.codec.embedded import OPENERS, BodyView, NodeView
from kwiresniff.codec.records import encode_record_set
from kwiresniff.model import Body, Connection, Direction, Exchange, Node, Problem
from kwiresniff.render import TreeWriter
from kwiresniff.session import TopicNameTable, analyze, annotate
from tests.support.conversation import (
    Wire,
    api_versions_v0,
    api_versions_v0_response,
    events,
    exchanges,
    request,
    response,
)
from tests.support.embedded_vectors import VECTORS

CAPTURES = Path(__file__).parents[2] / "captures"
CONNECTION = Connection(1, "client:1", "broker:9092")
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def default(field: schema.WireField) -> Any:
    if field.array:
        return None if field.nullable else []
    if field.type == "STRUCT":
        return None if field.nullable else body_of(field.fields)
    if field.default is not None:
        return field.default
    if field.nullable or "NULLABLE" in field.type:
        return None
    if field.type.endswith("STRING"):
        return ""
    if field.type.endswith(("BYTES", "RECORDS")):
        return b""
    return "A" * 22 if field.type == "UUID" else 0


def body_of(fields: tuple[schema.WireField, ...], **values: Any) -> Body:
    """A structure with these values and otherwise nothing in it."""
    return {field.name: values.get(field.name, default(field)) for field in fields}


def inner(fields: tuple[schema.WireField, ...], name: str) -> tuple[schema.WireField, ...]:
    return next(field.fields for field in fields if field.name == name)


def conversation(
    api_key: int, version: int, asked: Body, answered: Body, *, show_secrets: bool = False
) -> tuple[Exchange, TopicNameTable]:
    """One exchange as the analyzer gives it, after one that makes the connection known."""
    tags = b"\0" if schema.request_header_version(api_key, version) == 2 else b""
    response_tags = b"\0" if schema.response_header_version(api_key, version) == 1 else b""
    wire = Wire().open().up(api_versions_v0(1)).down(api_versions_v0_response(1))
    wire.up(request(api_key, version, 2, codec.encoder(api_key, version, "request")(asked), tags=tags))
    wire.down(response(2, codec.encoder(api_key, version, "response")(answered), tags=response_tags))
    return exchanges(events(wire, depth="records", show_secrets=show_secrets))[1], TopicNameTable()


def batch(*values: bytes) -> Body:
    """A record batch of values without keys."""
    records: list[Body] = [
        {"offset": offset, "timestamp": 0, "key": None, "value": value, "headers": []}
        for offset, value in enumerate(values)
    ]
    nothing = dict.fromkeys(("producer_id", "producer_epoch", "base_sequence"), -1)
    front = {"base_offset": 0, "partition_leader_epoch": 0, "magic": 2, "attributes": 0}
    counts = {"last_offset_delta": len(values) - 1, "records_count": len(values)}
    return {**front, **counts, "base_timestamp": 0, "max_timestamp": 0, **nothing, "records": records}


def fetched(version: int, *names: str, show_secrets: bool = False) -> tuple[list[Body], list[str]]:
    """Records of the metadata log after a Fetch or, with version -1, a FetchSnapshot; and everything in the tree."""
    api_key, version, topics, records = (
        (59, 0, "topics", "unaligned_records") if version < 0 else (1, version, "responses", "records")
    )
    asked = body_of(schema.message(api_key, version, "request").fields)
    fields = schema.message(api_key, version, "response").fields
    topic_fields = inner(fields, topics)
    values = [VECTORS[name].value or b"" for name in names]
    partition = body_of(inner(topic_fields, "partitions"), **{records: [batch(*values)]})
    named = {"topic": "__cluster_metadata", "name": "__cluster_metadata", "topic_id": METADATA_TOPIC_ID}
    topic = body_of(topic_fields, partitions=[partition], **named)
    answered = body_of(fields, **{topics: [topic]})
    exchange, known = conversation(api_key, version, asked, answered, show_secrets=show_secrets)
    assert exchange.problems == []
    assert exchange.response is not None and exchange.response.body is not None
    dissection = annotate(exchange, "response", known, show_secrets=show_secrets)
    assert dissection is not None and dissection.problems == []
    seen: list[str] = []
    todo: list[Node] = [dissection.root]
    while todo:
        node = todo.pop()
        seen.append(f"{node.name} {node.value!r} {node.meaning}")
        todo += node.children
    return exchange.response.body[topics][0]["partitions"][0][records][0]["records"], seen


@pytest.mark.parametrize("version", [12, 17, -1], ids=["by name", "by id", "snapshot"])
def test_records_of_the_metadata_log_are_read_by_whatever_way_they_come(version: int) -> None:
    (record,), seen = fetched(version, "metadata-topic")
    assert record["decoded"]["value"]["data"]["name"] == "orders"
    assert "name 'orders' " in seen


@pytest.mark.parametrize("version", [12, 17, -1], ids=["by name", "by id", "snapshot"])
def test_credentials_in_the_metadata_log_are_withheld_decoded_or_not(version: int) -> None:
    records, seen = fetched(version, "metadata-scram", "metadata-password", "metadata-config")
    scram, password, config = records
    assert scram["value"] == {"withheld": True, "size_bytes": len(VECTORS["metadata-scram"].value or b"")}
    assert scram["decoded"]["value"]["data"] == {
        "name": "alice",
        "mechanism": 1,
        "salt": {"withheld": True, "size_bytes": 14},
        "stored_key": {"withheld": True, "size_bytes": 13},
        "server_key": {"withheld": True, "size_bytes": 13},
        "iterations": 4096,
    }
    assert password["decoded"]["value"]["data"]["value"] == {"withheld": True, "size_bytes": 14}
    assert config["decoded"]["value"]["data"]["value"] == "2"
    assert config["value"] == VECTORS["metadata-config"].value
    for text in (repr(records), *seen):
        assert not any(secret in text for secret in ("salt-salt", "stored-stored", "server-server", "hunter2"))
    assert "iterations 4096 " in seen


def test_credentials_in_the_metadata_log_are_shown_when_asked_for() -> None:
    (record,), seen = fetched(17, "metadata-scram", show_secrets=True)
    assert record["decoded"]["value"]["data"]["stored_key"] == b"stored-stored"
    assert "stored_key b'stored-stored' " in seen


def test_a_piece_of_a_snapshot_keeps_its_secrets_and_its_whole_batches() -> None:
    """The piece begins inside a batch with a credential and ends inside another."""
    secret = encode_record_set([batch(VECTORS["metadata-scram"].value or b"")])
    piece = secret[40:] + encode_record_set([batch(VECTORS["metadata-topic"].value or b"")]) + secret[:-20]
    fields = schema.message(59, 0, "response").fields
    topics = inner(fields, "topics")
    partition = body_of(inner(topics, "partitions"), unaligned_records=piece)
    answered = body_of(fields, topics=[body_of(topics, name="__cluster_metadata", partitions=[partition])])
    exchange, known = conversation(59, 0, body_of(schema.message(59, 0, "request").fields), answered)
    assert (exchange.problems, exchange.outcome) == ([], "ok")
    assert exchange.response is not None and exchange.response.body is not None
    front, whole, end = exchange.response.body["topics"][0]["partitions"][0]["unaligned_records"]
    assert front == {"truncated": True, "size_bytes": len(secret) - 40}
    assert whole["records"][0]["decoded"]["value"]["message"] == "TopicRecord"
    assert (end["truncated"], end["size_bytes"]) == (True, len(secret) - 20)
    dissection = annotate(exchange, "response", known)
    assert dissection is not None and dissection.problems == []
    out = StringIO()
    TreeWriter(out, None, False, 2).write(exchange, None, dissection)
    shown = "".join(line[8:56] for line in out.getvalue().splitlines())
    assert b"orders".hex(" ") in shown
    assert b"sto".hex(" ") not in shown and b"ser".hex(" ") not in shown  # stored-stored, server-server


def enveloped(api_key: int, version: int, asked: Body, answered: Body) -> tuple[Exchange, str]:
    raw = request(api_key, version, 7, codec.encoder(api_key, version, "request")(asked), tags=b"\0")[4:]
    back = response(7, codec.encoder(api_key, version, "response")(answered), tags=b"\0")[4:]
    outer = {"request_data": raw, "request_principal": b"\0\0\5User\6alice\0\0", "client_host_address": b"\x7f\0\0\1"}
    exchange, topics = conversation(58, 0, outer, {"response_data": back, "error_code": 0})
    assert exchange.problems == []
    dissections = [annotate(exchange, which, topics) for which in BOTH]
    return exchange, "".join(
        everything(dissection.root) + repr(dissection.problems) for dissection in dissections if dissection is not None
    )


def everything(node: Node) -> str:
    """All that an annotated message says, in no form for people."""
    said = f"{node.name} {node.value!r} meaning={node.meaning!r} {node.problem} {node.hint}"
    return "\n".join([said, *map(everything, node.children)])


def test_an_enveloped_request_and_its_response_are_read() -> None:
    topic = {"name": "orders", "topic_id": None}
    asked = body_of(schema.message(20, 6, "request").fields, topics=[{**topic, "topic_id": "A" * 22}], timeout_ms=5000)
    fields = schema.message(20, 6, "response").fields
    result = body_of(inner(fields, "responses"), name="orders", error_code=29)
    exchange, tree = enveloped(20, 6, asked, body_of(fields, responses=[result]))
    assert exchange.request is not None and exchange.response is not None
    forwarded = (exchange.request.body or {})["request_data_decoded"]
    assert {name: forwarded[name] for name in forwarded if name != "body"} == {
        "api_key": 20, "api": "DeleteTopics", "api_version": 6, "correlation_id": 7, "client_id": "c-1",
    }  # fmt: skip
    assert forwarded["body"] == asked
    principal = (exchange.request.body or {})["request_principal_decoded"]["data"]
    assert principal == {"type": "User", "name": "alice", "token_authenticated": False}
    answer = (exchange.response.body or {})["response_data_decoded"]
    assert (answer["api"], answer["correlation_id"]) == ("DeleteTopics", 7)
    assert answer["body"]["responses"][0]["error_code"] == 29
    assert "meaning='TOPIC_AUTHORIZATION_FAILED'" in tree
    path = "response_data_decoded.body.responses[0].error_code"
    assert (exchange.outcome, exchange.errors) == ("error", [(path, 29, "TOPIC_AUTHORIZATION_FAILED", False)])


def answered_with(raw: bytes, request_data: bytes) -> tuple[Body, list[str], str]:
    """An Envelope's response body, what is wrong with the exchange, and its tree."""
    asked = body_of(schema.message(58, 0, "request").fields, request_data=request_data)
    exchange, known = conversation(58, 0, asked, {"response_data": raw, "error_code": 0})
    assert exchange.response is not None and exchange.response.body is not None
    out = StringIO()
    TreeWriter(out, None, False).write(exchange, *(annotate(exchange, which, known) for which in BOTH))
    return exchange.response.body, [problem.message for problem in exchange.problems], out.getvalue()


BOTH: tuple[Direction, Direction] = ("request", "response")


def asked_with(api_key: int, version: int) -> bytes:
    body = codec.encoder(api_key, version, "request")(body_of(schema.message(api_key, version, "request").fields))
    return request(api_key, version, 7, body, tags=b"\0")[4:]


def test_an_enveloped_answer_that_cannot_be_read_is_read_as_far_as_it_goes_and_shown_escaped() -> None:
    raw = b"\0\0\0\7\0" + b"\0\0\0\5" + b"\x1b[31m\xff"
    body, problems, tree = answered_with(raw, asked_with(37, 3))
    assert body["response_data"] == raw
    inner = body["response_data_decoded"]
    assert (inner["api"], inner["body"]["throttle_time_ms"]) == ("CreatePartitions", 5)
    (problem,) = problems
    assert problem.startswith("response_data should hold CreatePartitions response v3: ")
    assert tree.count(problem) == 1
    assert "undecoded [31m\\xff" in tree
    assert "\x1b" not in tree


def test_an_enveloped_answer_that_may_hold_a_secret_is_not_shown_when_it_cannot_be_read() -> None:
    body, _, tree = answered_with(b"\0\0\0\7\0\xffhunter2", asked_with(38, 3))
    assert body["response_data"] == {"withheld": True, "size_bytes": 13}
    assert "hunter2" not in repr(body) + tree


def test_an_answer_too_short_for_a_header_is_a_problem() -> None:
    body, problems, tree = answered_with(b"\0\x9b", asked_with(19, 7))
    assert problems[0].startswith("response_data should hold CreateTopics response: ")
    assert "response_data_decoded" not in body
    assert problems[0] in tree


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x1b", "request_data should hold a request: "),
        (b"\x03\xe7\0\0\0\0\0\1\0\1x", "request_data should hold a request: no API has key 999"),
        (b"\0\x3a\0\0\0\0\0\1\0\1x\0", "request_data should hold a request: it is an envelope itself"),
    ],
)
def test_bytes_that_are_no_forwarded_request_stay_with_a_problem(raw: bytes, reason: str) -> None:
    body, problems, tree = answered_with(b"answer", raw)
    assert problems[0].startswith(reason)
    assert problems[0] in tree
    assert body["response_data"] == {"withheld": True, "size_bytes": 6}  # it does not say what it answers
    assert "\x1b" not in tree


def test_secrets_in_an_envelope_are_withheld() -> None:
    fields = schema.message(51, 0, "request").fields
    upsertion = body_of(
        inner(fields, "upsertions"),
        name="alice",
        mechanism=1,
        iterations=4096,
        salt=b"salt-salt",
        salted_password=b"hunter2!",
    )
    asked = body_of(fields, upsertions=[upsertion], deletions=[])
    answered = body_of(schema.message(51, 0, "response").fields, results=[])
    exchange, tree = enveloped(51, 0, asked, answered)
    assert exchange.request is not None and exchange.request.body is not None
    body = exchange.request.body
    assert body["request_data"]["withheld"]
    inside = body["request_data_decoded"]["body"]["upsertions"][0]
    assert (inside["name"], inside["salted_password"]) == ("alice", {"withheld": True, "size_bytes": 8})
    for text in (repr(body), tree):
        assert "hunter2" not in text
        assert "salt-salt" not in text
    assert "'alice'" in tree


def test_a_tokens_hmac_in_an_envelopes_response_is_withheld() -> None:
    asked = body_of(schema.message(38, 3, "request").fields, renewers=[])
    answered = body_of(schema.message(38, 3, "response").fields, hmac=b"hmac-hmac", token_id="t-1")
    exchange, tree = enveloped(38, 3, asked, answered)
    assert exchange.response is not None and exchange.response.body is not None
    body = exchange.response.body
    assert body["response_data"]["withheld"]
    assert body["response_data_decoded"]["body"]["token_id"] == "t-1"
    assert "hmac-hmac" not in repr(body) + tree


def test_the_answer_to_an_old_join_is_read_by_what_was_asked() -> None:
    subscription = VECTORS["connect-state-1"].value
    asked = body_of(schema.message(11, 5, "request").fields, group_id="workers", protocol_type="connect")
    asked["protocols"] = [{"name": "compatible", "metadata": subscription}]
    fields = schema.message(11, 5, "response").fields
    member = body_of(inner(fields, "members"), member_id="m-1", metadata=subscription)
    answered = body_of(fields, protocol_name="compatible", members=[member])
    exchange, _ = conversation(11, 5, asked, answered)
    for message, array in ((exchange.request, "protocols"), (exchange.response, "members")):
        assert message is not None and message.body is not None
        assert message.body[array][0]["metadata_decoded"]["message"] == "ConnectWorkerState"


def test_what_a_consumer_should_have_sent_and_did_not_is_a_problem_of_the_exchange() -> None:
    asked = body_of(schema.message(11, 5, "request").fields, group_id="g", protocol_type="consumer")
    asked["protocols"] = [{"name": "range", "metadata": b"\0\0\0\0\0\7"}]
    exchange, topics = conversation(11, 5, asked, body_of(schema.message(11, 5, "response").fields, members=[]))
    (problem,) = exchange.problems
    assert (problem.code, problem.path) == ("embedded_undecoded", "protocols[0].metadata")
    assert problem.details == {"direction": "request"}
    dissection = annotate(exchange, "request", topics)
    assert dissection is not None
    assert [one.message for one in dissection.problems] == [problem.message]


@pytest.mark.parametrize(
    "name",
    [
        "aiokafka.pcap", "franz-go.pcap", "java-group-classic.pcap", "java-group-cooperative.pcap", "kafka-python.pcap",
        "kafkajs.pcap", "librdkafka.pcap", "old-java-0.10-group.pcap", "old-kafka-python-0.9.pcap", "sarama.pcap",
    ],
)  # fmt: skip
def test_every_clients_members_are_understood(name: str) -> None:
    found = [
        exchange
        for exchange in analyze(open_captures([str(CAPTURES / name)]), depth="bodies")
        if isinstance(exchange, Exchange) and exchange.api in ("JoinGroup", "SyncGroup", "DescribeGroups")
    ]
    opened = 0
    for exchange in found:
        assert exchange.problems == []
        for message in (exchange.request, exchange.response):
            body = (message.body if message is not None else None) or {}
            for array, field in (("protocols", "metadata"), ("members", "metadata"), ("assignments", "assignment")):
                for element in body.get(array, ()):
                    assert element[f"{field}_decoded"]["message"].startswith("ConsumerProtocol")
                    opened += 1
    assert opened > 1


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        (
            "kraft-3.7.pcap.xz",
            {
                "ConsumerGroupCurrentMemberAssignmentValue@3.7",
                "ConsumerGroupMemberMetadataValue@3.7",
                "ConsumerGroupPartitionMetadataValue@3.7",
                "ConsumerGroupTargetAssignmentMemberValue@3.7",
            },
        ),
        ("share-4.0.pcap.xz", {"ShareGroupMetadataValue@4.0", "ShareSnapshotValue@4.0", "ShareUpdateValue@4.0"}),
    ],
)
def test_what_coordinators_stored_on_trial_is_read_in_its_own_shape(name: str, shapes: set[str]) -> None:
    found: dict[str, list[Body]] = {}
    for exchange in analyze(open_captures([str(CAPTURES / "eras" / name)]), depth="records"):
        if isinstance(exchange, Exchange) and exchange.api == "Fetch":
            assert [problem for problem in exchange.problems if problem.code == "embedded_undecoded"] == []
            body = exchange.response.body if exchange.response is not None else None
            for _, _, batches in record_sets(body):
                for one in batches if isinstance(batches, list) else ():
                    for record in one.get("records", ()):
                        value = record.get("decoded", {}).get("value")
                        if value is not None and "@" in value["message"]:
                            found.setdefault(value["message"], []).append(value["data"])
    assert found.keys() == shapes
    for state in found.get("ShareUpdateValue@4.0", ()):
        assert {one["delivery_state"] for one in state["state_batches"]} <= {0, 2, 4}
    for member in found.get("ConsumerGroupMemberMetadataValue@3.7", ()):
        assert member["client_id"].startswith("member-") and member["subscribed_topic_names"] == ["shelves"]


def test_a_streams_application_assigns_its_tasks_partition_by_partition() -> None:
    """The assignor puts a member's active tasks in the order of its partitions, so each stands for the other."""
    synced = [
        exchange
        for exchange in analyze(open_captures([str(CAPTURES / "eras" / "streams-4.4.pcap.xz")]), depth="bodies")
        if isinstance(exchange, Exchange) and exchange.api in ("JoinGroup", "SyncGroup")
    ]
    assignments, subscriptions = [], []
    for exchange in synced:
        assert exchange.problems == []
        asked = (exchange.request.body if exchange.request is not None else None) or {}
        assignments += [one["assignment_decoded"]["data"] for one in asked.get("assignments", ())]
        subscriptions += [
            one["metadata_decoded"]["data"] for one in asked.get("protocols", ()) if one["name"] == "stream"
        ]
    streams = [one for one in assignments if "user_data_decoded" in one]
    assert len(streams) > 3
    for one in streams:
        partitions = [partition for topic in one["assigned_partitions"] for partition in topic["partitions"]]
        tasks = one["user_data_decoded"]["data"]["active_tasks"]
        assert sorted(task["partition"] for task in tasks) == sorted(partitions)
        assert one["user_data_decoded"]["data"]["err_code"] == 0
    assert len(subscriptions) > 3
    assert all(one["user_data_decoded"]["data"]["latest_supported_version"] == 11 for one in subscriptions)


@pytest.mark.parametrize(("api_key", "direction"), sorted(OPENERS))
def test_whatever_is_in_the_bytes_nothing_is_raised_and_the_bytes_stay(api_key: int, direction: Direction) -> None:
    """Content cut anywhere, and bytes of no meaning, in every place where something is looked for."""
    chance = random.Random(api_key)
    contents = [raw for vector in VECTORS.values() for raw in vector if raw]
    low, high = schema.version_range(api_key)
    opener = OPENERS[api_key, direction]
    for _ in range(200):
        content = chance.choice(contents)
        content = bytes(byte if chance.random() > 0.05 else chance.randrange(256) for byte in content)
        content = content[: chance.randrange(len(content) + 1)]
        version = chance.randint(low, high)
        fields = schema.message(api_key, version, direction).fields
        body = filled(fields, content, chance)
        raw = codec.encoder(api_key, version, direction)(body)
        read, _ = codec.decoder(api_key, version, direction)(raw, 0, [])
        dissected = codec.dissect(schema.message(api_key, version, direction), raw, 0)
        before, exchange = repr(read), Exchange(CONNECTION, api_key, version, 1, None, None, None)
        problems: list[Problem] = []
        opener(BodyView(read, problems), exchange, lambda _: None)
        opener(NodeView(dissected.root, dissected.problems), exchange, lambda _: None)
        assert repr(without_content(read)) == before
        assert [problem.message for problem in dissected.problems] == [problem.message for problem in problems]


def filled(fields: tuple[schema.WireField, ...], content: bytes, chance: random.Random) -> Body:
    """A structure with ``content`` in all its bytes, one element in every array, and names that are looked for."""
    names = ("__consumer_offsets", "__transaction_state", "__cluster_metadata", "__remote_log_metadata", "sticky")
    found = body_of(fields)
    for field in fields:
        value: Any = found[field.name]
        if field.name == "protocol_type":
            value = chance.choice(["consumer", "connect"])
        elif field.type == "STRUCT":
            value = filled(field.fields, content, chance)
        elif field.type.endswith("STRING"):
            value = chance.choice(names)
        elif field.type.endswith("BYTES"):
            value = content
        elif field.type.endswith("RECORDS"):
            value = [batch(content)]
            value[0]["records"][0]["key"] = content
        found[field.name] = [value] if field.array else value
    return found


def without_content(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_content(v) for k, v in value.items() if not k.endswith("_decoded") and k != "decoded"}
    return [without_content(each) for each in value] if isinstance(value, list) else value


def test_a_broker_that_follows_the_metadata_log_is_understood_to_the_last_record() -> None:
    names, kinds = set(), set()
    for exchange in analyze(open_captures([str(CAPTURES / "cluster-inside.pcap.xz")]), depth="records"):
        if isinstance(exchange, Exchange) and exchange.api == "Fetch" and exchange.response is not None:
            for topic in (exchange.response.body or {}).get("responses", ()):
                for partition in topic["partitions"]:
                    for record in (record for one in partition["records"] or () for record in one.get("records", ())):
                        if topic["topic_id"] == METADATA_TOPIC_ID and "control" not in record:
                            found = record["decoded"]["value"]
                            kinds.add(found["message"])
                            names.add(found["data"].get("name"))
    assert {"ledger", "__transaction_state", "metadata.version"} <= names
    assert {"RegisterBrokerRecord", "TopicRecord", "PartitionRecord", "ProducerIdsRecord"} <= kinds
